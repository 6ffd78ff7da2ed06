package sqlitestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"empty", "", "the path is empty"},
		{"memory", ":memory:", "names no file"},
		{"NUL", "a\x00b", `the path "a\x00b" has a NUL in it`},
		{"folder", "data/", `the path "data/" names a folder`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s, err := sqlitestore.Open(c.path, nil); s != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v; want an error with %q", s, err, c.want)
			}
			if s, err := sqlitestore.Scheme().Open(t.Context(), c.path); s != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("by the scheme: %v, %v; want an error with %q", s, err, c.want)
			}
		})
	}
}

func TestFirstUseCreates(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "project", ".thaw")
	path := filepath.Join(folder, "tasks.db")
	s := open(t, path, nil)
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Fatalf("Open left %v (%v)", entries, err)
	}
	claim(t, s, use("c", 1, 1), true)
	for name, want := range map[string]fs.FileMode{
		folder:                              fs.ModeDir | 0o700,
		path:                                0o600,
		path + "-wal":                       0o600,
		path + "-shm":                       0o600,
		filepath.Join(folder, ".gitignore"): 0o600,
	} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want mode %v", name, info, err, want)
		}
	}
	if ignored, err := os.ReadFile(filepath.Join(folder, ".gitignore")); err != nil || string(ignored) != "*\n" {
		t.Errorf(".gitignore has %q (%v)", ignored, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 4 {
		t.Errorf("the folder has %v (%v), want the database, its two and .gitignore", entries, err)
	}
	db := raw(t, path)
	if mode := value[string](t, db, "PRAGMA journal_mode"); mode != "wal" {
		t.Errorf("journal mode %s, want wal", mode)
	}
	if version := value[int](t, db, "PRAGMA user_version"); version != 2 {
		t.Errorf("version %d, want 2", version)
	}
}

func TestFolderOfTheUserStays(t *testing.T) {
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	claim(t, open(t, filepath.Join(folder, "tasks.db"), nil), use("c", 1, 1), true)
	if _, err := os.Stat(filepath.Join(folder, ".gitignore")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf(".gitignore: %v, want none", err)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v (%v), want 0755 as it was", info.Mode(), err)
	}
}

func TestNamesOfFiles(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a b", "a?mode=memory", "a#b", "a%20b", "a%", "ä", "a&b=c", "file:a", "a'b\"", "-", "a\nb", "a:b"} {
		path := filepath.Join(folder, name)
		claim(t, open(t, path, nil), use("c", 1, 1), true)
		claim(t, open(t, path, nil), use("c", 1, 2), false)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q is not where it should be: %v", name, err)
		}
	}
}

func TestRelativePathIsOfThatTime(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Chdir(first)
	s := open(t, filepath.Join(".thaw", "tasks.db"), nil)
	t.Chdir(second)
	claim(t, s, use("c", 1, 1), true)
	if _, err := os.Stat(filepath.Join(first, ".thaw", "tasks.db")); err != nil {
		t.Error(err)
	}
}

func TestPlacesThatCannotWork(t *testing.T) {
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		wrong func(t *testing.T, path string)
		want  string
		right func(t *testing.T, path string)
	}{
		{"a folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no regular file", remove},
		{"an empty file", write(""), "no task store", remove},
		{"a text", write(strings.Repeat("This is no database. ", 300)), "file is not a database", remove},
		{"another database", func(t *testing.T, path string) {
			execute(t, raw(t, path), "CREATE TABLE uses (call TEXT)")
		}, "no task store", remove},
		{"a newer schema", func(t *testing.T, path string) {
			claim(t, open(t, path, nil), use("other", 1, 1), true)
			execute(t, raw(t, path), "PRAGMA user_version = 3")
		}, "has schema 3, from another version of thaw; this one knows 1 to 2", func(t *testing.T, path string) {
			execute(t, raw(t, path), "PRAGMA user_version = 2")
		}},
		{"a link to nowhere", func(t *testing.T, path string) {
			if err := os.Symlink(path+".gone", path); err != nil {
				t.Fatal(err)
			}
		}, "unable to open database file", remove},
		{"a log without its file", func(t *testing.T, path string) {
			write("")(t, path+"-wal")
		}, "tasks.db-wal is left of a store that is gone; remove it", func(t *testing.T, path string) {
			remove(t, path+"-wal")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tasks.db")
			c.wrong(t, path)
			s := open(t, path, nil)
			refused := func(err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%v, want an error with %q and the path", err, c.want)
				}
			}
			_, _, err := s.Claim(t.Context(), use("c", 1, 1))
			refused(err)
			refused(s.Finish(t.Context(), use("c", 1, 1), nil))
			c.right(t, path)
			claim(t, s, use("c", 1, 1), true) // without a new Store
		})
	}

	t.Run("a file for a folder", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		write("")(t, file)
		for _, path := range []string{filepath.Join(file, "tasks.db"), filepath.Join(file, ".thaw", "tasks.db")} {
			if _, _, err := open(t, path, nil).Claim(t.Context(), use("c", 1, 1)); err == nil || !strings.Contains(err.Error(), "not a directory") {
				t.Errorf("%v, want an error that says so", err)
			}
		}
	})
}

func write(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
