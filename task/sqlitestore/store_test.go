package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	return func() task.Store { return testStore{open(tb, path, nil), path} }
}

// testStore is also a storetest.Cutter and a storetest.Extender.
type testStore struct {
	*sqlitestore.Store
	path string
}

func (s testStore) Cut(tb testing.TB, id string, p task.Part) {
	tb.Helper()
	number := p.Epoch
	switch p.Kind {
	case task.PartEntry:
		number = p.Seq
	case task.PartCall, task.PartAnswer:
		number = 0
	}
	execute(tb, raw(tb, s.path), `DELETE FROM parts WHERE task = ? AND kind = ? AND number = ? AND name = ?`, id, p.Kind, number, p.Name)
}

// Extend is a newer version of thaw, which adds a column that it may do without.
func (s testStore) Extend(tb testing.TB, id, value string) {
	tb.Helper()
	db := raw(tb, s.path)
	execute(tb, db, `ALTER TABLE tasks ADD COLUMN newer TEXT`)
	execute(tb, db, `UPDATE tasks SET newer = ? WHERE id = ?`, value, id)
}

func (s testStore) Extension(tb testing.TB, id string) string {
	tb.Helper()
	return value[string](tb, raw(tb, s.path), `SELECT newer FROM tasks WHERE id = ?`, id)
}

func TestUses(t *testing.T) { storetest.Uses(t, backend) }

func TestStore(t *testing.T) { storetest.Store(t, backend) }

func BenchmarkStore(b *testing.B) { storetest.BenchmarkStore(b, backend) }

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

func value[T any](tb testing.TB, db *sql.DB, query string, args ...any) (v T) {
	tb.Helper()
	if err := db.QueryRowContext(tb.Context(), query, args...).Scan(&v); err != nil {
		tb.Fatal(err)
	}
	return v
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
	endEarly := endsEarly()
	ended := 0
	for i := 0; i < 100 || ended < 5 && i < 2000; i++ {
		u := use(fmt.Sprint(i), 1, 1)
		if err := endEarly(t, func(ctx context.Context) error { _, _, err := s.Claim(ctx, u); return err }); err != nil {
			ended++
			if !errors.Is(err, context.Canceled) {
				t.Errorf("claim: %v", err)
			}
		}
		claim(t, s, u, true)
		claim(t, s, use(u.Call, 1, 2), false)
	}
	if ended == 0 {
		t.Error("no context ended in time")
	}
}

// endsEarly is a run of calls whose context ends at some moment of the time that the one
// before took.
func endsEarly() func(t *testing.T, call func(ctx context.Context) error) error {
	random := rand.New(rand.NewPCG(1, 2))
	took := time.Millisecond
	return func(t *testing.T, call func(ctx context.Context) error) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		defer time.AfterFunc(time.Duration(random.Int64N(int64(took))), cancel).Stop()
		start := time.Now()
		err := call(ctx)
		if err == nil {
			took = max(time.Since(start), time.Microsecond)
		}
		return err
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

// The plans that keep every call's cost from growing with what is stored.
func TestNothingIsScanned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	claim(t, open(t, path, nil), use("c", 1, 1), true)
	db := raw(t, path)
	if len(sqlitestore.Statements) < 20 {
		t.Fatalf("%d statements", len(sqlitestore.Statements))
	}
	for _, query := range sqlitestore.Statements {
		for _, step := range plan(t, db, query) {
			if strings.HasPrefix(step, "SCAN") && step != "SCAN CONSTANT ROW" || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s\nplan: %s", query, step)
			}
		}
	}
}

func plan(t *testing.T, db *sql.DB, query string) (steps []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, make([]any, 30)...)
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	return steps
}
