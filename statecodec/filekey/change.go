package filekey

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/statecodec"
)

// noticed is how long servers may go on minting with a key that another has replaced.
const noticed = time.Minute

// Info is what may be shown of a key.
type Info struct {
	ID, KID string
	Created time.Time
	// Replaced is when the next key was made; zero for the one that mints.
	Replaced time.Time
}

// List returns the keys in the file at path in its order: the first mints.
func List(path string) ([]Info, error) {
	keys, err := read(path)
	if err != nil {
		return nil, err
	}
	var all []Info
	for i := range keys {
		all = append(all, infoOf(keys, i))
	}
	return all, nil
}

func infoOf(keys []*key, i int) Info {
	info := Info{ID: keys[i].ID(), KID: statecodec.KID(keys[i].ID()), Created: keys[i].created}
	if i > 0 {
		info.Replaced = keys[i-1].created
	}
	return info
}

// New creates the file at path with one new key, readable and writable by its owner alone,
// with its folder (0700) and, if there is none, a .gitignore beside it. If the file exists
// already the error matches fs.ErrExist.
func New(path string) (Info, error) {
	if path == "" {
		return Info{}, errors.New("a state key file needs a path")
	}
	folder := filepath.Dir(path)
	_, err := os.Stat(folder)
	ours := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return Info{}, fmt.Errorf("folder of the state key file: %w", err)
	}
	if err := checkFolder(folder); err != nil {
		return Info{}, err
	}
	if err := ignore(path, ours); err != nil {
		return Info{}, fmt.Errorf("state key file: %w", err)
	}
	keys := []*key{newKey(time.Now())}
	// A link never replaces a file, and what it links is whole.
	err = write(path, 0o600, keys, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return Info{}, fmt.Errorf("state key file %s exists already: %w", path, fs.ErrExist)
	}
	if err != nil {
		return Info{}, fmt.Errorf("state key file: %w", err)
	}
	return infoOf(keys, 0), nil
}

// Rotate puts a new key first; the others go on opening. Servers on the file notice within
// a minute. The file becomes that of whoever runs this, with the mode it had.
func Rotate(path string) (Info, error) {
	var info Info
	err := change(path, func(keys []*key) ([]*key, error) {
		if len(keys) == MaxKeys {
			return nil, fmt.Errorf("state key file %s holds %d keys, which is all that is allowed: retire some first", path, MaxKeys)
		}
		keys = slices.Insert(keys, 0, newKey(time.Now()))
		info = infoOf(keys, 0)
		return keys, nil
	})
	return info, err
}

// Retire removes the keys that were replaced at least olderThan ago and returns what it
// removed. The key that mints always stays. Unless forced, olderThan must be at least
// statecodec.CallLifetime, since states of such keys may still be under way, and counts
// from a minute after the replacement, when the last server has noticed it.
func Retire(path string, olderThan time.Duration, force bool) ([]Info, error) {
	if olderThan < 0 || olderThan < statecodec.CallLifetime && !force {
		return nil, fmt.Errorf("states live for up to %v, so keys that were replaced %v ago may still be needed; allowed is %[1]v or more, or to force it",
			statecodec.CallLifetime, olderThan)
	}
	if !force {
		olderThan += noticed
	}
	var removed []Info
	err := change(path, func(keys []*key) ([]*key, error) {
		kept := keys[:1:1]
		now := time.Now()
		for i := 1; i < len(keys); i++ {
			if info := infoOf(keys, i); now.Sub(info.Replaced) >= olderThan {
				removed = append(removed, info)
			} else {
				kept = append(kept, keys[i])
			}
		}
		return kept, nil
	})
	if err != nil {
		return nil, err
	}
	return removed, nil
}

// change replaces the file as a whole, so that readers see it before or after, one process
// after the other.
func change(path string, edit func([]*key) ([]*key, error)) error {
	if _, err := read(path); err != nil { // before anything is left beside it
		return err
	}
	// What is renamed replaces a link, not the file behind it.
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("state key file: %w", err)
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	keys, err := read(path)
	if err != nil {
		return err
	}
	before := len(keys)
	keys, err = edit(keys)
	if err != nil || len(keys) == before { // every edit adds or removes
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("state key file: %w", err)
	}
	if err := write(path, info.Mode().Perm(), keys, os.Rename); err != nil {
		return fmt.Errorf("state key file: %w", err)
	}
	return nil
}

const (
	lockWait = 5 * time.Second
	lockPoll = 10 * time.Millisecond
)

// lock holds a lock that is a file: it works on every system and disk.
func lock(path string) (unlock func(), err error) {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			f.Close()
			return func() { os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock of the state key file: %w", err)
		}
		if !time.Now().Before(end) {
			return nil, fmt.Errorf("%s has been there for %v: another process changes the state key file; if none does, remove it", path, lockWait)
		}
	}
}

// write writes a temporary file to its last byte and then has place put it at path.
func write(path string, mode fs.FileMode, keys []*key, place func(from, to string) error) error {
	folder, name := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	f, err := os.CreateTemp(folder, name+".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err = f.Chmod(mode); err == nil {
		_, err = f.Write(format(keys))
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the names in a folder durable, where a system can.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// ignore keeps the file, and what is beside it while it changes, out of git, unless the
// folder has rules of its own; of a folder that was made for it, all that is ever in it.
func ignore(path string, ours bool) error {
	folder, name := filepath.Split(path)
	f, err := os.OpenFile(filepath.Join(folder, ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	rule := "/" + patternSpecial.Replace(name) + "*\n"
	if ours {
		rule = "*\n"
	}
	_, err = f.WriteString(rule)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

var patternSpecial = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
