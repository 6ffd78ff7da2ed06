package thaw_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/thawtest"
)

// waits is a tool that does no more than wait.
func waits(opts thaw.ToolOptions, wait func(ctx context.Context) error) *thaw.Tool {
	return thaw.NewTool("waits", "", func(ctx context.Context, _ struct{}) (string, error) { return "over", wait(ctx) }, &opts)
}

func TestWaitOutsideAHandler(t *testing.T) {
	for name, err := range map[string]error{
		"ContinueAsTask": thaw.ContinueAsTask(t.Context()),
		"Sleep":          thaw.Sleep(t.Context(), "k", time.Hour),
		"WaitUntil":      thaw.WaitUntil(t.Context(), "k", time.Hour, func(context.Context) (bool, error) { return true, nil }),
	} {
		if !errors.Is(err, thaw.ErrNoCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In a request a wait takes place where it is, if the call's time allows.
func TestWaitInPlace(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		wait    func(ctx context.Context) error
		takes   time.Duration
		fails   bool
	}{
		"sleep":              {0, func(ctx context.Context) error { return thaw.Sleep(ctx, "k", time.Hour) }, time.Hour, false},
		"sleep with time":    {2 * time.Hour, func(ctx context.Context) error { return thaw.Sleep(ctx, "k", time.Hour) }, time.Hour, false},
		"sleep too long":     {time.Minute, func(ctx context.Context) error { return thaw.Sleep(ctx, "k", time.Hour) }, 0, true},
		"wait until":         {0, thirdLook(time.Hour), 2 * time.Hour, false},
		"wait until in vain": {90 * time.Minute, thirdLook(time.Hour), time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got error
				tool := waits(thaw.ToolOptions{Tasks: thaw.TaskNever, Timeout: c.timeout}, func(ctx context.Context) error {
					got = c.wait(ctx)
					return got
				})
				began := time.Now()
				call := thawtest.Start(t, tool, nil, nil)
				if took := time.Since(began); took != c.takes || errors.Is(got, thaw.ErrUnsupported) != c.fails || (call.Err() != nil) != c.fails {
					t.Errorf("after %v: %v, %v; want %v", took, got, call.Err(), c.takes)
				}
			})
		})
	}
}

func thirdLook(every time.Duration) func(ctx context.Context) error {
	looks := 0
	return func(ctx context.Context) error {
		return thaw.WaitUntil(ctx, "k", every, func(context.Context) (bool, error) {
			looks++
			return looks == 3, nil
		})
	}
}

// A task gives its worker up while it sleeps, and what was slept is not slept again.
func TestSleepOfATask(t *testing.T) {
	runs := 0
	tool := waits(thaw.ToolOptions{Tasks: thaw.TaskAlways}, func(ctx context.Context) error {
		runs++
		if err := thaw.Sleep(ctx, "first", 5*time.Hour); err != nil {
			if !errors.Is(err, thaw.ErrSuspended) {
				t.Errorf("%v", err)
			}
			return err
		}
		return thaw.Sleep(ctx, "second", time.Hour)
	})
	c := thawtest.Start(t, tool, nil, nil)
	if c.Advance(5*time.Hour - time.Millisecond); c.Done() || runs != 1 {
		t.Errorf("done %t after %d runs", c.Done(), runs)
	}
	if c.Advance(time.Millisecond); c.Done() || runs != 2 {
		t.Errorf("done %t after %d runs", c.Done(), runs)
	}
	// The worker died that has begun the second sleep: only that begins anew.
	if c.Crash(); c.Done() || runs != 3 {
		t.Errorf("done %t after %d runs", c.Done(), runs)
	}
	if c.Advance(time.Hour); !c.Done() || c.Text() != "over" || runs != 4 {
		t.Errorf("done %t, %q, %v after %d runs", c.Done(), c.Text(), c.Err(), runs)
	}
}

func TestSleepPastTheEndOfATask(t *testing.T) {
	tool := waits(thaw.ToolOptions{Tasks: thaw.TaskAlways, TaskTTL: time.Hour}, func(ctx context.Context) error { return thaw.Sleep(ctx, "k", 2*time.Hour) })
	if c := thawtest.Start(t, tool, nil, nil); !c.Done() || !c.IsError() || !strings.Contains(c.Text(), "time to live") {
		t.Errorf("done %t, %q", c.Done(), c.Text())
	}
}

