package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

func backend(testing.TB) func() task.Store {
	s := memstore.New(nil)
	return func() task.Store { return s }
}

func TestUses(t *testing.T) { storetest.Uses(t, backend) }

func TestStore(t *testing.T) { storetest.Store(t, backend) }

func BenchmarkStore(b *testing.B) { storetest.BenchmarkStore(b, backend) }

func BenchmarkUses(b *testing.B) { storetest.BenchmarkUses(b, backend) }

func TestExpiredRecordsGo(t *testing.T) {
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := memstore.New(&memstore.Options{Now: func() time.Time { return clock }})
	use := func(call string, life time.Duration) task.Use {
		return task.Use{Call: call, Round: 1, Write: [16]byte{1}, Deadline: clock, Expires: clock.Add(life)}
	}
	claim := func(u task.Use) {
		t.Helper()
		if first, _, err := s.Claim(t.Context(), u); err != nil || !first {
			t.Fatalf("first=%t err=%v", first, err)
		}
	}
	finish := func(u task.Use, want error) {
		t.Helper()
		if err := s.Finish(t.Context(), u, nil); err != want {
			t.Fatalf("finish of %s: %v, want %v", u.Call, err, want)
		}
	}
	const n = 50
	var old []task.Use
	for i := range n { // the longest-lived first, so that order of claims is not order of expiry
		u := use(fmt.Sprintf("old-%d", i), time.Duration(n-i)*time.Minute)
		claim(u)
		old = append(old, u)
	}
	kept := use("kept", 2*time.Hour)
	claim(kept)

	clock = clock.Add(time.Minute) // the last of them is over, to the moment
	claim(use("a", time.Hour))
	finish(old[n-1], task.ErrNotClaimed)
	finish(old[n-2], nil)

	clock = clock.Add(n * time.Minute)
	for i := range n/2 - 1 { // two a claim: all but the first to be claimed, and the one that was removed
		claim(use(fmt.Sprintf("b-%d", i), time.Hour))
	}
	finish(old[1], task.ErrNotClaimed)
	finish(old[0], nil)
	claim(use("c", time.Hour))
	finish(old[0], task.ErrNotClaimed)
	finish(kept, nil)
}

// Rounds that move their call's expiry, either way, keep the order in which records go.
func TestLaterRoundsBringTheirExpiry(t *testing.T) {
	clock := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	s := memstore.New(&memstore.Options{Now: func() time.Time { return clock }})
	random := rand.New(rand.NewPCG(1, 2))
	var calls [100]task.Use
	claim := func(u task.Use) {
		t.Helper()
		if first, _, err := s.Claim(t.Context(), u); err != nil || !first {
			t.Fatalf("first=%t err=%v", first, err)
		}
	}
	for round := 1; round <= 5; round++ {
		for i := range calls {
			calls[i] = task.Use{Call: fmt.Sprint(i), Round: round, Write: [16]byte{1}, Deadline: clock,
				Expires: clock.Add(time.Duration(1+random.IntN(1000)) * time.Minute)}
			claim(calls[i])
		}
	}
	for range 10 {
		clock = clock.Add(100 * time.Minute)
		for range len(calls) {
			claim(task.Use{Call: "cleaning", Round: 1, Write: [16]byte{1}, Deadline: clock, Expires: clock.Add(time.Hour * 24)})
		}
		for _, u := range calls {
			if err := s.Finish(t.Context(), u, nil); (err == nil) != u.Expires.After(clock) {
				t.Errorf("%v after its expiry: %v", clock.Sub(u.Expires), err)
			}
		}
	}
}

func TestScheme(t *testing.T) {
	scheme := memstore.Scheme()
	if scheme.Name != "memory" || !strings.HasPrefix(scheme.Usage, scheme.Name) {
		t.Errorf("%+v", scheme)
	}
	s, err := scheme.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if first, _, err := s.Claim(t.Context(), task.Use{Call: "c", Round: 1, Write: [16]byte{1}, Deadline: time.Now(), Expires: time.Now()}); err != nil || !first {
		t.Errorf("first=%t err=%v", first, err)
	}
	if s, err := scheme.Open(t.Context(), "tasks.db"); err == nil || s != nil {
		t.Errorf("a path was taken: %v, %v", s, err)
	}
}
