package task_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

// A task whose message went nowhere is found by the sweep of any process as soon as it is
// redriven; one that no worker may claim stays as it is.
func TestRedrive(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	store := memstore.New(&memstore.Options{Now: clock})
	losing := true // the first swap
	e := task.New(&storetest.Faulty{Store: store, Fault: func(method string) (before, after error) {
		if method == "Commit" && losing {
			losing = false
			h, err := store.Head(t.Context(), "ready")
			if err != nil {
				t.Error(err)
			}
			return nil, &task.Conflict{Now: h}
		}
		return nil, nil
	}}, &task.Options{Now: clock})
	serving := task.New(store, &task.Options{Now: clock, Dispatcher: deaf{}})
	due := func(id string) bool {
		ids, err := store.Due(t.Context(), now, task.Shard(id), 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(ids) > 0
	}
	create := func(id string) {
		if _, err := serving.Create(t.Context(), task.Creation{ID: id, TTL: time.Hour}, task.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	create("ready")
	if due("ready") {
		t.Fatal("due before it was redriven")
	}
	if h, told, err := e.Redrive(t.Context(), "ready"); !told || err != nil || h.Phase != task.Ready || !due("ready") {
		t.Errorf("told %t, %v, %+v", told, err, h)
	}
	now = now.Add(time.Millisecond)
	if looked, err := serving.Sweep(t.Context()); looked != 1 || err != nil || due("ready") {
		t.Errorf("a sweep looked at %d, %v", looked, err)
	}
	serving.Work(t.Context(), "ready", func(context.Context, *task.Claim) task.Result {
		before, err := store.Head(t.Context(), "ready")
		if err != nil {
			t.Error(err)
		}
		if h, told, err := e.Redrive(t.Context(), "ready"); told || err != nil || h.Phase != task.Running || h.Version != before.Version {
			t.Errorf("at work: told %t, %v, %+v", told, err, h)
		}
		return task.Result{Outcome: &task.Outcome{Status: task.Completed, Data: []byte("1")}}
	})
	if h, told, err := e.Redrive(t.Context(), "ready"); told || err != nil || h.Status != task.Completed {
		t.Errorf("ended: told %t, %v, %+v", told, err, h)
	}
	create("late")
	now = now.Add(2 * time.Hour)
	for _, id := range []string{"late", "nobody", ""} {
		if _, told, err := e.Redrive(t.Context(), id); told || !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%q: told %t, %v", id, told, err)
		}
	}
}

// deaf takes messages and tells nobody.
type deaf struct{}

func (deaf) Dispatch(context.Context, string, time.Duration) error { return nil }
