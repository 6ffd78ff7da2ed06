package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// A handler that is cancelled at work is told once and then cleans up: its steps are recorded, its
// waits are over at once, and nobody calls its end a failure (tasks rule 14).
func TestCancelledAtWork(t *testing.T) {
	var seen []string
	see := func(what string, err error) {
		switch {
		case errors.Is(err, thaw.ErrCancelled):
			what += " cancelled"
		case err != nil:
			what += ": " + err.Error()
		}
		seen = append(seen, what)
	}
	tool := tool1(func(ctx context.Context) (any, error) {
		err := thaw.Do(ctx, "work", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		see("work", err)
		see("undo", thaw.Do(ctx, "undo", func(ctx context.Context) error { time.Sleep(2 * time.Minute); return ctx.Err() }))
		see("sleep", thaw.Sleep(ctx, "sleep", time.Hour))
		see("short sleep", thaw.Sleep(ctx, "short", time.Millisecond))
		see("wait", thaw.WaitUntil(ctx, "wait", time.Hour, func(context.Context) (bool, error) { return false, nil }))
		_, asked := thaw.Confirm(ctx, "ask", "Sure?")
		see("question", asked)
		see("undo more", thaw.Do(ctx, "undo more", func(context.Context) error { return nil }))
		return nil, err
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	log := &lockedBuffer{}
	store := memstore.New(nil)
	o := Options{Store: store, Logger: slog.New(slog.NewTextHandler(log, nil))}
	working(t, []*thaw.Tool{tool}, o, func(t *testing.T, h *Handler) {
		id := created(t, h, tasking(callT()))
		time.Sleep(time.Minute)
		if a := do(t, h, taskMethod("tasks/cancel", id).request(t)); a.code() != 0 {
			t.Errorf("%s", a.raw)
		}
		before := got(t, h, id)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{"work cancelled", "undo", "sleep cancelled", "short sleep cancelled", "wait cancelled", "question cancelled", "undo more"}
		if !slices.Equal(seen, want) {
			t.Errorf("%q, want %q", seen, want)
		}
		after := got(t, h, id)
		if after["status"] != "cancelled" || after["lastUpdatedAt"] != before["lastUpdatedAt"] || after["result"] != nil || after["error"] != nil {
			t.Errorf("%v", after)
		}
		if head, err := store.Head(t.Context(), id); err != nil || head.Phase != task.Done || head.Journal != 2 || head.Claims != 1 {
			t.Errorf("%+v, %v", head, err)
		}
	})
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%s", log.String())
	}
}

// A task that is cancelled while it is in nobody's hands is run to clean up and for nothing else:
// the handler is told at the first thing that is not recorded, wherever that is. One that has
// recorded nothing has its ctx ended from the start (tasks rule 14).
func TestCleanUpGoesNoFurther(t *testing.T) {
	for name, c := range map[string]struct {
		first bool // the run before has recorded a step
		want  []string
	}{
		"after a step": {true, []string{"alive true", "one", "two cancelled", "alive false", "undo"}},
		"from nothing": {false, []string{"alive false", "one cancelled", "alive false", "undo"}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			clean := false
			see := func(what string, err error) {
				if errors.Is(err, thaw.ErrCancelled) {
					what += " cancelled"
				} else if err != nil {
					what += ": " + err.Error()
				}
				seen = append(seen, what)
			}
			done := func(context.Context) error { return nil }
			tool := tool1(func(ctx context.Context) (any, error) {
				if !clean {
					if c.first {
						_ = thaw.Do(ctx, "one", done)
					}
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				see(fmt.Sprintf("alive %t", ctx.Err() == nil), nil)
				err := thaw.Do(ctx, "one", done)
				see("one", err)
				if err == nil {
					err = thaw.Do(ctx, "two", done)
					see("two", err)
				}
				see(fmt.Sprintf("alive %t", ctx.Err() == nil), nil)
				see("undo", thaw.Do(ctx, "undo", func(ctx context.Context) error { return ctx.Err() }))
				return nil, err
			}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
				id := created(t, h, tasking(callT()))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				h.RunTask(ctx, id)
				if a := do(t, h, taskMethod("tasks/cancel", id).request(t)); a.code() != 0 {
					t.Fatalf("%s", a.raw)
				}
				clean = true
				if ack, _ := h.RunTask(t.Context(), id); !ack || !slices.Equal(seen, c.want) {
					t.Errorf("ack %t, %q, want %q", ack, seen, c.want)
				}
				if ack, _ := h.RunTask(t.Context(), id); !ack || len(seen) != len(c.want) {
					t.Errorf("ack %t, again: %q", ack, seen)
				}
			})
		})
	}
}

// A handler that outstays the worker's time is released and its host told; in the end the task
// fails, and says why (tasks rule 10).
func TestHandlerThatDoesNotEnd(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		leaks bool
	}{"does not heed its ctx": {15*time.Minute - taskReserve/2, true}, "does": {15*time.Minute - taskReserve, false}} {
		t.Run(name, func(t *testing.T) {
			var stuck chan struct{}
			tool := tool1(func(ctx context.Context) (any, error) {
				if c.leaks {
					<-stuck
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
				stuck = make(chan struct{})
				defer close(stuck)
				id := created(t, h, tasking(callT()))
				for try := 1; try <= 3; try++ {
					if s := got(t, h, id); s["status"] != "working" {
						t.Errorf("before try %d: %v", try, s)
					}
					var leaked atomic.Bool
					ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
					began := time.Now()
					h.RunTask(host.WithLeaked(ctx, func() { leaked.Store(true) }), id)
					cancel()
					if took := time.Since(began); took != c.takes || leaked.Load() != c.leaks {
						t.Errorf("try %d took %v, leaked %t", try, took, leaked.Load())
					}
					time.Sleep(10 * time.Minute)
				}
				if s := got(t, h, id); s["status"] != "failed" || !strings.Contains(fmt.Sprint(s["statusMessage"]), "without a step") {
					t.Errorf("%v", s)
				}
			})
		})
	}
}

// What the command of another process cancels, the one that works on tasks notices within
// seconds, whatever the task does (tasks rule 9).
func TestTasksCancelOfAnotherProcess(t *testing.T) {
	for name, c := range map[string]struct {
		wait   func(ctx context.Context) error
		within time.Duration
	}{
		"asleep":  {func(ctx context.Context) error { return thaw.Sleep(ctx, "nap", 10*time.Hour) }, sweepEvery},
		"asking":  {func(ctx context.Context) error { _, err := thaw.Confirm(ctx, "sure", "Sure?"); return err }, sweepEvery},
		"at work": {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var over time.Time
			tool := tool1(func(ctx context.Context) (any, error) {
				err := c.wait(ctx)
				if errors.Is(err, thaw.ErrCancelled) {
					over = time.Now()
				}
				return nil, err
			}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			store := memstore.New(nil)
			working(t, []*thaw.Tool{tool}, Options{Store: store}, func(t *testing.T, h *Handler) {
				id := created(t, h, tasking(callT()))
				time.Sleep(time.Minute + 300*time.Millisecond)
				var out bytes.Buffer
				p := program{server: thaw.Server{Name: "s", Version: "1", Tools: []*thaw.Tool{tool}}, getenv: env(), in: strings.NewReader(""), out: &out, err: &out,
					kits: []Kit{{Configure: func(o *Options) error { o.Store = store; return nil }}}}
				began := time.Now()
				if code := p.main(t.Context(), []string{"tasks", "cancel", id}); code != 0 {
					t.Errorf("exit %d: %s", code, out.String())
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if took := over.Sub(began); over.IsZero() || took > c.within+time.Millisecond {
					t.Errorf("noticed after %v, want within %v: %s", took, c.within, out.String())
				}
				if head, err := store.Head(t.Context(), id); err != nil || head.Status != task.Cancelled || head.Phase != task.Done {
					t.Errorf("%+v, %v", head, err)
				}
			})
		})
	}
}
