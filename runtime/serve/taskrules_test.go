package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// ran has a worker with 15 minutes look at a task.
func ran(t *testing.T, h *Handler, id string) (ack bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	ack, _ = h.RunTask(ctx, id)
	return ack
}

// A step that asks to be tried again later gives its worker up, keeps its count over workers, and
// fails with its last error when that is used up (tasks rule 8).
func TestRetryOfATask(t *testing.T) {
	for name, c := range map[string]struct {
		good  int // the try that is
		tries int
		want  string
	}{"the third is good": {3, 3, "done"}, "none is": {9, 4, "busy"}} {
		t.Run(name, func(t *testing.T) {
			tries, runs := 0, 0
			tool := tool1(func(ctx context.Context) (any, error) {
				runs++
				err := thaw.Do(ctx, "flaky", func(context.Context) error {
					if tries++; tries < c.good {
						return thaw.RetryAfter(thaw.Errorf("busy"), 20*time.Minute, 4)
					}
					return nil
				})
				return "done", err
			}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
				id := created(t, h, tasking(callT()))
				for try := 1; try < c.tries; try++ {
					if !ran(t, h, id) || tries != try {
						t.Fatalf("%d tries, want %d", tries, try)
					}
					if s := got(t, h, id); s["status"] != "working" {
						t.Fatalf("after %d tries: %v", try, s)
					}
					time.Sleep(19 * time.Minute)
					if ran(t, h, id); tries != try {
						t.Errorf("tried after 19 minutes")
					}
					time.Sleep(time.Minute)
				}
				ran(t, h, id)
				s := got(t, h, id)
				if tries != c.tries || runs != c.tries || !strings.Contains(fmt.Sprint(s["result"]), c.want) {
					t.Errorf("%d tries in %d runs: %v", tries, runs, s)
				}
			})
		})
	}
}

// A step or a poll begins only if the tool's StepTime fits into what the worker has left, or if it
// is the first of its run; the handler's own time does not matter (tasks rule 10).
func TestStepTime(t *testing.T) {
	long := func(ctx context.Context) { time.Sleep(13*time.Minute + 45*time.Second) }
	step := func(ctx context.Context) error {
		return thaw.Do(ctx, "second", func(context.Context) error { return nil })
	}
	poll := func(ctx context.Context) error {
		return thaw.WaitUntil(ctx, "second", time.Hour, func(context.Context) (bool, error) { return true, nil })
	}
	for name, c := range map[string]struct {
		between func(context.Context)
		second  func(context.Context) error
		o       thaw.ToolOptions
		runs    int
	}{
		"it fits":              {func(context.Context) { time.Sleep(13 * time.Minute) }, step, thaw.ToolOptions{}, 1},
		"it does not":          {long, step, thaw.ToolOptions{}, 2},
		"a shorter one does":   {long, step, thaw.ToolOptions{StepTime: 30 * time.Second}, 1},
		"a poll does not":      {long, poll, thaw.ToolOptions{}, 2},
		"a handler in a hurry": {func(context.Context) {}, step, thaw.ToolOptions{Timeout: 30 * time.Second}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			c.o.Tasks = thaw.TaskAlways
			tool := tool1(func(ctx context.Context) (any, error) {
				runs++
				fresh := false
				if err := thaw.Do(ctx, "first", func(context.Context) error { fresh = true; return nil }); err != nil {
					return nil, err
				}
				if fresh {
					c.between(ctx)
				}
				return "done", c.second(ctx)
			}, &c.o)
			posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
				id := created(t, h, tasking(callT()))
				for range c.runs {
					if !ran(t, h, id) {
						t.Error("the message was kept")
					}
				}
				if s := got(t, h, id); s["status"] != "completed" || runs != c.runs {
					t.Errorf("%d runs: %v", runs, s)
				}
			})
		})
	}
}

// A worker that stops does its tasks no harm: one that it was about to read is left to others at
// once, and a handler that does not end counts like a death and not as one that has no steps
// (tasks rules 8 and 10).
func TestWorkerThatStops(t *testing.T) {
	t.Run("while it reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			store := &stopping{Store: memstore.New(nil), stop: stop}
			tool := tool1(func(context.Context) (any, error) { return "done", nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{Store: store, StateKeys: keys(&testKey{secret: "k"}), Dispatcher: &outbox{}})
			id := created(t, h, tasking(callT()))
			if ack, _ := h.RunTask(ctx, id); !ack {
				t.Error("the message was kept")
			}
			if head, err := store.Head(t.Context(), id); err != nil || head.Phase != task.Ready || head.Interrupted != 0 || head.Wake.After(time.Now()) {
				t.Errorf("%+v, %v", head, err)
			}
		})
	})
	t.Run("while a handler does not end", func(t *testing.T) {
		var stuck chan struct{}
		tool := tool1(func(context.Context) (any, error) { <-stuck; return nil, nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
		posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
			stuck = make(chan struct{})
			defer close(stuck)
			id := created(t, h, tasking(callT()))
			for range 4 {
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, stop)
				h.RunTask(host.WithLeaked(ctx, func() {}), id)
				time.Sleep(10 * time.Minute)
			}
			if s := got(t, h, id); s["status"] != "failed" || !strings.Contains(fmt.Sprint(s["statusMessage"]), "interrupted too often") {
				t.Errorf("%v", s)
			}
		})
	})
}

// stopping is a store whose reader is stopped when it reads a part.
type stopping struct {
	task.Store
	stop context.CancelFunc
}

func (s *stopping) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	if s.stop(); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, errors.New("the reader was not stopped")
}

func (s *stopping) Due(ctx context.Context, before time.Time, shard, limit int) ([]string, error) {
	return s.Store.(task.Sweeper).Due(ctx, before, shard, limit)
}

// A task of a tool that this binary does not have, or that a newer one has stored, is left to
// others for as long as there are any, and counts no interruption (tasks rule 19).
func TestTaskOfAnotherBinary(t *testing.T) {
	for name, change := range map[string]func(h *task.Head){
		"another tool":   func(h *task.Head) { h.Tool = "gone" },
		"a newer format": func(h *task.Head) { h.Format = taskFormat + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran, store := 0, memstore.New(nil)
				tool := tool1(func(context.Context) (any, error) { ran++; return "done", nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
				h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{Store: store, StateKeys: keys(&testKey{secret: "k"}), Dispatcher: &outbox{}})
				id := created(t, h, tasking(callT()))
				head, err := store.Head(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				before := head
				head.Version++
				change(&head)
				if err := store.Commit(t.Context(), time.Now(), head); err != nil {
					t.Fatal(err)
				}
				for range 5 {
					h.RunTask(t.Context(), id)
					time.Sleep(leaveTime)
				}
				left, err := store.Head(t.Context(), id)
				if err != nil || ran != 0 || left.Status != task.Working || left.Interrupted != 0 {
					t.Fatalf("ran %d times: %+v, %v", ran, left, err)
				}
				left.Version++
				left.Tool, left.Format = before.Tool, before.Format // a worker that knows it
				if err := store.Commit(t.Context(), time.Now(), left); err != nil {
					t.Fatal(err)
				}
				h.RunTask(t.Context(), id)
				if s := got(t, h, id); s["status"] != "completed" || ran != 1 {
					t.Errorf("%v", s)
				}
			})
		})
	}
}
