package thawtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

// journey asks, sleeps and waits between three steps.
func journey(mode thaw.TaskMode) *thaw.Tool {
	polls := 0
	return thaw.NewTool("journey", "", func(ctx context.Context, _ struct{}) (string, error) {
		did := func(key string) error { return thaw.Do(ctx, key, func(context.Context) error { return nil }) }
		if err := did("pack"); err != nil {
			return "", err
		}
		if err := thaw.ContinueAsTask(ctx); err != nil {
			return "", err
		}
		sure, err := thaw.Confirm(ctx, "sure", "Leave?")
		if err != nil {
			return "", err
		}
		if err := did("leave"); err != nil {
			return "", err
		}
		if err := thaw.Sleep(ctx, "night", 8*time.Hour); errors.Is(err, thaw.ErrCancelled) {
			return "", did("return")
		} else if err != nil {
			return "", err
		}
		if err := thaw.WaitUntil(ctx, "train", 10*time.Minute, func(context.Context) (bool, error) {
			polls++
			return polls%4 == 0, nil
		}); err != nil {
			return "", err
		}
		if err := did("arrive"); err != nil {
			return "", err
		}
		if !sure {
			return "far away, unwillingly", nil
		}
		return "far away", nil
	}, &thaw.ToolOptions{Tasks: mode, Revision: 1})
}

func TestTask(t *testing.T) {
	for name, mode := range map[string]thaw.TaskMode{"on demand": thaw.TaskOnDemand, "always": thaw.TaskAlways, "required": thaw.TaskRequired} {
		t.Run(name, func(t *testing.T) {
			c := thawtest.Start(t, journey(mode), nil, nil)
			if !c.IsTask() || c.Done() || !slices.Equal(c.Asked(), []string{"sure"}) || c.Message("sure") != "Leave?" || c.Err() != nil {
				t.Fatalf("task %t, done %t, asks %v, %v", c.IsTask(), c.Done(), c.Asked(), c.Err())
			}
			c.Answer(thawtest.Answers{"sure": true})
			began := time.Now()
			if c.Advance(8*time.Hour - time.Second); c.Done() || len(c.Asked()) > 0 || c.Result() != nil {
				t.Errorf("a second before the morning: done %t, %v", c.Done(), c.Result())
			}
			if c.Advance(time.Second + 30*time.Minute - time.Second); c.Done() {
				t.Error("done before the fourth look")
			}
			if c.Advance(time.Second); !c.Done() || c.Text() != "far away" {
				t.Errorf("%q, %v", c.Text(), c.Err())
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("virtual hours took %v", took)
			}
			if got := c.Steps(); !slices.Equal(got, []string{"pack", "leave", "arrive"}) || c.Rounds() != 2 {
				t.Errorf("%v in %d rounds", got, c.Rounds())
			}
		})
	}
}

// A client that does not know tasks gets none (T-05).
func TestNoTasks(t *testing.T) {
	for name, c := range map[string]struct {
		mode thaw.TaskMode
		code int
	}{"on demand": {thaw.TaskOnDemand, 0}, "always": {thaw.TaskAlways, 0}, "required": {thaw.TaskRequired, mcp.CodeMissingCapability}} {
		call := thawtest.Start(t, journey(c.mode), nil, &thawtest.Options{NoTasks: true})
		var e *mcp.Error
		if code := 0; errors.As(call.Err(), &e) {
			code = e.Code
			if code != c.code {
				t.Errorf("%s: %v", name, e)
			}
		} else if call.IsTask() || c.code != 0 || !slices.Equal(call.Asked(), []string{"sure"}) {
			t.Errorf("%s: task %t, asks %v", name, call.IsTask(), call.Asked())
		}
	}
	if c := thawtest.Start(t, journey(thaw.TaskNever), nil, nil); c.IsTask() || !slices.Equal(c.Asked(), []string{"sure"}) {
		t.Errorf("never: task %t, asks %v", c.IsTask(), c.Asked())
	}
}

func TestTaskEnds(t *testing.T) {
	ends := func(err error) *thawtest.Call {
		return thawtest.Start(t, thaw.NewTool("ends", "", func(context.Context, struct{}) (out, error) { return out{4}, err }, &thaw.ToolOptions{Tasks: thaw.TaskAlways}), nil, nil)
	}
	if c := ends(nil); !c.IsTask() || thawtest.Output[out](c).Half != 4 {
		t.Errorf("%q", c.Text())
	}
	if c := ends(thaw.Errorf("no luck")); !c.Done() || !c.IsError() || c.Text() != "no luck" {
		t.Errorf("%q", c.Text())
	}
	if c := ends(&mcp.Error{Code: 14, Message: "own"}); !c.Done() || c.Result() != nil || c.Err() == nil || c.Err().Error() != "own (14)" {
		t.Errorf("%v", c.Err())
	}
}

