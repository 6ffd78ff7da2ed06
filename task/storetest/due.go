package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// eventually waits until check finds nothing wrong: an index may lag.
func eventually(tb testing.TB, check func() error) {
	tb.Helper()
	err := check()
	for wait, tries := 10*time.Millisecond, 16; err != nil && tries > 0; wait, tries = wait*3/2, tries-1 {
		select {
		case <-time.After(wait):
		case <-tb.Context().Done():
		}
		err = check()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// due is what is due in each shard.
func due(tb testing.TB, s task.Store, before time.Time, limit int) [task.Shards][]string {
	tb.Helper()
	var shards [task.Shards][]string
	for shard := range shards {
		ids, err := s.(task.Sweeper).Due(tb.Context(), before, shard, limit)
		if err != nil {
			tb.Fatalf("due in shard %d: %v", shard, err)
		}
		shards[shard] = ids
	}
	return shards
}

// dueAre waits until these are due, each in one shard and there in this order.
func dueAre(tb testing.TB, s task.Store, before time.Time, want ...string) [task.Shards][]string {
	tb.Helper()
	var shards [task.Shards][]string
	eventually(tb, func() error {
		shards = due(tb, s, before, 1000)
		var all []string
		for shard, ids := range shards {
			all = append(all, ids...)
			order := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return !slices.Contains(ids, id) })
			if len(order) == len(ids) && !slices.Equal(order, ids) {
				return fmt.Errorf("shard %d has %v, want the order %v", shard, ids, order)
			}
		}
		slices.Sort(all)
		sorted := slices.Sorted(slices.Values(want))
		if !slices.Equal(all, sorted) {
			return fmt.Errorf("due are %v, want %v", all, sorted)
		}
		return nil
	})
	return shards
}

func dueInOrder(t *testing.T, open func() task.Store) {
	s := open()
	const n = 64 // so that a shard has four at least
	at := now().Add(time.Hour)
	var all []string
	for i := range n {
		h := newHead(fmt.Sprintf("t-%02d", i))
		h.Wake = at.Add(time.Duration(n-i) * time.Millisecond)
		createTask(t, s, h)
		all = append([]string{h.ID}, all...)
	}
	shards := dueAre(t, s, at.Add(n*time.Millisecond), all...)
	full := slices.MaxFunc(shards[:], func(a, b []string) int { return len(a) - len(b) })
	shard := slices.IndexFunc(shards[:], func(ids []string) bool { return slices.Equal(ids, full) })
	for limit := 1; limit <= len(full)+1; limit++ {
		eventually(t, func() error {
			got := due(t, open(), at.Add(time.Minute), limit)[shard]
			if want := full[:min(limit, len(full))]; !slices.Equal(got, want) {
				return fmt.Errorf("with limit %d %v, want %v", limit, got, want)
			}
			return nil
		})
	}
	dueAre(t, s, at.Add(10*time.Millisecond), all[:10]...) // to the moment
	dueAre(t, s, at.Add(11*time.Millisecond-1), all[:10]...)
	dueAre(t, s, at)
}

func notDue(t *testing.T, open func() task.Store) {
	s := open()
	asleep, waiting, marker := newHead("asleep"), newHead("waiting"), newHead("marker")
	waiting.Wake = time.Time{}
	asleep.Wake = now().Add(time.Hour)
	marker.Wake = now().Add(-time.Hour)
	for _, h := range []task.Head{asleep, waiting, marker} {
		createTask(t, s, h)
	}
	u := use("c", 1)
	claimFirst(t, s, u)
	dueAre(t, s, now(), "marker")
	dueAre(t, s, asleep.Wake.Add(-time.Millisecond), "marker")
	dueAre(t, s, asleep.Wake, "marker", "asleep")
	dueAre(t, s, now().Add(50*time.Minute), "marker")
}

func dueMoves(t *testing.T, open func() task.Store) {
	s := open()
	wakes := func(at time.Time) func(*task.Head) { return func(h *task.Head) { h.Wake = at } }
	at := now()
	a, b := newHead("a"), newHead("b")
	a.Wake, b.Wake = at, at.Add(time.Millisecond)
	a, b = createTask(t, s, a), createTask(t, s, b)
	shards := dueAre(t, s, at.Add(time.Second), "a", "b")
	a = commitNext(t, s, a, unchanged)
	dueAre(t, s, at.Add(time.Second), "a", "b")
	a = commitNext(t, s, a, wakes(at.Add(time.Minute)))
	dueAre(t, s, at.Add(time.Second), "b")
	a = commitNext(t, s, a, wakes(at.Add(time.Microsecond)))
	hasA := func(ids []string) bool { return slices.Contains(ids, "a") }
	again := dueAre(t, s, at, "a")
	if before, after := slices.IndexFunc(shards[:], hasA), slices.IndexFunc(again[:], hasA); before != after {
		t.Errorf("the task went from shard %d to %d", before, after)
	}
	b = commitNext(t, s, b, wakes(time.Time{})) // it waits for input, or has ended
	dueAre(t, s, at.Add(time.Hour), "a")
	lost := b
	lost.Version, lost.Wake = 9, at
	conflicts(t, s, lost, b)
	dueAre(t, s, at.Add(time.Hour), "a")
	commitNext(t, s, b, wakes(at.Add(-time.Minute)))
	commitNext(t, s, a, wakes(time.Time{}))
	dueAre(t, s, at.Add(time.Hour), "b")
}

func dueChecked(t *testing.T, open func() task.Store) {
	s := open()
	createTask(t, s, newHead("t"))
	for _, c := range [][2]int{{-1, 1}, {task.Shards, 1}, {0, 0}, {0, -1}} {
		ids, err := s.(task.Sweeper).Due(t.Context(), now(), c[0], c[1])
		if want := task.CheckDue(c[0], c[1]); err == nil || err.Error() != want.Error() || len(ids) > 0 {
			t.Errorf("shard %d, limit %d: %v, %v; want %v", c[0], c[1], ids, err, want)
		}
	}
}
