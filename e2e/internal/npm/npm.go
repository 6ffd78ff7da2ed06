// Package npm brings the pinned npm packages of this module onto the machine and runs
// scripts with them.
package npm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed package.json package-lock.json .npmrc
var pinned embed.FS

// cacheFolder is where downloads live, outside the tree.
func cacheFolder() (string, error) {
	if folder := os.Getenv("THAW_CACHE"); folder != "" {
		return filepath.Abs(folder)
	}
	base, err := os.UserCacheDir() // XDG_CACHE_HOME, else ~/.cache
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "thaw"), nil
}

// Install returns the folder that holds the packages of the lock file, after putting
// them there unless they are. Processes may do so at the same time: each installs beside
// the folder and moves its copy in place in one step, so a folder that is there is whole.
func Install(ctx context.Context) (string, error) {
	lock, err := pinned.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "e2e-ts-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		return folder, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(cache, "e2e-ts.part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := os.CopyFS(part, pinned); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--loglevel=error")
	cmd.Dir = part
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(part, folder); err != nil {
		if _, other := os.Stat(folder); other == nil {
			return folder, nil // another process was faster
		}
		return "", err
	}
	return folder, nil
}

// Run runs a CommonJS script with Node and returns its standard output. The script
// resolves packages in folder.
func Run(ctx context.Context, folder string, script []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "node", append([]string{"-"}, args...)...)
	cmd.Dir = folder
	cmd.Stdin = bytes.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("node: %w\n%s\n%s", err, stderr.Bytes(), out)
	}
	return out, nil
}
