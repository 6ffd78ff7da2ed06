package deletefiles

import (
	"context"
	"errors"
)

// Files is where delete_files finds and deletes files: a folder, a bucket. Paths are
// relative, cleaned and slash-separated, as fs.ValidPath has them, never ".", without
// control characters, different from each other, and at most 1,000 at a time.
// Implementations lie below this folder; filestest is this contract as tests. They are safe
// for concurrent use.
type Files interface {
	// Look finds what lies at each path; the results are in the order of paths.
	Look(ctx context.Context, paths []string) []Found
	// Delete deletes each file that still has its version; the errors are in the order of
	// files. Nil says that there is no file at the path now, whoever deleted it; ErrChanged
	// that there is another version, which stays; an error that matches fs.ErrPermission
	// that deleting is not allowed. One file's error keeps no other from being deleted.
	Delete(ctx context.Context, files []File) []error
}

// Found is what lies at a path.
type Found struct {
	// Version tells the file from what was or will be at its path: never "", at most 100
	// bytes, and different once the content has changed, as far as the place can tell.
	Version string
	// Err is fs.ErrNotExist, ErrNotFile or ErrOutside, perhaps wrapped, or why it could not
	// be found out.
	Err error
}

// File is a file as it was found.
type File struct{ Path, Version string }

var (
	// ErrNotFile says that what lies at a path is no file: a folder, a device.
	ErrNotFile = errors.New("deletefiles: no file")
	// ErrOutside says that a path leads out of the place, through a symbolic link.
	ErrOutside = errors.New("deletefiles: the path leads outside")
	// ErrChanged says that a file is not the one that was found.
	ErrChanged = errors.New("deletefiles: the file has changed")
)
