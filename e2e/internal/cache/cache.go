// Package cache keeps what tests download on the machine, outside the tree.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// root is where downloads live.
func root() (string, error) {
	if folder := os.Getenv("THAW_CACHE"); folder != "" {
		return filepath.Abs(folder)
	}
	base, err := os.UserCacheDir() // XDG_CACHE_HOME, else ~/.cache
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "thaw"), nil
}

// Folder returns the folder of this name and of what pins its content, after having fill
// make it unless it is there. Processes may ask for it at the same time: each fills a folder
// beside it and moves that in place in one step, so a folder that is there is whole. What
// fill makes has to work from its last place too.
func Folder(name string, pin []byte, fill func(folder string) error) (string, error) {
	cache, err := root()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(pin)
	folder := filepath.Join(cache, name+"-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		return folder, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(cache, name+".part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := fill(part); err != nil {
		return "", err
	}
	if err := os.Rename(part, folder); err != nil {
		if _, other := os.Stat(folder); other == nil {
			return folder, nil // another process was faster
		}
		return "", err
	}
	return folder, nil
}
