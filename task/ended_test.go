package task_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// A task that has run before it is stored is there with its end, nobody works on it, and of two of
// one id the first stays.
func TestCreateEnded(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": 100_000} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				result := `"` + strings.Repeat("x", size) + `"`
				c := task.Creation{ID: id, Tool: "tool", Owner: owner, TTL: time.Hour, Call: []byte(`"first"`)}
				began := time.Now().Truncate(time.Millisecond)
				for _, outcome := range []string{result, `"second"`} {
					time.Sleep(time.Minute)
					h, err := w.api.CreateEnded(w.Context(), began, c, task.Outcome{Status: task.Completed, Data: []byte(outcome)})
					if err != nil || h.Status != task.Completed || h.Version != 1 {
						w.Fatalf("%+v, %v", h, err)
					}
					c.Call = []byte(`"second"`)
					if !h.Created.Equal(began) || h.Updated.Sub(began) != time.Minute {
						w.Errorf("created at %s and ended at %s, began at %s", h.Created, h.Updated, began)
					}
				}
				w.want(task.Completed, task.Done)
				if s, err := w.api.Get(w.Context(), id, owner); err != nil || string(s.Outcome) != result {
					w.Errorf("%.20s, %v", s.Outcome, err)
				}
				if call, err := w.api.Call(w.Context(), id, owner); err != nil || string(call) != `"first"` {
					w.Errorf("%s, %v", call, err)
				}
				if n := w.queue.take(); n != 0 {
					w.Errorf("%d messages", n)
				}
				if due, err := w.store.Due(w.Context(), time.Now().Add(time.Hour), task.Shard(id), 10); err != nil || len(due) != 0 {
					w.Errorf("due: %v, %v", due, err)
				}
			})
		})
	}
}

// What a task was created with is for its owner alone.
func TestCallIsItsOwners(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		if _, err := w.api.Call(w.Context(), id, [32]byte{2}); !errors.Is(err, task.ErrNotFound) {
			w.Errorf("another owner: %v", err)
		}
		if _, err := w.api.Call(w.Context(), "other", owner); !errors.Is(err, task.ErrNotFound) {
			w.Errorf("another task: %v", err)
		}
		if call, err := w.api.Call(w.Context(), id, owner); err != nil || len(call) == 0 {
			w.Errorf("%s, %v", call, err)
		}
	})
}