// A refused answer leaves the question (T-33).
func TestTaskRefusesAnAnswer(t *testing.T) {
	tool := thaw.NewTool("asks", "", func(ctx context.Context, _ struct{}) (string, error) {
		return thaw.Choose(ctx, "which", "Which?", []thaw.Choice{{Value: "a"}, {Value: "b"}})
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	c := thawtest.Start(t, tool, nil, nil)
	if c.Answer(thawtest.Answers{"which": "c"}); c.Done() || c.Err() == nil || !slices.Equal(c.Asked(), []string{"which"}) {
		t.Errorf("done %t, %v, asks %v", c.Done(), c.Err(), c.Asked())
	}
	if c.Answer(thawtest.Answers{"which": "b"}); c.Text() != "b" || c.Err() != nil {
		t.Errorf("%q, %v", c.Text(), c.Err())
	}
}

func TestCancel(t *testing.T) {
	t.Run("asleep", func(t *testing.T) {
		c := thawtest.Start(t, journey(thaw.TaskOnDemand), nil, nil).Answer(thawtest.Answers{"sure": true}).Advance(time.Hour).Cancel()
		if !c.Done() || !errors.Is(c.Err(), thaw.ErrCancelled) || c.Result() != nil || c.Text() != "" {
			t.Errorf("done %t, %v", c.Done(), c.Err())
		}
		if got := c.Steps(); !slices.Equal(got, []string{"pack", "leave", "return"}) {
			t.Errorf("%v", got)
		}
	})
	t.Run("asking", func(t *testing.T) {
		if c := thawtest.Start(t, journey(thaw.TaskOnDemand), nil, nil).Cancel(); !c.Done() || !errors.Is(c.Err(), thaw.ErrCancelled) || len(c.Asked()) > 0 {
			t.Errorf("done %t, %v, asks %v", c.Done(), c.Err(), c.Asked())
		}
	})
	t.Run("a plain call", func(t *testing.T) {
		if c := thawtest.Start(t, journey(thaw.TaskNever), nil, nil).Cancel(); !c.Done() || !errors.Is(c.Err(), thaw.ErrCancelled) || len(c.Asked()) > 0 {
			t.Errorf("done %t, %v, asks %v", c.Done(), c.Err(), c.Asked())
		}
	})
	t.Run("what has ended", func(t *testing.T) {
		if c := thawtest.Start(t, halve(), in{4}, nil).Cancel(); c.Err() != nil || c.Result() == nil {
			t.Errorf("%v", c.Err())
		}
	})
}

// Where a worker died, another goes on, and runs nothing again that is recorded.
func TestCrashOfATask(t *testing.T) {
	c := thawtest.Start(t, journey(thaw.TaskAlways), nil, &thawtest.Options{Start: time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC)}).Crash()
	if !slices.Equal(c.Asked(), []string{"sure"}) {
		t.Fatalf("asks %v", c.Asked())
	}
	c.Answer(thawtest.Answers{"sure": false}).Crash().Advance(9 * time.Hour).Crash()
	if !c.Done() || c.Text() != "far away, unwillingly" {
		t.Errorf("done %t, %q, %v", c.Done(), c.Text(), c.Err())
	}
	if got := c.Steps(); !slices.Equal(got, []string{"pack", "leave", "arrive"}) {
		t.Errorf("%v", got)
	}
	still := thawtest.Start(t, journey(thaw.TaskAlways), nil, nil)
	for range 3 {
		still.Crash()
	}
	if err := still.Err(); !still.Done() || err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("after three deaths in a row: %v", err)
	}
}

// A deploy in the middle of a task: the new version goes on, or refuses what is too old.
func TestReplaceOfATask(t *testing.T) {
	next := func(opts thaw.ToolOptions) *thaw.Tool {
		opts.Tasks = thaw.TaskAlways
		return thaw.NewTool("journey", "", func(ctx context.Context, _ struct{}) (string, error) {
			_, err := thaw.Confirm(ctx, "sure", "Leave?")
			return "new way", err
		}, &opts)
	}
	c := thawtest.Start(t, journey(thaw.TaskAlways), nil, nil).Replace(next(thaw.ToolOptions{Revision: 1})).Answer(thawtest.Answers{"sure": true})
	if c.Text() != "new way" {
		t.Errorf("%q, %v", c.Text(), c.Err())
	}
	c = thawtest.Start(t, journey(thaw.TaskAlways), nil, nil).Replace(next(thaw.ToolOptions{Revision: 2, MinRevision: 2})).Answer(thawtest.Answers{"sure": true})
	if c.Err() == nil || !strings.Contains(c.Err().Error(), "start again") {
		t.Errorf("%q, %v", c.Text(), c.Err())
	}
}

