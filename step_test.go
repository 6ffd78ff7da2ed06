package thaw_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

type found struct {
	N     int
	Words []string
}

// What a step did before a question is not done again after it.
func TestStepIsRecorded(t *testing.T) {
	runs := 0
	tool := asking(func(ctx context.Context) (string, error) {
		a, err := thaw.Step(ctx, "s", func(context.Context) (found, error) { runs++; return found{N: runs}, nil })
		if err != nil {
			return "", err
		}
		if err := thaw.Do(ctx, "d", func(context.Context) error { runs += 10; return nil }); err != nil {
			return "", err
		}
		if _, err := thaw.Confirm(ctx, "q", "?"); err != nil {
			return "", err
		}
		return fmt.Sprint(a.N, a.Words != nil), nil
	})
	c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true})
	if c.Text() != "1 true" || runs != 11 || strings.Join(c.Steps(), " ") != "s d" {
		t.Errorf("%q, %d runs, steps %v", c.Text(), runs, c.Steps())
	}
}

// A step's value is what its JSON says, on the first run too, or a lost field would show
// only after a question.
func TestStepValueIsItsJSON(t *testing.T) {
	type lossy struct {
		Kept int
		lost int
	}
	tool := asking(func(ctx context.Context) (string, error) {
		v, err := thaw.Step(ctx, "s", func(context.Context) (lossy, error) { return lossy{1, 2}, nil })
		return fmt.Sprint(v.Kept, v.lost), err
	})
	if c := thawtest.Start(t, tool, nil, nil); c.Text() != "1 0" {
		t.Errorf("%q", c.Text())
	}
}

// A step's error is recorded like a value: the same text and the same effect on the client
// on every run, whether it is fresh or read again.
func TestStepErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string // what the client reads; "" for a masked error
		code int    // of a JSON-RPC error
	}{
		"plain":       {err: errors.New("disk full")},
		"Errorf":      {err: thaw.Errorf("no such file"), want: "no such file"},
		"WrapErrorf":  {err: thaw.WrapErrorf(errors.New("secret"), "not found"), want: "not found"},
		"wrapped":     {err: fmt.Errorf("outer: %w", thaw.Errorf("inner")), want: "inner"},
		"protocol":    {err: &mcp.Error{Code: 7, Message: "own", Data: map[string]int{"n": 1}}, code: 7},
		"unsupported": {err: &thaw.UnsupportedError{Needs: mcp.ClientCapabilities{Raw: json.RawMessage(`{"x":{}}`)}}, code: mcp.CodeMissingCapability},
	} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " read again ", later), func(t *testing.T) {
				runs := 0
				tool := asking(func(ctx context.Context) (string, error) {
					_, err := thaw.Step(ctx, "s", func(context.Context) (int, error) { runs++; return 0, tt.err })
					if err == nil || err.Error() != tt.err.Error() {
						t.Errorf("the handler got %v", err)
					}
					if errors.Is(err, tt.err) && name == "plain" {
						t.Error("the error is the original, which a later run would not have")
					}
					if later {
						if _, asked := thaw.Confirm(ctx, "q", "?"); asked != nil {
							return "", asked
						}
					}
					return "", err
				})
				c := thawtest.Start(t, tool, nil, nil)
				if later {
					c.Answer(thawtest.Answers{"q": true})
				}
				if runs != 1 {
					t.Errorf("%d runs", runs)
				}
				var e *mcp.Error
				switch {
				case tt.code != 0:
					if !errors.As(c.Err(), &e) || e.Code != tt.code {
						t.Errorf("%v", c.Err())
					}
				case tt.want != "":
					if c.Text() != tt.want || !c.IsError() {
						t.Errorf("%q", c.Text())
					}
				case !c.IsError() || !strings.HasPrefix(c.Text(), "asking failed (reference "):
					t.Errorf("%q", c.Text())
				}
			})
		}
	}
}

