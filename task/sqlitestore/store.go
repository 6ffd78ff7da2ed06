// Package sqlitestore keeps tasks and records of calls in a SQLite file: the store of a
// laptop. The processes of one machine may share the file, which is how other instances are had there.
// The file has to be on a local disk: SQLite's write-ahead log needs memory that all of
// its processes share, and no network file system gives that.
package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// Options may be nil.
type Options struct {
	// Now tells which records are over. Default time.Now.
	Now func() time.Time
}

// Store is a task.Store and a task.Sweeper. Safe for concurrent use.
type Store struct {
	path string
	now  func() time.Time

	// turn guards what follows. It is a channel, so that a context ends the wait for the
	// goroutine that opens the file.
	turn   chan struct{}
	file   *file // nil until the first use
	closed bool
}

// Open makes a Store on the file at path, relative to the working directory of now. The
// first use creates the file (mode 0600), and its folder (0700, with a .gitignore for all
// that is in it) if that is missing; until then nothing is read or written, and what is
// wrong with the place is the error of each use. A file of an older version of thaw is
// upgraded; one that a newer version has changed beyond what this one can live with is refused.
func Open(path string, o *Options) (*Store, error) {
	switch {
	case path == "":
		return nil, errors.New("sqlitestore: the path is empty; it has to name a file, such as .thaw/tasks.db")
	case strings.HasPrefix(path, ":memory:"):
		return nil, errors.New("sqlitestore: :memory: names no file, such as .thaw/tasks.db")
	case strings.ContainsRune(path, 0):
		return nil, fmt.Errorf("sqlitestore: the path %q has a NUL in it", path)
	case strings.HasSuffix(filepath.ToSlash(path), "/"):
		return nil, fmt.Errorf("sqlitestore: the path %q names a folder; it has to name a file, such as %s", path, filepath.Join(path, "tasks.db"))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: the path %q: %w", path, err)
	}
	s := &Store{path: abs, now: time.Now, turn: make(chan struct{}, 1)}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	return s, nil
}

// Scheme is the setting "sqlite:PATH".
func Scheme() task.StoreScheme {
	return task.StoreScheme{
		Name:  "sqlite",
		Usage: "sqlite:PATH: a file that the processes of one machine share, such as sqlite:.thaw/tasks.db",
		Open: func(_ context.Context, rest string) (task.Store, error) {
			s, err := Open(rest, nil)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
	}
}

var errClosed = errors.New("the store is closed")

// open is the file, opened if this is the first use. A failure is not remembered:
// what was wrong with the place may have been put right.
func (s *Store) open(ctx context.Context) (*file, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.closed {
		return nil, errClosed
	}
	if s.file == nil {
		file, err := openFile(ctx, s.path)
		if err != nil {
			return nil, err
		}
		s.file = file
	}
	return s.file, nil
}

// Check opens the file, and makes it if it is missing, as the first use would.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.open(ctx)
	return err
}

// Close lets go of the file; a write in progress keeps it to its end. Calls after it fail,
// and closing again does nothing.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.file == nil {
		return nil
	}
	return s.file.db.Close()
}
