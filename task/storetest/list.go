package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

func listed(t *testing.T, open func() task.Store) {
	s := open()
	recent := func(limit int) []task.Head {
		t.Helper()
		heads, err := open().(task.Lister).Recent(t.Context(), limit)
		if err != nil {
			t.Fatalf("recent: %v", err)
		}
		return heads
	}
	if heads := recent(1); len(heads) != 0 {
		t.Errorf("%d tasks before there is one", len(heads))
	}
	const n = 12
	var all []task.Head // the latest first
	for i := range n {
		h := newHead(fmt.Sprintf("t-%02d", (i*5)%n))
		if i == n/2 {
			h = fullHead(h.ID)
		}
		h.Created = now().Add(time.Duration(i) * time.Millisecond)
		all = append([]task.Head{createTask(t, s, h)}, all...)
	}
	all[n-1] = commitNext(t, s, all[n-1], func(h *task.Head) { h.Status, h.Phase, h.Wake = task.Completed, task.Done, time.Time{} })
	for _, limit := range []int{1, n / 2, n, n + 1} {
		heads := recent(limit)
		want := all[:min(limit, n)]
		if !slices.EqualFunc(heads, want, task.Head.Equal) {
			t.Errorf("limit %d: %d tasks, the first %+v; want %d, the first %+v", limit, len(heads), heads[0], len(want), want[0])
		}
	}
	for _, limit := range []int{0, -1} {
		heads, err := s.(task.Lister).Recent(t.Context(), limit)
		if want := task.CheckRecent(limit); err == nil || err.Error() != want.Error() || len(heads) > 0 {
			t.Errorf("limit %d: %d tasks, %v; want %v", limit, len(heads), err, want)
		}
	}
}