// The end of the step's own time says nothing about the step, and is not recorded.
func TestEndOfContextIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		tool := thaw.NewTool("t", "", func(ctx context.Context, _ none) (string, error) {
			_, err := thaw.Step(ctx, "s", func(ctx context.Context) (int, error) {
				if runs++; runs == 1 {
					ctx, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					<-ctx.Done()
					return 0, fs.ErrPermission // a finding, although a time of its own is over
				}
				return 5, nil
			})
			if _, asked := thaw.Confirm(ctx, "q", "?"); asked != nil {
				return "", asked
			}
			return fmt.Sprint(err), nil
		}, nil)
		if c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true}); runs != 1 || c.Text() != fs.ErrPermission.Error() {
			t.Errorf("%q after %d runs", c.Text(), runs)
		}

		var got error
		short := thaw.NewTool("t", "", func(ctx context.Context, _ none) (string, error) {
			_, got = thaw.Step(ctx, "s", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			return "", got
		}, &thaw.ToolOptions{Timeout: time.Second})
		thawtest.Start(t, short, nil, nil)
		synctest.Wait()
		if got != context.DeadlineExceeded {
			t.Errorf("%v", got)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	flaky := errors.New("busy")
	for name, tt := range map[string]struct {
		fail, max int
		timeout   time.Duration
		want      string
		runs      int
		took      time.Duration
	}{
		"succeeds at last":  {fail: 2, max: 5, want: "ok", runs: 3, took: 2 * time.Minute},
		"the most tries":    {fail: 9, max: 3, want: "busy", runs: 3, took: 2 * time.Minute},
		"one try":           {fail: 9, max: 1, want: "busy", runs: 1},
		"no try is one":     {fail: 9, max: 0, want: "busy", runs: 1},
		"no time to wait":   {fail: 9, max: 5, timeout: 90 * time.Second, want: "busy", runs: 2, took: time.Minute},
		"nothing to repeat": {want: "ok", runs: 1, max: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				tool := thaw.NewTool("t", "", func(ctx context.Context, _ none) (string, error) {
					err := thaw.Do(ctx, "s", func(context.Context) error {
						if runs++; runs <= tt.fail {
							return fmt.Errorf("wrapped: %w", thaw.RetryAfter(flaky, time.Minute, tt.max))
						}
						return nil
					})
					if err != nil {
						return "", thaw.Errorf("%s", err)
					}
					return "ok", nil
				}, &thaw.ToolOptions{Timeout: tt.timeout})
				began := time.Now()
				if c := thawtest.Start(t, tool, nil, nil); c.Text() != tt.want || runs != tt.runs || time.Since(began) != tt.took {
					t.Errorf("%q after %d runs and %v", c.Text(), runs, time.Since(began))
				}
			})
		})
	}
	if thaw.RetryAfter(nil, time.Second, 1) != nil {
		t.Error("RetryAfter(nil) is an error")
	}
	if err := thaw.RetryAfter(flaky, time.Second, 1); !errors.Is(err, flaky) || err.Error() != "busy" {
		t.Errorf("%v", err)
	}
}

// The key is the same on every try of a step of a call, also after a lost answer, and
// another for every other step and call.
func TestIdempotencyKey(t *testing.T) {
	var keys []string
	tool := asking(func(ctx context.Context) (string, error) {
		if _, err := thaw.Confirm(ctx, "q", "?"); err != nil {
			return "", err
		}
		keys = append(keys, thaw.IdempotencyKey(ctx))
		for _, step := range []string{"a", "b"} {
			if err := thaw.Do(ctx, step, func(ctx context.Context) error {
				keys = append(keys, thaw.IdempotencyKey(ctx))
				return nil
			}); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true}).Crash()
	thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true})
	if len(keys) != 9 || strings.Join(c.Steps(), " ") != "a b a b" {
		t.Fatalf("%v %v", keys, c.Steps())
	}
	for i := range 3 {
		if keys[i] != keys[3+i] || keys[i] == keys[6+i] || len(keys[i]) != 32 {
			t.Errorf("%v", keys)
		}
	}
	if keys[0] == keys[1] || keys[1] == keys[2] || keys[0] == c.Text() {
		t.Errorf("%v", keys)
	}
	if thaw.IdempotencyKey(t.Context()) != "" {
		t.Error("a key outside a handler")
	}
}

func TestNowAndNewID(t *testing.T) {
	var seen []string
	tool := asking(func(ctx context.Context) (string, error) {
		seen = append(seen, thaw.Now(ctx, "now").Format(time.RFC3339Nano)+thaw.NewID(ctx, "id")+thaw.NewID(ctx, "other"))
		_, err := thaw.Confirm(ctx, "q", "?")
		return "", err
	})
	thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true})
	thawtest.Start(t, tool, nil, nil)
	if len(seen) != 3 || seen[0] != seen[1] || seen[1] == seen[2] || strings.Contains(seen[0], "0001-01-01") {
		t.Errorf("%q", seen)
	}
}

