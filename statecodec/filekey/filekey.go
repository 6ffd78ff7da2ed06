// Package filekey keeps the keys of a statecodec.Codec in a file, a line each: the first
// mints, all open. It is for one machine, and for what mounts a secret as a file.
//
// A line is
//
//	THAW-STATE-KEY-1 <32 bytes, base64url> <their CRC-32, hex> <when it was made, RFC 3339>
//
// Whoever can write the file can forge states, so one that its group or everyone may
// write, or that lies in a folder where everyone may replace it, is refused. One that they
// may read is not, since that is how platforms mount secrets; here it is created for its
// owner alone. A folder of a group is not refused either: on many systems each user has a
// group of his own, which may write all that is his. (On Windows modes say nothing of
// this, and are not looked at.)
package filekey

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/thaw-mcp/thaw/statecodec"
)

// Scheme opens file:PATH. Create makes the file if it is missing.
func Scheme() statecodec.KeyScheme {
	return statecodec.KeyScheme{
		Name:   "file",
		Usage:  "file:PATH, a key file as the command keys new PATH makes it",
		Open:   func(_ context.Context, path string) (statecodec.Key, error) { return asKey(Open(path)) },
		Create: func(_ context.Context, path string) (statecodec.Key, error) { return asKey(OpenOrCreate(path)) },
	}
}

// asKey keeps a nil *File from becoming a Key.
func asKey(f *File, err error) (statecodec.Key, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// File is the keys in a file. It is safe for concurrent use.
type File struct {
	path string
	keys atomic.Pointer[[]*key]
}

var _ statecodec.Ring = (*File)(nil)

// Open reads the file at path. A missing file is an error that matches fs.ErrNotExist.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if err := f.Reload(context.Background()); err != nil {
		return nil, err
	}
	return f, nil
}

// OpenOrCreate is Open, but a missing file is created with one key, in a folder that is
// created too if it is missing. Of processes that do so at once all get the same key.
func OpenOrCreate(path string) (*File, error) {
	f, err := Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if _, err := New(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return Open(path)
}

// ID is that of the key that mints.
func (f *File) ID() string { return (*f.keys.Load())[0].ID() }

// MAC is that of the key that mints.
func (f *File) MAC(ctx context.Context, message []byte) ([]byte, error) {
	return (*f.keys.Load())[0].MAC(ctx, message)
}

// Keys returns the keys in the order of the file.
func (f *File) Keys() []statecodec.Key {
	var all []statecodec.Key
	for _, k := range *f.keys.Load() {
		all = append(all, k)
	}
	return all
}

// Reload reads the file again.
func (f *File) Reload(context.Context) error {
	keys, err := read(f.path)
	if err != nil {
		return err
	}
	f.keys.Store(&keys)
	return nil
}

// ID is derived from the secret and does not give it away.
func (k *key) ID() string { return fmt.Sprintf("file:%x", k.mac("thaw/v1/key-id")[:8]) }

// MAC never fails.
func (k *key) MAC(_ context.Context, message []byte) ([]byte, error) {
	return k.mac(string(message)), nil
}

func (k *key) mac(message string) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write([]byte(message))
	return h.Sum(nil)
}

// read returns the keys in the file at path, at least one.
func read(path string) ([]*key, error) {
	if path == "" {
		return nil, errors.New("a state key file needs a path")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("state key file %s does not exist; the command keys new makes it: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("state key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("state key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("state key file %s is no regular file", path)
	}
	if writableBy(info, group|all) {
		return nil, fmt.Errorf("state key file %s may be written by others than its owner (mode %04o); make it 0600", path, info.Mode().Perm())
	}
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("state key file: %w", err)
	}
	keys, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("state key file %s: %w", path, err)
	}
	return keys, nil
}

// checkFolder makes sure that not everyone can put another file in the place of one in it.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("folder of the state key file: %w", err)
	}
	if writableBy(info, all) && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("folder %s of the state key file may be written by everyone (mode %04o); make it 0700", folder, info.Mode().Perm())
	}
	return nil
}

// The right to write, of all but the owner.
const group, all fs.FileMode = 0o020, 0o002

func writableBy(info fs.FileInfo, who fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&who != 0
}
