package cache

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func entries(t *testing.T, folder string) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFolderOfManyAtOnce(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("THAW_CACHE", cache)
	var filled atomic.Int32
	fill := func(folder string) error {
		filled.Add(1)
		return os.WriteFile(filepath.Join(folder, "content"), []byte("whole"), 0o644)
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			folder, err := Folder("thing", []byte("1.0"), fill)
			if err != nil {
				t.Error(err)
				return
			}
			if b, err := os.ReadFile(filepath.Join(folder, "content")); err != nil || string(b) != "whole" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	group.Wait()
	if all := entries(t, cache); len(all) != 1 {
		t.Errorf("the cache has %v, want one folder", all)
	}
	before := filled.Load()
	if _, err := Folder("thing", []byte("1.0"), fill); err != nil || filled.Load() != before {
		t.Errorf("what was there was filled again: %v", err)
	}
	if _, err := Folder("thing", []byte("1.1"), fill); err != nil || filled.Load() != before+1 || len(entries(t, cache)) != 2 {
		t.Errorf("what is pinned otherwise was not filled: %v", err)
	}
}

func TestFolderThatCannotBeFilled(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("THAW_CACHE", cache)
	broken := errors.New("no network")
	if _, err := Folder("thing", nil, func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of fill", err)
	}
	if all := entries(t, cache); len(all) != 0 {
		t.Errorf("left behind is %v", all)
	}
}