// After a suspension nothing further starts, and what is recorded is still there.
func TestNothingStartsAfterSuspension(t *testing.T) {
	ran := 0
	tool := asking(func(ctx context.Context) (string, error) {
		if err := thaw.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		_, asked := thaw.Confirm(ctx, "q", "?")
		err := thaw.Do(ctx, "after", func(context.Context) error { ran++; return nil })
		if asked != nil && !errors.Is(err, thaw.ErrSuspended) {
			t.Errorf("the step after the question: %v", err)
		}
		return "done", err
	})
	c := thawtest.Start(t, tool, nil, nil)
	if ran != 0 || c.Done() {
		t.Fatalf("ran %d", ran)
	}
	if c.Answer(thawtest.Answers{"q": true}); c.Text() != "done" || ran != 1 {
		t.Errorf("%q, ran %d", c.Text(), ran)
	}
}

// Steps that are in flight when another goroutine asks finish and are recorded.
func TestParallelSteps(t *testing.T) {
	release := make(chan struct{})
	runs := 0
	tool := asking(func(ctx context.Context) (string, error) {
		began := make(chan struct{}, 1)
		result := make(chan error, 1)
		go func() {
			_, err := thaw.Step(ctx, "slow", func(context.Context) (int, error) {
				runs++
				began <- struct{}{}
				<-release
				return 1, nil
			})
			began <- struct{}{}
			result <- err
		}()
		<-began
		if _, err := thaw.Confirm(ctx, "q", "?"); err != nil {
			time.AfterFunc(time.Second, func() { close(release) }) // the handler returns first
			return "", err
		}
		return "done", <-result
	})
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		if c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true}); c.Text() != "done" || runs != 1 {
			t.Errorf("%q after %d runs", c.Text(), runs)
		}
	})
}

func TestManyParallelSteps(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		sum := 0
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				n, err := thaw.Step(ctx, fmt.Sprint("s", i), func(context.Context) (int, error) { return i, nil })
				mu.Lock()
				defer mu.Unlock()
				if sum += n; err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		_, err := thaw.Confirm(ctx, "q", "?")
		return fmt.Sprint(sum), err
	})
	c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true})
	if c.Text() != "1225" || len(c.Steps()) != 50 {
		t.Errorf("%q, %d steps", c.Text(), len(c.Steps()))
	}
}

// A panic in a step is contained wherever it runs, and ends the call.
func TestStepPanics(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		tool := asking(func(ctx context.Context) (string, error) {
			done := make(chan struct{})
			step := func() {
				defer close(done)
				_ = thaw.Do(ctx, "s", func(context.Context) error { panic("boom") })
			}
			if elsewhere {
				go step()
			} else {
				step()
			}
			<-done
			return "fine", nil
		})
		c := thawtest.Start(t, tool, nil, nil)
		var e *mcp.Error
		if !errors.As(c.Err(), &e) || e.Code != mcp.CodeInternalError || strings.Contains(e.Message, "boom") {
			t.Errorf("%v %q", c.Err(), c.Text())
		}
	}
}

// A deploy that renames a step runs it again; one that leaves a recorded entry unread is
// told to the operator; a type that no longer decodes ends the call, naming both.
func TestDeployInMidCall(t *testing.T) {
	tool := func(step string, value any) *thaw.Tool {
		return asking(func(ctx context.Context) (string, error) {
			var got any
			var err error
			if _, number := value.(int); number {
				got, err = thaw.Step(ctx, step, func(context.Context) (int, error) { return value.(int), nil })
			} else {
				got, err = thaw.Step(ctx, step, func(context.Context) (string, error) { return fmt.Sprint(value), nil })
			}
			if err != nil {
				return "swallowed", nil
			}
			_, err = thaw.Confirm(ctx, "q", "?")
			return fmt.Sprint(got), err
		})
	}
	yes := thawtest.Answers{"q": true}
	if c := thawtest.Start(t, tool("a", 1), nil, nil).Replace(tool("b", 2)).Answer(yes); c.Text() != "2" || strings.Join(c.Steps(), " ") != "a b" {
		t.Errorf("renamed: %q %v", c.Text(), c.Steps())
	}
	var c *thawtest.Call
	failures := failuresOf(t, func(tb testing.TB) {
		c = thawtest.Start(tb, tool("a", "text"), nil, nil).Replace(tool("a", 2)).Answer(yes)
	})
	if c.Err() == nil || !strings.Contains(failures, `key "a": the call has a JSON string recorded for the step, which is no int`) {
		t.Errorf("retyped: %v %q", c.Err(), failures)
	}
	// A step where a question was, and the other way round, is as good as renamed.
	asked := asking(func(ctx context.Context) (string, error) {
		_, err1 := thaw.Confirm(ctx, "a", "?")
		_, err2 := thaw.Confirm(ctx, "q", "?")
		return "asked", errors.Join(err1, err2)
	})
	c = thawtest.Start(t, tool("a", 1), nil, nil).Replace(asked).Answer(yes)
	if got := strings.Join(c.Asked(), " "); got != "a" {
		t.Errorf("asked %v", got)
	}
}

