package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

// many is how many goroutines meet at one record.
const many = 100

// atOnce runs f many times at the same moment, over two stores on one place.
func atOnce(open func() task.Store, f func(i int, s task.Store)) {
	stores := [2]task.Store{open(), open()}
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			<-start
			f(i, stores[i%len(stores)])
		})
	}
	close(start)
	all.Wait()
}

func oneFirst(t *testing.T, open func() task.Store) {
	var (
		uses   [many]task.Use
		prevs  [many]task.Used
		winner atomic.Int64
		firsts atomic.Int64
	)
	for i := range uses {
		uses[i] = use("c", 1)
	}
	atOnce(open, func(i int, s task.Store) {
		first, prev, err := s.Claim(t.Context(), uses[i])
		if err != nil {
			t.Error(err)
		}
		if first {
			firsts.Add(1)
			winner.Store(int64(i))
		}
		prevs[i] = prev
	})
	if firsts.Load() != 1 {
		t.Fatalf("%d claims were first, want 1", firsts.Load())
	}
	for i, prev := range prevs {
		want := running(uses[winner.Load()])
		if int64(i) == winner.Load() {
			want = task.Used{}
		}
		if !same(prev, want) {
			t.Errorf("claim %d found %s, want %s", i, show(prev), show(want))
		}
	}
}

func sameWriteAtOnce(t *testing.T, open func() task.Store) {
	u := use("c", 1)
	atOnce(open, func(_ int, s task.Store) {
		if first, _, err := s.Claim(t.Context(), u); err != nil || !first {
			t.Errorf("first=%t err=%v, want first", first, err)
		}
	})
	claimUsed(t, open(), use("c", 1), running(u))
}

func roundsAtOnce(t *testing.T, open func() task.Store) {
	var uses [many]task.Use
	for i := range uses {
		uses[i] = use("c", i+1)
	}
	atOnce(open, func(i int, s task.Store) {
		first, prev, err := s.Claim(t.Context(), uses[i])
		switch {
		case err != nil:
			t.Error(err)
		case i == many-1 && !first:
			t.Errorf("the last round found %s, want first", show(prev))
		case !first && (prev.Round <= i+1 || !same(prev, running(uses[prev.Round-1]))):
			t.Errorf("round %d found %s", i+1, show(prev))
		}
	})
	last := uses[many-1]
	claimUsed(t, open(), use("c", many), running(last))
}

func finishAtOnce(t *testing.T, open func() task.Store) {
	u := use("c", 1)
	claimFirst(t, open(), u)
	var found [many]task.Used
	atOnce(open, func(i int, s task.Store) {
		err := s.Finish(t.Context(), u, fmt.Appendf(nil, "answer %d", i))
		if err == nil {
			_, found[i], err = s.Claim(t.Context(), use("c", 1))
		}
		if err != nil {
			t.Error(err)
		}
	})
	if !found[0].Done || len(found[0].Response) == 0 {
		t.Fatalf("found %s, want a response", show(found[0]))
	}
	for i := range found {
		if !same(found[i], found[0]) {
			t.Errorf("%d found %q, another %q", i, found[i].Response, found[0].Response)
		}
	}
}
