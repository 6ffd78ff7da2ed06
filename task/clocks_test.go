package task_test

import (
	"context"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// A lease is taken over when its holder begins nothing any more, although their clocks differ by
// seconds, whichever is ahead (tasks rule 9).
func TestRule9ClocksDiffer(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"not at all": 0, "the next is ahead": 4 * time.Second, "far ahead": 9900 * time.Millisecond,
		"the next is behind": -4 * time.Second, "far behind": -30 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				holder := w.worker()
				w.skew = func() time.Duration { return ahead }
				next := w.worker()
				claimed, last := make(chan struct{}), time.Time{}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					holder.work(func(_ context.Context, c *task.Claim) task.Result {
						holder.faulty(func(string) (before, after error) { return errLost, nil })
						close(claimed)
						for c.Begin() == nil {
							last = time.Now()
							time.Sleep(50 * time.Millisecond)
						}
						return task.Result{Release: "cut off"}
					})
				}()
				<-claimed
				began := time.Now()
				for next.runs == 0 {
					next.work(func(context.Context, *task.Claim) task.Result {
						return task.Result{Outcome: &task.Outcome{Status: task.Completed, Data: []byte("1")}}
					})
					time.Sleep(50 * time.Millisecond)
				}
				took := time.Since(began)
				<-ended
				if !began.Add(took).After(last) || took-65*time.Second+ahead > time.Second {
					w.Errorf("taken over after %s; the holder last began something after %s", took, last.Sub(began))
				}
				w.want(task.Completed, task.Done)
			})
		})
	}
}
