package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

func backend(tb testing.TB) func() task.Store {
	path := filepath.Join(tb.TempDir(), ".thaw", "tasks.db")
	return func() task.Store { return open(tb, path, nil) }
}

func TestUses(t *testing.T) { storetest.Uses(t, backend) }

func BenchmarkUses(b *testing.B) { storetest.BenchmarkUses(b, backend) }

func open(tb testing.TB, path string, o *sqlitestore.Options) *sqlitestore.Store {
	tb.Helper()
	s, err := sqlitestore.Open(path, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func use(call string, round int, write byte) task.Use {
	now := time.Now()
	return task.Use{Call: call, Round: round, Write: [16]byte{write}, Deadline: now.Add(time.Minute), Expires: now.Add(time.Hour)}
}

func claim(tb testing.TB, s task.Store, u task.Use, want bool) task.Used {
	tb.Helper()
	first, prev, err := s.Claim(tb.Context(), u)
	if err != nil || first != want {
		tb.Fatalf("claim of round %d: first=%t prev=%+v err=%v, want first=%t", u.Round, first, prev, err, want)
	}
	return prev
}

// raw is the file as any other program sees it.
func raw(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "_txlock=immediate"}).String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

func execute(tb testing.TB, db *sql.DB, query string, args ...any) {
	tb.Helper()
	if _, err := db.ExecContext(tb.Context(), query, args...); err != nil {
		tb.Fatal(err)
	}
}

func value[T any](tb testing.TB, db *sql.DB, query string) (v T) {
	tb.Helper()
	if err := db.QueryRowContext(tb.Context(), query).Scan(&v); err != nil {
		tb.Fatal(err)
	}
	return v
}

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

func TestScheme(t *testing.T) {
	scheme := sqlitestore.Scheme()
	if scheme.Name != "sqlite" || !strings.HasPrefix(scheme.Usage, scheme.Name+":") {
		t.Errorf("%+v", scheme)
	}
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, err := scheme.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.(*sqlitestore.Store).Close()
	claim(t, s, use("c", 1, 1), true)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
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
	if version := value[int](t, db, "PRAGMA user_version"); version != 1 {
		t.Errorf("version %d, want 1", version)
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
			execute(t, raw(t, path), "PRAGMA user_version = 2")
		}, "has schema 2, from another version of thaw; this one knows 1", func(t *testing.T, path string) {
			execute(t, raw(t, path), "PRAGMA user_version = 1")
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

func TestRecordsOutliveTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, u := open(t, path, nil), use("c", 1, 1)
	claim(t, s, u, true)
	if err := s.Finish(t.Context(), u, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if prev := claim(t, open(t, path, nil), use("c", 1, 2), false); string(prev.Response) != "answer" {
		t.Errorf("found %+v", prev)
	}
}

func TestClosed(t *testing.T) {
	for name, before := range map[string]func(*sqlitestore.Store){
		"used":   func(s *sqlitestore.Store) { claim(t, s, use("c", 1, 1), true) },
		"unused": func(*sqlitestore.Store) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
			before(s)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := s.Claim(t.Context(), use("c", 2, 1)); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("claim: %v", err)
			}
			if err := s.Finish(t.Context(), use("c", 1, 1), nil); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("finish: %v", err)
			}
		})
	}
}

// What was first stays first, whatever Close does to the other claims.
func TestCloseAmongClaims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := open(t, path, nil)
	const n = 50
	var firsts [n]atomic.Bool
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			first, _, err := s.Claim(t.Context(), use(fmt.Sprint(i), 1, 1))
			if err != nil && !strings.Contains(err.Error(), "closed") {
				t.Error(err)
			}
			firsts[i].Store(first)
			if i == n/2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	again := open(t, path, nil)
	for i := range n {
		if first, _, err := again.Claim(t.Context(), use(fmt.Sprint(i), 1, 2)); err != nil || first && firsts[i].Load() {
			t.Errorf("call %d was first twice (%v)", i, err)
		}
	}
}

func TestContextEndsTheWaitForTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, u := open(t, path, nil), use("c", 1, 1)
	claim(t, s, u, true)
	tx, err := raw(t, path).BeginTx(t.Context(), nil) // another process, in the middle of a write
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()

	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if first, _, err := s.Claim(ctx, use("c", 2, 1)); !errors.Is(err, context.DeadlineExceeded) || first {
		t.Errorf("claim: first=%t err=%v", first, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Finish(ctx, u, []byte("answer")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("finish: %v", err)
	}
	if waited := time.Since(start); waited > 4*time.Second {
		t.Errorf("waited %v, as long as without a context", waited)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if prev := claim(t, s, use("c", 1, 2), false); prev.Done {
		t.Errorf("the response was recorded: %+v", prev)
	}
	claim(t, s, use("c", 2, 2), true)
}

// Wherever a context ends a claim, the error says so, and the same claim again tells
// whether it was applied.
func TestContextEndsAtAnyMoment(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	claim(t, s, use("first-use", 1, 1), true)
	random := rand.New(rand.NewPCG(1, 2))
	ended := 0
	for i := range 200 {
		u := use(fmt.Sprint(i), 1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		end := time.AfterFunc(time.Duration(random.IntN(1000))*time.Microsecond, cancel)
		if _, _, err := s.Claim(ctx, u); err != nil {
			ended++
			if !errors.Is(err, context.Canceled) {
				t.Errorf("claim: %v", err)
			}
		}
		end.Stop()
		cancel()
		claim(t, s, u, true)
		claim(t, s, use(u.Call, 1, 2), false)
	}
	if ended == 0 {
		t.Error("no context ended in time")
	}
}

func TestExpiredRecordsGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := open(t, path, &sqlitestore.Options{Now: func() time.Time { return clock }})
	use := func(call string, life time.Duration) task.Use {
		return task.Use{Call: call, Round: 1, Write: [16]byte{1}, Deadline: clock, Expires: clock.Add(life)}
	}
	const n = 20
	for i := range n {
		claim(t, s, use(fmt.Sprintf("old-%d", i), time.Duration(n-i)*time.Minute), true)
	}
	later := use("kept", 2*time.Hour)
	claim(t, s, use("kept", time.Minute), true)
	later.Round = 2 // brings its own expiry
	claim(t, s, later, true)
	db := raw(t, path)
	count := func(want int) {
		t.Helper()
		if got := value[int](t, db, "SELECT count(*) FROM uses"); got != want {
			t.Fatalf("%d records, want %d", got, want)
		}
	}
	count(n + 1)
	clock = clock.Add(time.Minute) // one is over, to the moment
	claim(t, s, use("new", time.Hour), true)
	count(n + 1)
	claim(t, s, use("new", time.Hour), true)
	count(n + 1)
	clock = clock.Add(n * time.Minute)
	for left := n - 1; left > 0; left -= 2 { // two a claim, the oldest first, replays too
		claim(t, s, use("new", time.Hour), true)
		count(2 + max(0, left-2))
	}
	claim(t, s, use("new", time.Hour), true)
	count(2)
	if err := s.Finish(t.Context(), later, nil); err != nil {
		t.Error(err)
	}
}

// The plan that keeps a claim's cost from growing with what is stored.
func TestNothingIsScanned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	claim(t, open(t, path, nil), use("c", 1, 1), true)
	rows, err := raw(t, path).QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+sqlitestore.RemoveExpired, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, step)
		if strings.HasPrefix(step, "SCAN") || strings.Contains(step, "TEMP B-TREE") {
			t.Errorf("plan: %s", step)
		}
	}
	if !strings.Contains(strings.Join(plan, "\n"), "uses_expires") {
		t.Errorf("plan %q, want the index of expiry in it", plan)
	}
}
