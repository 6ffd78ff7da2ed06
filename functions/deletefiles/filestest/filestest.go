// Package filestest is the contract of deletefiles.Files as tests.
package filestest

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
)

// Place is a place without files, and a way into it beside its Files.
type Place struct {
	Files deletefiles.Files
	Put   func(t *testing.T, path, content string) // makes a file, and the folders around it
	Has   func(t *testing.T, path string) bool
}

// Run holds what open opens to the contract; each call of open gives a place of its own.
func Run(t *testing.T, open func(t *testing.T) Place) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, p Place)
	}{
		{"look", look},
		{"names", names},
		{"versions", versions},
		{"delete", remove},
		{"changed", changed},
		{"nothing to do", nothing},
		{"the end of ctx", ended},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// find looks at files that have to be there.
func find(t *testing.T, p Place, paths ...string) []deletefiles.File {
	t.Helper()
	var files []deletefiles.File
	for i, found := range p.Files.Look(t.Context(), paths) {
		if found.Err != nil || found.Version == "" || len(found.Version) > 100 {
			t.Fatalf("%q: version %q, %v", paths[i], found.Version, found.Err)
		}
		files = append(files, deletefiles.File{Path: paths[i], Version: found.Version})
	}
	if len(files) != len(paths) {
		t.Fatalf("%d results for %d paths", len(files), len(paths))
	}
	return files
}

func wantErrors(t *testing.T, got []error, want ...error) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d errors, want %d", len(got), len(want))
	}
	for i := range want {
		if !errors.Is(got[i], want[i]) {
			t.Errorf("error %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func look(t *testing.T, p Place) {
	p.Put(t, "a.txt", "a")
	p.Put(t, "c/d/e.txt", "e")
	found := p.Files.Look(t.Context(), []string{"missing.txt", "a.txt", "c/missing", "a.txt/b", "x/y/z", strings.Repeat("x", 1024), "c/d/e.txt"})
	if len(found) != 7 {
		t.Fatalf("%d results for 7 paths", len(found))
	}
	for i, there := range []bool{false, true, false, false, false, false, true} {
		if ok := found[i].Err == nil; ok != there || !ok && !errors.Is(found[i].Err, fs.ErrNotExist) {
			t.Errorf("path %d: %+v; is there a file: %t", i, found[i], there)
		}
	}
}

func names(t *testing.T, p Place) {
	paths := []string{"with space", "&<>'\"", "100%", "%2e%2e", "a+b=c#d?e", "..a", ".hidden", "~", "é", "日本語/名前.txt", "😀", "\u202egnp.exe", "-rf", "*"}
	for _, path := range paths {
		p.Put(t, path, path)
	}
	p.Put(t, "ab", "not matched by a star")
	wantErrors(t, p.Files.Delete(t.Context(), find(t, p, paths...)), make([]error, len(paths))...)
	for _, path := range paths {
		if p.Has(t, path) {
			t.Errorf("%q is still there", path)
		}
	}
	if !p.Has(t, "ab") {
		t.Error("a file that nobody named is gone")
	}
}

func versions(t *testing.T, p Place) {
	p.Put(t, "a.txt", "one")
	p.Put(t, "empty", "")
	one := find(t, p, "a.txt", "empty")
	if again := find(t, p, "a.txt", "empty"); again[0] != one[0] || again[1] != one[1] {
		t.Errorf("%v without a change in between, before %v", again, one)
	}
	p.Put(t, "a.txt", "longer")
	if two := find(t, p, "a.txt"); two[0] == one[0] {
		t.Errorf("%v is the version after a change too", one)
	}
}

func remove(t *testing.T, p Place) {
	p.Put(t, "a.txt", "a")
	p.Put(t, "c/d.txt", "d")
	p.Put(t, "c/stays.txt", "s")
	files := find(t, p, "a.txt", "c/d.txt")
	wantErrors(t, p.Files.Delete(t.Context(), files), nil, nil)
	if p.Has(t, "a.txt") || p.Has(t, "c/d.txt") || !p.Has(t, "c/stays.txt") {
		t.Error("not exactly what was named is gone")
	}
	wantErrors(t, p.Files.Delete(t.Context(), files), nil, nil)
}

func changed(t *testing.T, p Place) {
	for _, path := range []string{"a", "b", "c", "d"} {
		p.Put(t, path, path)
	}
	files := find(t, p, "a", "b", "c", "d")
	p.Put(t, "b", "another b")
	wantErrors(t, p.Files.Delete(t.Context(), files[2:3]), nil)
	p.Put(t, "c", "c came back") // as somebody else's
	wantErrors(t, p.Files.Delete(t.Context(), files), nil, deletefiles.ErrChanged, deletefiles.ErrChanged, nil)
	if p.Has(t, "a") || !p.Has(t, "b") || !p.Has(t, "c") || p.Has(t, "d") {
		t.Error("not exactly what was unchanged is gone")
	}
}

func nothing(t *testing.T, p Place) {
	if found := p.Files.Look(t.Context(), nil); len(found) != 0 {
		t.Errorf("%v", found)
	}
	wantErrors(t, p.Files.Delete(t.Context(), nil))
}

func ended(t *testing.T, p Place) {
	p.Put(t, "a", "a")
	files := find(t, p, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := p.Files.Look(ctx, []string{"a"}); len(found) != 1 || !errors.Is(found[0].Err, context.Canceled) {
		t.Errorf("%v", found)
	}
	wantErrors(t, p.Files.Delete(ctx, files), context.Canceled)
	if !p.Has(t, "a") {
		t.Error("the file is gone")
	}
}
