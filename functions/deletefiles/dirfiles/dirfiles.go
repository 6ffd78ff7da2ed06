// Package dirfiles has files in a folder of this machine, or of a volume that is mounted
// here, for delete_files.
package dirfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
)

// Dir is a folder. Nothing outside of it can be reached: symbolic links are followed while
// they stay inside. A link at the end of a path is a file like any other; it is deleted and
// not what it points to.
//
// A file system knows no condition for deleting, so a file that changes in the moment
// between the last look and the deletion is deleted all the same.
type Dir struct{ root *os.Root }

var _ deletefiles.Files = (*Dir)(nil)

// Open opens the folder dir, which has to exist. It stays open until Close, also if it is
// moved.
func Open(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Close ends the use of the folder; everything fails from then on.
func (d *Dir) Close() error { return d.root.Close() }

// Look implements deletefiles.Files.
func (d *Dir) Look(ctx context.Context, paths []string) []deletefiles.Found {
	found := make([]deletefiles.Found, len(paths))
	for i, path := range paths {
		found[i].Version, found[i].Err = d.look(ctx, path)
	}
	return found
}

// look returns the version of the file at path.
func (d *Dir) look(ctx context.Context, path string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	info, err := d.root.Lstat(path)
	var system syscall.Errno
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return "", fs.ErrNotExist
	case !errors.As(err, &system) && !errors.Is(err, fs.ErrClosed):
		// Package os has no name for its own refusal of a path that leads outside.
		return "", fmt.Errorf("%w: %w", deletefiles.ErrOutside, err)
	default:
		return "", err
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeSymlink {
		return "", deletefiles.ErrNotFile
	}
	return fmt.Sprintf("%x-%x-%x", info.Mode().Type(), info.Size(), info.ModTime().UnixNano()), nil
}

// Delete implements deletefiles.Files.
func (d *Dir) Delete(ctx context.Context, files []deletefiles.File) []error {
	errs := make([]error, len(files))
	for i, file := range files {
		errs[i] = d.remove(ctx, file)
	}
	return errs
}

func (d *Dir) remove(ctx context.Context, file deletefiles.File) error {
	version, err := d.look(ctx, file.Path)
	switch {
	case err == nil && version == file.Version:
		err = d.root.Remove(file.Path)
	case err == nil, errors.Is(err, deletefiles.ErrNotFile), errors.Is(err, deletefiles.ErrOutside):
		return deletefiles.ErrChanged
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
