package deletefiles_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/filestest"
)

// memory is a place in memory. A path that ends in a slash is a folder.
type memory struct {
	mu      sync.Mutex
	files   map[string]string // version by path
	writes  int
	lookErr map[string]error
	keepErr map[string]error
	looks   int // calls
	deletes int
}

func newMemory(paths ...string) *memory {
	m := &memory{files: map[string]string{}, lookErr: map[string]error{}, keepErr: map[string]error{}}
	for _, path := range paths {
		m.put(path)
	}
	return m
}

func (m *memory) put(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.files[path] = "v" + strconv.Itoa(m.writes)
}

func (m *memory) drop(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, path)
}

// paths are what is there.
func (m *memory) paths() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(m.files)), " ")
}

func (m *memory) Look(ctx context.Context, paths []string) []deletefiles.Found {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	found := make([]deletefiles.Found, len(paths))
	for i, path := range paths {
		version, ok := m.files[path]
		_, folder := m.files[path+"/"]
		switch err := m.lookErr[path]; {
		case ctx.Err() != nil:
			found[i].Err = ctx.Err()
		case err != nil:
			found[i].Err = err
		case folder:
			found[i].Err = deletefiles.ErrNotFile
		case !ok:
			found[i].Err = fs.ErrNotExist
		default:
			found[i].Version = version
		}
	}
	return found
}

func (m *memory) Delete(ctx context.Context, files []deletefiles.File) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deletes++
	errs := make([]error, len(files))
	for i, file := range files {
		version, ok := m.files[file.Path]
		switch err := m.keepErr[file.Path]; {
		case ctx.Err() != nil:
			errs[i] = ctx.Err()
		case err != nil:
			errs[i] = err
		case ok && version != file.Version:
			errs[i] = deletefiles.ErrChanged
		default:
			delete(m.files, file.Path)
		}
	}
	return errs
}

// What the tests of the tool stand on keeps the contract itself.
func TestMemory(t *testing.T) {
	filestest.Run(t, func(t *testing.T) filestest.Place {
		m := newMemory()
		return filestest.Place{
			Files: m,
			Put:   func(_ *testing.T, path, _ string) { m.put(path) },
			Has: func(_ *testing.T, path string) bool {
				return !errors.Is(m.Look(context.Background(), []string{path})[0].Err, fs.ErrNotExist)
			},
		}
	})
}