// However often it looks, its end is recorded once, and a failure like that of a step.
func TestWaitUntilOfATask(t *testing.T) {
	looks := 0
	tool := func(last error) *thaw.Tool {
		looks = 0
		return waits(thaw.ToolOptions{Tasks: thaw.TaskAlways}, func(ctx context.Context) error {
			err := thaw.WaitUntil(ctx, "k", time.Minute, func(context.Context) (bool, error) {
				if looks++; looks == 4 {
					return true, last
				}
				return false, nil
			})
			if err != nil {
				return err
			}
			return thaw.Sleep(ctx, "then", time.Hour)
		})
	}
	c := thawtest.Start(t, tool(nil), nil, nil)
	if c.Advance(3*time.Minute - time.Millisecond); looks != 3 {
		t.Errorf("%d looks", looks)
	}
	if c.Advance(time.Millisecond).Advance(2 * time.Hour).Crash(); !c.Done() || c.Text() != "over" || looks != 4 {
		t.Errorf("done %t, %q after %d looks", c.Done(), c.Text(), looks)
	}
	c = thawtest.Start(t, tool(thaw.Errorf("no train today")), nil, nil).Advance(time.Hour)
	if !c.Done() || !c.IsError() || c.Text() != "no train today" || looks != 4 {
		t.Errorf("done %t, %q after %d looks", c.Done(), c.Text(), looks)
	}
}

// A wait that is cancelled says so, and steps clean up; a second wait is over at once too.
func TestCancelledWaits(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"sleep": func(ctx context.Context) error { return thaw.Sleep(ctx, "k", time.Hour) },
		"wait until": func(ctx context.Context) error {
			return thaw.WaitUntil(ctx, "k", time.Hour, func(context.Context) (bool, error) { return false, nil })
		},
		"question": func(ctx context.Context) error { _, err := thaw.Confirm(ctx, "k", "Sure?"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			var seen []error
			tool := waits(thaw.ToolOptions{Tasks: thaw.TaskAlways}, func(ctx context.Context) error {
				err := wait(ctx)
				if errors.Is(err, thaw.ErrSuspended) {
					return err
				}
				seen = append(seen, err, thaw.Do(ctx, "clean up", func(context.Context) error { return nil }), thaw.Sleep(ctx, "more", time.Hour))
				return err
			})
			c := thawtest.Start(t, tool, nil, nil).Cancel()
			if !errors.Is(c.Err(), thaw.ErrCancelled) || !slices.Equal(c.Steps(), []string{"clean up"}) {
				t.Errorf("%v after %v", c.Err(), c.Steps())
			}
			if len(seen) != 3 || !errors.Is(seen[0], thaw.ErrCancelled) || seen[1] != nil || !errors.Is(seen[2], thaw.ErrCancelled) {
				t.Errorf("the handler saw %v", seen)
			}
		})
	}
}

// Inside a step there is nothing to wait with: it would be done again when its result is lost.
func TestWaitInsideAStep(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"Sleep":          func(ctx context.Context) error { return thaw.Sleep(ctx, "k", time.Hour) },
		"WaitUntil":      thirdLook(time.Hour),
		"ContinueAsTask": thaw.ContinueAsTask,
	} {
		r := &recorder{TB: t}
		thawtest.Start(r, waits(thaw.ToolOptions{Tasks: thaw.TaskAlways}, func(ctx context.Context) error { return thaw.Do(ctx, "step", wait) }), nil, nil)
		if got := strings.Join(r.failures, "\n"); !strings.Contains(got, `used inside the function of step "step"`) {
			t.Errorf("%s: failed with %q", name, got)
		}
	}
}

// ContinueAsTask ends the request at once; in the task it does nothing.
func TestContinueAsTask(t *testing.T) {
	var tasks []bool
	tool := waits(thaw.ToolOptions{}, func(ctx context.Context) error {
		err := thaw.ContinueAsTask(ctx)
		tasks = append(tasks, thaw.CallInfoFrom(ctx).TaskID != "")
		if err != nil && !errors.Is(err, thaw.ErrSuspended) {
			t.Errorf("%v", err)
		}
		return err
	})
	if c := thawtest.Start(t, tool, nil, nil); !c.IsTask() || c.Text() != "over" || !slices.Equal(tasks, []bool{false, true}) {
		t.Errorf("task %t, %q, runs in a task %v", c.IsTask(), c.Text(), tasks)
	}
	tasks = nil
	if c := thawtest.Start(t, tool, nil, &thawtest.Options{NoTasks: true}); c.IsTask() || c.Text() != "over" || !slices.Equal(tasks, []bool{false}) {
		t.Errorf("task %t, %q, runs in a task %v", c.IsTask(), c.Text(), tasks)
	}
}