// Progress and Logger say nothing until the handler has come as far as in the run before.
func TestSilentWhileReplaying(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		say := func(n float64) {
			thaw.Progress(ctx, n, 3, "")
			thaw.Logger(ctx).Info("said", "n", n)
		}
		say(1)
		if err := thaw.Do(ctx, "s", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		say(2)
		if _, err := thaw.Confirm(ctx, "q", "?"); err != nil {
			return "", err
		}
		say(3)
		return "", nil
	})
	c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": true})
	var got []float64
	for _, p := range c.Progress() {
		got = append(got, p.Done)
	}
	if fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("told %v", got)
	}
}

// A step whose result the call cannot keep ends it there.
func TestTooMuchToKeep(t *testing.T) {
	after := false
	tool := func(n int) *thaw.Tool {
		return asking(func(ctx context.Context) (string, error) {
			text, err := thaw.Step(ctx, "big", func(context.Context) (string, error) { return strings.Repeat("x", n), nil })
			_ = thaw.Do(ctx, "after", func(context.Context) error { after = true; return nil })
			if err != nil {
				return "swallowed", nil
			}
			_, err = thaw.Confirm(ctx, "q", "?")
			return fmt.Sprint(len(text)), err
		})
	}
	for _, n := range []int{4096, 4097, 20000} {
		if c := thawtest.Start(t, tool(n), nil, nil).Answer(thawtest.Answers{"q": true}); c.Text() != fmt.Sprint(n) {
			t.Errorf("%d: %q %v", n, c.Text(), c.Err())
		}
	}
	after = false
	c := thawtest.Start(t, tool(300_000), nil, nil)
	var e *mcp.Error
	if !errors.As(c.Err(), &e) || e.Code != mcp.CodeInternalError || !strings.Contains(e.Message, `step "big" has 300002 bytes`) || after {
		t.Errorf("%v, went on %v", c.Err(), after)
	}
}

func TestContextHelper(t *testing.T) {
	ctx := thawtest.Context(t, thawtest.Answers{"agree": true, "where": "eu"})
	ok, err := thaw.Confirm(ctx, "agree", "?")
	if !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	if where, err := thaw.Choose(ctx, "where", "?", []thaw.Choice{{Value: "eu"}}); where != "eu" || err != nil {
		t.Errorf("%q %v", where, err)
	}
	if _, err := thaw.Confirm(ctx, "unknown", "?"); !errors.Is(err, thaw.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	if n, err := thaw.Step(ctx, "s", func(context.Context) (int, error) { return 4, nil }); n != 4 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if failures := failuresOf(t, func(tb testing.TB) {
		ctx := thawtest.Context(tb, nil)
		thaw.Now(ctx, "n")
		thaw.Now(ctx, "n")
	}); !strings.Contains(failures, "used twice") {
		t.Errorf("%q", failures)
	}
}

func TestShake(t *testing.T) {
	good := func() *thaw.Tool {
		made := map[string]int{} // what the other side did, by idempotency key
		return asking(func(ctx context.Context) (string, error) {
			if _, err := thaw.Confirm(ctx, "q", "?"); err != nil {
				return "", err
			}
			for _, step := range []string{"a", "b"} {
				if err := thaw.Do(ctx, step, func(ctx context.Context) error { made[thaw.IdempotencyKey(ctx)] = 1; return nil }); err != nil {
					return "", err
				}
			}
			return fmt.Sprint(len(made)), nil
		})
	}
	thawtest.Shake(t, good, nil, thawtest.Answers{"q": true}, nil)
	bad := func() *thaw.Tool {
		made := 0
		return asking(func(ctx context.Context) (string, error) {
			if _, err := thaw.Confirm(ctx, "q", "?"); err != nil {
				return "", err
			}
			if err := thaw.Do(ctx, "a", func(context.Context) error { made++; return nil }); err != nil {
				return "", err
			}
			return fmt.Sprint(made), nil
		})
	}
	failures := failuresOf(t, func(tb testing.TB) { thawtest.Shake(tb, bad, nil, thawtest.Answers{"q": true}, nil) })
	if !strings.Contains(failures, `killed after step "a"`) || !strings.Contains(failures, "answer of round 2 lost") {
		t.Errorf("%q", failures)
	}
}