// Tasks expire (T-25), and states too.
func TestAdvancePastTheEnd(t *testing.T) {
	if c := thawtest.Start(t, journey(thaw.TaskAlways), nil, nil).Advance(25 * time.Hour); !c.Done() || c.Err() == nil || !strings.Contains(c.Err().Error(), "Unknown task") {
		t.Errorf("%v", c.Err())
	}
	c := thawtest.Start(t, journey(thaw.TaskNever), nil, nil).Advance(25 * time.Hour).Answer(thawtest.Answers{"sure": true})
	if c.Err() == nil || c.Result() != nil {
		t.Errorf("%q, %v", c.Text(), c.Err())
	}
}

func TestMisuseOfATask(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(tb testing.TB)
		want string
	}{
		"an answer while it sleeps": {func(tb testing.TB) {
			thawtest.Start(tb, journey(thaw.TaskAlways), nil, nil).Answer(thawtest.Answers{"sure": true}).Answer(thawtest.Answers{})
		}, "asks nothing now"},
		"time that goes back": {func(tb testing.TB) { thawtest.Start(tb, halve(), in{2}, nil).Advance(-1) }, "only goes forward"},
		"output of a cancelled task": {func(tb testing.TB) {
			thawtest.Output[out](thawtest.Start(tb, journey(thaw.TaskAlways), nil, nil).Cancel())
		}, "cancelled"},
	} {
		if got := failuresOf(t, c.do); !strings.Contains(got, c.want) {
			t.Errorf("%s: failed with %q, want %q", name, got, c.want)
		}
	}
}

func TestShakeTasks(t *testing.T) {
	answers := thawtest.Answers{"sure": true}
	for name, mode := range map[string]thaw.TaskMode{"on demand": thaw.TaskOnDemand, "always": thaw.TaskAlways, "never": thaw.TaskNever} {
		t.Run(name, func(t *testing.T) {
			thawtest.Shake(t, func() *thaw.Tool { return journeyByDay(mode) }, nil, answers, nil)
		})
	}
}

// journeyByDay asks before it becomes a task, and again in it, in other words each time.
func journeyByDay(mode thaw.TaskMode) *thaw.Tool {
	ledger := map[string]bool{}
	var mu sync.Mutex
	return thaw.NewTool("journey", "", func(ctx context.Context, _ struct{}) (int, error) {
		pay := func(what string) error {
			return thaw.Do(ctx, what, func(ctx context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				ledger[thaw.IdempotencyKey(ctx)] = true
				return nil
			})
		}
		if err := pay("ticket"); err != nil {
			return 0, err
		}
		if _, err := thaw.Confirm(ctx, "sure", "Leave?"); err != nil {
			return 0, err
		}
		if err := pay("taxi"); err != nil {
			return 0, err
		}
		if err := thaw.ContinueAsTask(ctx); err != nil {
			return 0, err
		}
		if err := pay("hotel"); err != nil {
			return 0, err
		}
		if mode != thaw.TaskNever {
			if err := thaw.Sleep(ctx, "night", 8*time.Hour); err != nil {
				return 0, err
			}
		}
		if err := pay("train"); err != nil {
			return 0, err
		}
		mu.Lock()
		defer mu.Unlock()
		return len(ledger), nil
	}, &thaw.ToolOptions{Tasks: mode})
}

// Shake finds what a death shows, and names where.
func TestShakeFindsATaskThatCountsItsEffects(t *testing.T) {
	counting := func() *thaw.Tool {
		charged := 0
		return thaw.NewTool("charge", "", func(ctx context.Context, _ struct{}) (int, error) {
			if err := thaw.Do(ctx, "charge", func(context.Context) error { charged++; return nil }); err != nil {
				return 0, err
			}
			return charged, nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	}
	got := failuresOf(t, func(tb testing.TB) { thawtest.Shake(tb, counting, nil, nil, nil) })
	if !strings.Contains(got, `killed after step "charge"`) || strings.Contains(got, "write") || strings.Contains(got, "lost") {
		t.Errorf("failed with %q", got)
	}
	forgetful := func() *thaw.Tool {
		runs := 0
		return thaw.NewTool("forgetful", "", func(ctx context.Context, _ struct{}) (int, error) {
			runs++
			if err := thaw.Do(ctx, "act", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return runs, nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	}
	got = failuresOf(t, func(tb testing.TB) { thawtest.Shake(tb, forgetful, nil, nil, nil) })
	for _, want := range []string{`killed after step "act"`, `killed after step "act" was recorded`, "with the answer of round 1 lost"} {
		if !strings.Contains(got, want) {
			t.Errorf("failed with %q, want %q", got, want)
		}
	}
	if strings.Contains(got, "a worker took the task") {
		t.Errorf("a death before anything was done shows: %q", got)
	}
}
