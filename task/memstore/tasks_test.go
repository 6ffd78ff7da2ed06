package memstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// Heads go when they have expired, the oldest first and a few at a time, and their parts a
// day later (T-27).
func TestExpiredTasksGo(t *testing.T) {
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := memstore.New(&memstore.Options{Now: func() time.Time { return clock }})
	create := func(id string, life time.Duration) task.Head {
		t.Helper()
		h := task.Head{ID: id, Version: 1, Wake: clock}
		if life > 0 {
			h.Expires = clock.Add(life)
		}
		if err := s.Create(t.Context(), h, task.Part{Data: []byte("call of " + id)}); err != nil {
			t.Fatal(err)
		}
		return h
	}
	const n = 20
	old := func(i int) string { return fmt.Sprint("old-", i) }
	for i := range n { // the longest-lived first
		create(old(i), time.Duration(n-i)*time.Minute)
	}
	later := create("later", time.Minute)
	later.Version, later.Expires = 2, clock.Add(100*time.Hour)
	if err := s.Commit(t.Context(), clock, later); err != nil {
		t.Fatal(err)
	}
	create("never", 0)
	left := func() (heads, parts int) {
		for i := range n {
			if _, err := s.Head(t.Context(), old(i)); err == nil {
				heads++
			} else if !errors.Is(err, task.ErrNotFound) {
				t.Fatal(err)
			}
			if _, err := s.Parts(t.Context(), old(i), task.PartCall, "", 0, 0); err == nil {
				parts++
			} else if !errors.Is(err, task.ErrNotFound) {
				t.Fatal(err)
			}
		}
		return heads, parts
	}
	wantLeft := func(heads, parts int) {
		t.Helper()
		if h, p := left(); h != heads || p != parts {
			t.Fatalf("%d heads and %d calls are left, want %d and %d", h, p, heads, parts)
		}
	}

	clock = clock.Add(time.Minute) // one is over, to the moment
	wantLeft(n, n)
	create("new", 1000*time.Hour)
	wantLeft(n-1, n)
	clock = clock.Add(n * time.Minute)
	for i, want := 0, n-1; want > 0; i++ {
		create(fmt.Sprint("new-", i), 1000*time.Hour)
		want = max(0, want-4)
		wantLeft(want, n)
	}
	due, err := s.Due(t.Context(), clock, task.Shard(old(3)), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range due {
		if id == old(3) {
			t.Error("a removed task is due")
		}
	}

	again := create(old(0), 1000*time.Hour) // it has nothing of the one before
	if _, err := s.Parts(t.Context(), again.ID, task.PartEntry, "", 0, 1); !errors.Is(err, task.ErrCorrupt) {
		t.Errorf("entries: %v", err)
	}
	clock = clock.Add(24*time.Hour - n*time.Minute)
	create("a-day-after-the-first", 1000*time.Hour)
	wantLeft(1, n-1)
	clock = clock.Add(n * time.Minute)
	for i, want := 0, n-1; want > 1; i++ {
		create(fmt.Sprint("last-", i), 1000*time.Hour)
		want = max(1, want-4)
		wantLeft(1, want)
	}
	for _, id := range []string{"later", "never", "new", old(0)} {
		if parts, err := s.Parts(t.Context(), id, task.PartCall, "", 0, 0); err != nil || string(parts[0].Data) != "call of "+id {
			t.Errorf("the call of %s: %v", id, err)
		}
		if _, err := s.Head(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// What has expired does not stand in the way of what is due.
func TestDueLeavesOutTheExpired(t *testing.T) {
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := memstore.New(&memstore.Options{Now: func() time.Time { return clock }})
	for i := range 100 {
		h := task.Head{ID: fmt.Sprint("t-", i), Wake: clock.Add(time.Duration(i) * time.Second), Expires: clock.Add(time.Minute)}
		if i >= 90 {
			h.Expires = time.Time{}
		}
		if err := s.Create(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // asking changes nothing
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
}
