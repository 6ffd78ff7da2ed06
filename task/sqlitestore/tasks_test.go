package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

func TestTasksOutliveTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := open(t, path, nil)
	if err := s.Create(t.Context(), task.Head{ID: "t", Message: "kept"}, task.Part{Data: []byte("call")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"create": s.Create(t.Context(), task.Head{ID: "other"}),
		"commit": s.Commit(t.Context(), time.Now(), task.Head{ID: "t", Version: 2}),
	} {
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s on a closed store: %v", what, err)
		}
	}
	again := open(t, path, nil)
	h, err := again.Head(t.Context(), "t")
	if err != nil || h.Message != "kept" || h.Version != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	if parts, err := again.Parts(t.Context(), "t", task.PartCall, "", 0, 0); err != nil || string(parts[0].Data) != "call" {
		t.Errorf("%v, %v", parts, err)
	}
}

// Heads go when they have expired, the oldest first and a few at a time, and their parts a
// day later (T-27).
func TestExpiredTasksGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := open(t, path, &sqlitestore.Options{Now: func() time.Time { return clock }})
	entry := func(seq uint32) task.Part { return task.Part{Kind: task.PartEntry, Seq: seq, Data: []byte("entry")} }
	create := func(id string, life time.Duration, parts ...task.Part) task.Head {
		t.Helper()
		h := task.Head{ID: id, Version: 1}
		if life > 0 {
			h.Expires = clock.Add(life)
		}
		if err := s.Create(t.Context(), h, parts...); err != nil {
			t.Fatal(err)
		}
		return h
	}
	commit := func(h task.Head, parts ...task.Part) task.Head {
		t.Helper()
		h.Version++
		if err := s.Commit(t.Context(), clock, h, parts...); err != nil {
			t.Fatal(err)
		}
		return h
	}
	db := raw(t, path)
	left := func(heads, parts, removed int) {
		t.Helper()
		h, p := value[int](t, db, "SELECT count(*) FROM tasks WHERE id LIKE 'old-%'"), value[int](t, db, "SELECT count(*) FROM parts WHERE task LIKE 'old-%'")
		if r := value[int](t, db, "SELECT count(*) FROM removed"); h != heads || p != parts || r != removed {
			t.Fatalf("%d heads, %d parts and %d removed are left, want %d, %d and %d", h, p, r, heads, parts, removed)
		}
	}

	const n = 10
	for i := range n { // the longest-lived first
		create(fmt.Sprint("old-", i), time.Duration(n-i)*time.Minute, entry(0), entry(1), entry(2))
	}
	long := create("long", time.Minute, entry(0))
	long.Expires = clock.Add(100 * time.Hour)
	long = commit(long)
	never := create("never", 0, entry(0))
	left(n, 3*n, 0)

	clock = clock.Add(time.Minute) // one is over, to the moment
	commit(never)
	left(n, 3*n, 0) // a heartbeat adds nothing and removes nothing
	create("new", 1000*time.Hour)
	left(n-1, 3*n, 1)
	clock = clock.Add(n * time.Minute)
	for i, want := 0, n-1; want > 0; i++ {
		create(fmt.Sprint("new-", i), 1000*time.Hour)
		want = max(0, want-2)
		left(want, 3*n, n-want)
	}
	if parts, err := s.Parts(t.Context(), "old-4", task.PartEntry, "", 0, 3); err != nil || len(parts) != 3 {
		t.Errorf("%d entries of a task just removed: %v", len(parts), err)
	}

	again := create("old-4", 1000*time.Hour) // has nothing of the one before
	if _, err := s.Parts(t.Context(), again.ID, task.PartEntry, "", 0, 1); !errors.Is(err, task.ErrCorrupt) {
		t.Errorf("entries of a new task of an old id: %v", err)
	}
	left(1, 3*n-3, n-1)

	clock = clock.Add(24*time.Hour - n*time.Minute) // a day after the first expired
	create("a-day-later", 1000*time.Hour)
	left(1, 3*n-5, n-1)
	create("a-day-later-still", 1000*time.Hour)
	left(1, 3*n-6, n-2)
	clock = clock.Add(n * time.Minute)
	removed := n - 2
	for parts := 3*n - 6; parts > 0; { // four for the one that is stored
		long = commit(long, entry(uint32(parts)))
		parts = max(0, parts-4)
		removed = min(removed, (parts+2)/3)
		left(1, parts, removed)
	}
	for _, id := range []string{"long", "never", "new", "old-4"} {
		if _, err := s.Head(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range []string{"long", "never"} {
		if _, err := s.Parts(t.Context(), id, task.PartEntry, "", 0, 1); err != nil {
			t.Errorf("entries of %s: %v", id, err)
		}
	}
	if _, err := s.Parts(t.Context(), "old-1", task.PartEntry, "", 0, 1); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("entries of a task that is gone: %v", err)
	}
}

