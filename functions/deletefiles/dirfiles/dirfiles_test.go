package dirfiles_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/dirfiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/filestest"
)

// folder is a folder with another one beside it, which nobody may reach.
func folder(t *testing.T) (dir *dirfiles.Dir, inside, outside string) {
	t.Helper()
	base := t.TempDir()
	inside, outside = filepath.Join(base, "in"), filepath.Join(base, "out")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := dirfiles.Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir, inside, outside
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, name string) bool {
	t.Helper()
	_, err := os.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func lookAt(t *testing.T, dir *dirfiles.Dir, path string) deletefiles.Found {
	t.Helper()
	return dir.Look(t.Context(), []string{path})[0]
}

func deleteAt(t *testing.T, dir *dirfiles.Dir, path, version string) error {
	t.Helper()
	return dir.Delete(t.Context(), []deletefiles.File{{Path: path, Version: version}})[0]
}

func TestContract(t *testing.T) {
	filestest.Run(t, func(t *testing.T) filestest.Place {
		dir, inside, _ := folder(t)
		return filestest.Place{
			Files: dir,
			Put:   func(t *testing.T, path, content string) { put(t, filepath.Join(inside, path), content) },
			Has:   func(t *testing.T, path string) bool { return has(t, filepath.Join(inside, path)) },
		}
	})
}

func TestOutsideIsOutOfReach(t *testing.T) {
	dir, inside, outside := folder(t)
	secret := filepath.Join(outside, "secret.txt")
	put(t, secret, "s")
	link(t, "../out", filepath.Join(inside, "relative"))
	link(t, outside, filepath.Join(inside, "absolute"))
	link(t, ".", filepath.Join(inside, "here"))
	for _, path := range []string{"relative/secret.txt", "absolute/secret.txt", "here/relative/secret.txt", "../out/secret.txt", secret} {
		if found := lookAt(t, dir, path); !errors.Is(found.Err, deletefiles.ErrOutside) {
			t.Errorf("%s: %+v, want ErrOutside", path, found)
		}
		if err := deleteAt(t, dir, path, "0"); !errors.Is(err, deletefiles.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", path, err)
		}
	}
	if !has(t, secret) {
		t.Error("the file outside is gone")
	}
}

func TestLinkIsDeletedAndNotItsTarget(t *testing.T) {
	dir, inside, outside := folder(t)
	for name, target := range map[string]string{"inside": filepath.Join(inside, "target"), "outside": filepath.Join(outside, "target")} {
		put(t, target, "t")
		at := filepath.Join(inside, name)
		link(t, target, at)
		found := lookAt(t, dir, name)
		if found.Err != nil {
			t.Fatal(found.Err)
		}
		if err := deleteAt(t, dir, name, found.Version); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if has(t, at) || !has(t, target) {
			t.Errorf("%s: the link is there: %t, its target is: %t", name, has(t, at), has(t, target))
		}
	}
}

// A folder that was swapped for a link while the user was asked.
func TestSwappedFolder(t *testing.T) {
	dir, inside, outside := folder(t)
	put(t, filepath.Join(inside, "sub", "a.txt"), "a")
	put(t, filepath.Join(outside, "a.txt"), "a")
	found := lookAt(t, dir, "sub/a.txt")
	if err := os.Rename(filepath.Join(inside, "sub"), filepath.Join(inside, "moved")); err != nil {
		t.Fatal(err)
	}
	link(t, outside, filepath.Join(inside, "sub"))
	if err := deleteAt(t, dir, "sub/a.txt", found.Version); !errors.Is(err, deletefiles.ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if !has(t, filepath.Join(outside, "a.txt")) {
		t.Error("the file outside is gone")
	}
}

func TestNoFile(t *testing.T) {
	dir, inside, _ := folder(t)
	put(t, filepath.Join(inside, "was"), "a file")
	was := lookAt(t, dir, "was")
	if err := os.Remove(filepath.Join(inside, "was")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "was"} {
		if err := os.Mkdir(filepath.Join(inside, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inside) // the name of a socket has to be short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, name := range []string{"empty", "was", "socket"} {
		if found := lookAt(t, dir, name); !errors.Is(found.Err, deletefiles.ErrNotFile) {
			t.Errorf("%s: %+v, want ErrNotFile", name, found)
		}
		if err := deleteAt(t, dir, name, was.Version); !errors.Is(err, deletefiles.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", name, err)
		}
		if !has(t, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// A file that was written again in its old length.
func TestSameSize(t *testing.T) {
	dir, inside, _ := folder(t)
	name := filepath.Join(inside, "a")
	put(t, name, "one")
	found := lookAt(t, dir, "a")
	put(t, name, "two")
	if err := os.Chtimes(name, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := deleteAt(t, dir, "a", found.Version); !errors.Is(err, deletefiles.ErrChanged) || !has(t, name) {
		t.Errorf("%v, want ErrChanged", err)
	}
}

func TestOpenAndClose(t *testing.T) {
	dir, inside, _ := folder(t)
	put(t, filepath.Join(inside, "a"), "a")
	if _, err := dirfiles.Open(filepath.Join(inside, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v for a folder that does not exist", err)
	}
	if _, err := dirfiles.Open(filepath.Join(inside, "a")); err == nil {
		t.Error("a file was opened as a folder")
	}
	found := lookAt(t, dir, "a")
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if after := lookAt(t, dir, "a"); !errors.Is(after.Err, fs.ErrClosed) {
		t.Errorf("%+v, want ErrClosed", after)
	}
	if err := deleteAt(t, dir, "a", found.Version); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
}
