package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// What cannot be recorded ends the call; a question in the same run must not ask it away, or
// the effect would come again with the answer.
func TestUnrecordedEffectEndsTheCall(t *testing.T) {
	for name, c := range map[string]struct {
		key  string
		step func() (any, error)
		want string
	}{
		"a result too large":    {"charge", func() (any, error) { return strings.Repeat("x", 30000), nil }, "state_too_large"},
		"a panic":               {"charge", func() (any, error) { panic("boom") }, "panic"},
		"an error without JSON": {"charge", func() (any, error) { return nil, &mcp.Error{Code: 7, Data: func() {}} }, "misuse"},
		"a value without JSON":  {"charge", func() (any, error) { return func() {}, nil }, "misuse"},
		"a key that is no text": {"caf\xc3", func() (any, error) { return nil, nil }, "misuse"},
	} {
		t.Run(name, func(t *testing.T) {
			charged := 0
			tool := tool1(func(ctx context.Context) (any, error) {
				asked, ended := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = thaw.Step(ctx, c.key, func(context.Context) (any, error) {
						<-asked
						charged++
						return c.step()
					})
				}()
				time.Sleep(time.Second) // the step has begun
				_, err := thaw.Confirm(ctx, "approve", "?")
				close(asked)
				<-ended
				return nil, err
			}, nil)
			synctest.Test(t, func(t *testing.T) {
				h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
				a := do(t, h, asks(callT()).request(t))
				if a.reason() != c.want || charged > 1 {
					t.Errorf("%s, charged %d times", a.raw, charged)
				}
			})
		})
	}
}

// A step that is still at work when the call's time is over is not asked away either.
func TestStepOutlivesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := false
		tool := tool1(func(ctx context.Context) (any, error) {
			go func() {
				_ = thaw.Do(ctx, "charge", func(context.Context) error { time.Sleep(time.Minute); return nil })
			}()
			time.Sleep(time.Second)
			_, err := thaw.Confirm(ctx, "approve", "?")
			go func() {
				time.Sleep(30 * time.Second)
				_ = thaw.Do(ctx, "late", func(context.Context) error { late = true; return nil })
			}()
			return nil, err
		}, &thaw.ToolOptions{Timeout: 10 * time.Second})
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
		a := do(t, h, asks(callT()).request(t))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if !strings.Contains(a.raw, "t timed out") || late {
			t.Errorf("%s, began late %v", a.raw, late)
		}
	})
}

// After the client was told that the time is over no step begins.
func TestNoStepAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		tool := tool1(func(ctx context.Context) (any, error) {
			time.Sleep(time.Minute)
			err = thaw.Do(ctx, "charge", func(context.Context) error { t.Error("charged"); return nil })
			return nil, err
		}, &thaw.ToolOptions{Timeout: time.Second})
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{Host: resident})
		do(t, h, callT().request(t))
		synctest.Wait()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// A question on the handler's context inside a step's function is misuse, and is not
// recorded as the step's failure.
func TestQuestionInsideAStepOnTheOuterContext(t *testing.T) {
	tool := tool1(func(ctx context.Context) (any, error) {
		return nil, thaw.Do(ctx, "outer", func(context.Context) error { _, err := thaw.Confirm(ctx, "q", "?"); return err })
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
	if a := do(t, h, asks(callT()).request(t)); a.reason() != "misuse" {
		t.Errorf("%s", a.raw)
	}
}

// A round whose client left is used up: effects outside of steps are not done again, and a
// no does not become a yes.
func TestRoundOfAClientThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []bool
		tool := tool1(func(ctx context.Context) (any, error) {
			ok, err := thaw.Confirm(ctx, "approve", "?")
			if err != nil {
				return nil, err
			}
			said = append(said, ok)
			<-ctx.Done()
			return nil, ctx.Err()
		}, nil)
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
		p := asks(callT())
		state := stateOf(t, do(t, h, p.request(t)))
		leave := func(responses string) answer {
			r := retry(p, state, responses).request(t)
			ctx, cancel := context.WithCancel(r.Context())
			time.AfterFunc(time.Second, cancel)
			return do(t, h, r.WithContext(ctx))
		}
		leave(`{"approve":{"action":"decline"}}`)
		if a := leave(yes); a.reason() != "requestState" {
			t.Errorf("%d %s", a.status, a.raw)
		}
		if a := do(t, h, retry(p, state, `{"approve":{"action":"decline"}}`).request(t)); !strings.Contains(a.raw, "was interrupted") || a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.raw)
		}
		if len(said) != 1 || said[0] {
			t.Errorf("the handler heard %v", said)
		}
	})
}