// What has expired does not stand in the way of what is due.
func TestDueLeavesOutTheExpired(t *testing.T) {
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := open(t, filepath.Join(t.TempDir(), "tasks.db"), &sqlitestore.Options{Now: func() time.Time { return clock }})
	for i := range 40 {
		h := task.Head{ID: fmt.Sprint("t-", i), Wake: clock.Add(time.Duration(i) * time.Second), Expires: clock.Add(time.Minute)}
		if i >= 30 {
			h.Expires = time.Time{}
		}
		if err := s.Create(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for shard := range task.Shards {
		ids, err := s.Due(t.Context(), clock.Add(time.Hour), shard, 10)
		if err != nil {
			t.Fatal(err)
		}
		found += len(ids)
	}
	if found != 10 {
		t.Errorf("%d tasks are due, want 10", found)
	}
}

// Wherever a context ends a commit, the same commit again is applied once.
func TestContextEndsACommitAtAnyMoment(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	h := task.Head{ID: "t", Version: 1}
	if err := s.Create(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	endEarly := endsEarly()
	ended := 0
	for i := uint32(0); i < 100 || ended < 5 && i < 2000; i++ {
		h.Version++
		h.Journal++
		entry := task.Part{Kind: task.PartEntry, Epoch: 1, Seq: i, Data: fmt.Append(nil, i)}
		if err := endEarly(t, func(ctx context.Context) error { return s.Commit(ctx, time.Now(), h, entry) }); err != nil {
			ended++
			if !errors.Is(err, context.Canceled) {
				t.Errorf("commit: %v", err)
			}
		}
		if err := s.Commit(t.Context(), time.Now(), h, entry); err != nil {
			t.Fatalf("again: %v", err)
		}
		got, err := s.Head(t.Context(), "t")
		if err != nil || got.Version != h.Version {
			t.Fatalf("version %d (%v), want %d", got.Version, err, h.Version)
		}
	}
	if parts, err := s.Parts(t.Context(), "t", task.PartEntry, "", 0, h.Journal); err != nil || len(parts) != int(h.Journal) {
		t.Errorf("%d entries, %v", len(parts), err)
	}
	if ended == 0 {
		t.Error("no context ended in time")
	}
}

// A file that somebody has edited is an error of its own, not a task that is gone.
func TestDamagedHead(t *testing.T) {
	for name, c := range map[string]struct{ set, want string }{
		"questions": {"asked = '[{'", "unexpected end of JSON"},
		"outcome":   {"outcome = 'done'", "invalid character"},
		"a number":  {"phase = 256", "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tasks.db")
			s := open(t, path, nil)
			if err := s.Create(t.Context(), task.Head{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			execute(t, raw(t, path), "UPDATE tasks SET "+c.set)
			if h, err := s.Head(t.Context(), "t"); err == nil || h.ID != "" || errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want an error with %q alone", h, err, c.want)
			}
		})
	}
}
