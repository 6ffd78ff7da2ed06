package serve

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

func testLog(w *lockedBuffer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// Single use: the identical retry gets the recorded answer, any other is refused, and
// the effect happens once.
func TestOnce(t *testing.T) {
	var done []string
	store := memstore.New(nil)
	instance := func() *Handler {
		h, _ := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(&testKey{secret: "k"}), Store: store, Host: resident})
		return h
	}
	first := transferCall(`{"to":"A","amount":10}`)
	state := stateOf(t, do(t, instance(), first.request(t)))
	again := retry(first, state, yes)
	again.id = "8"
	want := do(t, instance(), again.request(t))
	if !strings.Contains(want.raw, "transferred") {
		t.Fatal(want.raw)
	}
	again.id = `"nine"`
	got := do(t, instance(), again.request(t))
	if got.raw != strings.Replace(want.raw, `"id":8`, `"id":"nine"`, 1) || got.status != want.status {
		t.Errorf("the identical retry got\n%s, want\n%s", got.raw, want.raw)
	}
	// The same answers in other words are the same answers; unknown keys do not count.
	worded := do(t, instance(), retry(first, state, ` {"x":1,"approve": {"action":"accept"}}`).request(t))
	if !strings.Contains(worded.raw, "transferred") {
		t.Errorf("%s", worded.raw)
	}
	for name, responses := range map[string]string{
		"another answer": `{"approve":{"action":"decline"}}`,
		"more of it":     `{"approve":{"action":"accept","content":{"a":1}}}`,
		"no answer":      ``,
		"another key":    `{"other":{"action":"accept"}}`,
	} {
		if a := do(t, instance(), retry(first, state, responses).request(t)); a.code() != mcp.CodeInvalidParams || a.reason() != "requestState" {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
	if len(done) != 1 {
		t.Errorf("done %v", done)
	}
}

// A round that was gone past does not come back.
func TestOnceRoundsGrow(t *testing.T) {
	tool := tool1(func(ctx context.Context) (any, error) {
		for _, key := range []string{"a", "b", "c"} {
			if _, err := thaw.Confirm(ctx, key, "?"); err != nil {
				return nil, err
			}
		}
		return "end", nil
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
	p := asks(callT())
	one := stateOf(t, do(t, h, p.request(t)))
	two := stateOf(t, do(t, h, retry(p, one, `{"a":{"action":"accept"}}`).request(t)))
	if replayed := stateOf(t, do(t, h, retry(p, one, `{"a":{"action":"accept"}}`).request(t))); replayed != two {
		t.Error("the identical retry got another state")
	}
	three := stateOf(t, do(t, h, retry(p, two, `{"b":{"action":"accept"}}`).request(t)))
	if a := do(t, h, retry(p, one, `{"a":{"action":"accept"}}`).request(t)); a.reason() != "requestState" {
		t.Errorf("%s", a.raw)
	}
	if a := do(t, h, retry(p, three, `{"c":{"action":"accept"}}`).request(t)); !strings.Contains(a.raw, "end") {
		t.Errorf("%s", a.raw)
	}
}

// What changes nothing, or says so, may be used again; prompts and resources too.
func TestReplayAllowed(t *testing.T) {
	for name, opts := range map[string]*thaw.ToolOptions{"ReadOnly": {ReadOnly: true}, "Idempotent": {Idempotent: true}, "AllowReplay": {AllowReplay: true}} {
		var done []string
		h, _ := newHandler(t, transferServer(&done, opts), Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
		first := transferCall(`{"to":"A"}`)
		state := stateOf(t, do(t, h, first.request(t)))
		for range 2 {
			do(t, h, retry(first, state, yes).request(t))
		}
		if a := do(t, h, retry(first, state, `{"approve":{"action":"decline"}}`).request(t)); !strings.Contains(a.raw, "declined") || len(done) != 2 {
			t.Errorf("%s: %s %v", name, a.raw, done)
		}
	}
}

// Every end is recorded: a refusal, an error of the protocol, a panic, a time-out.
func TestOnceRecordsEveryEnd(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) (any, error){
		"tool error": func(context.Context) (any, error) { return nil, thaw.Errorf("no") },
		"masked":     func(context.Context) (any, error) { return nil, errors.New("secret") },
		"protocol error": func(context.Context) (any, error) {
			return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "own"}
		},
		"panic":   func(context.Context) (any, error) { panic("boom") },
		"timeout": func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		"goes on": func(ctx context.Context) (any, error) { <-ctx.Done(); time.Sleep(time.Second); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				tool := tool1(func(ctx context.Context) (any, error) {
					if _, err := thaw.Confirm(ctx, "approve", "?"); err != nil {
						return nil, err
					}
					runs++
					return end(ctx)
				}, &thaw.ToolOptions{Timeout: time.Second})
				h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
				p := asks(callT())
				state := stateOf(t, do(t, h, p.request(t)))
				want := do(t, h, retry(p, state, yes).request(t))
				got := do(t, h, retry(p, state, yes).request(t))
				if got.raw != want.raw || got.status != want.status || runs != 1 {
					t.Errorf("%d runs; %d %s, want %d %s", runs, got.status, got.raw, want.status, want.raw)
				}
			})
		})
	}
}

// Many of the same retry at once: one runs, the others wait their turn or get its answer.
func TestOnceAtOnce(t *testing.T) {
	var done []string
	h, _ := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
	first := transferCall(`{"to":"A"}`)
	state := stateOf(t, do(t, h, first.request(t)))
	requests := make([]answer, 20)
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() { requests[i] = do(t, h, retry(first, state, yes).request(t)) })
	}
	wg.Wait()
	for _, a := range requests {
		busy := a.status == 503 && a.reason() == "in_progress" && a.header.Get("Retry-After") == "2"
		if !busy && !strings.Contains(a.raw, "transferred") {
			t.Errorf("%d %s", a.status, a.raw)
		}
	}
	if len(done) != 1 {
		t.Errorf("done %v", done)
	}
}

// An instance that died in the round: until its deadline the retry is told to wait, then the
// user starts again.
func TestOnceAfterADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []string
		store := memstore.New(nil)
		lost := &storetest.Faulty{Store: store, Fault: func(method string) (before, after error) {
			if method == "Finish" {
				return errors.New("the process died"), nil
			}
			return nil, nil
		}}
		h, log := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(&testKey{secret: "k"}), Store: lost, Host: resident, Limits: Limits{RequestTimeout: time.Minute}})
		first := transferCall(`{"to":"A"}`)
		state := stateOf(t, do(t, h, first.request(t)))
		if a := do(t, h, retry(first, state, yes).request(t)); !strings.Contains(a.raw, "transferred") || !strings.Contains(log.String(), "not recorded") {
			t.Errorf("%s %s", a.raw, log)
		}
		if a := do(t, h, retry(first, state, yes).request(t)); a.reason() != "in_progress" {
			t.Errorf("%s", a.raw)
		}
		time.Sleep(61 * time.Second)
		if a := do(t, h, retry(first, state, yes).request(t)); a.reason() != "requestState" || len(done) != 1 {
			t.Errorf("%s %v", a.raw, done)
		}
	})
}

// A store that cannot say whether the state was used stops the call before any effect; a
// claim whose answer was lost is found to be its own.
func TestOnceStoreFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		fault func(n int) (before, after error)
		want  string
	}{
		"down":          {func(int) (error, error) { return errors.New("secret-host is down"), nil }, "store_unavailable"},
		"lost request":  {func(n int) (error, error) { return lostOn(1, n), nil }, "transferred"},
		"lost answer":   {func(n int) (error, error) { return nil, lostOn(1, n) }, "transferred"},
		"lost for ever": {func(int) (error, error) { return nil, errors.New("time-out") }, "store_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			calls := 0
			store := &storetest.Faulty{Store: memstore.New(nil), Fault: func(method string) (before, after error) {
				if method != "Claim" {
					return nil, nil
				}
				calls++
				return tt.fault(calls)
			}}
			h, _ := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(&testKey{secret: "k"}), Store: store, Host: resident})
			first := transferCall(`{"to":"A"}`)
			state := stateOf(t, do(t, h, first.request(t)))
			a := do(t, h, retry(first, state, yes).request(t))
			if !strings.Contains(a.raw, tt.want) || strings.Contains(a.raw, "secret") || (len(done) == 1) != (tt.want == "transferred") {
				t.Errorf("%s %v", a.raw, done)
			}
		})
	}
}

func lostOn(which, n int) error {
	if n == which {
		return errors.New("connection reset")
	}
	return nil
}

// An answer above what a store keeps is not answered twice.
func TestOnceLargeAnswer(t *testing.T) {
	tool := tool1(func(ctx context.Context) (any, error) {
		if _, err := thaw.Confirm(ctx, "approve", "?"); err != nil {
			return nil, err
		}
		return strings.Repeat("x", task.MaxResponse), nil
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
	p := asks(callT())
	state := stateOf(t, do(t, h, p.request(t)))
	if a := do(t, h, retry(p, state, yes).request(t)); a.code() != 0 {
		t.Errorf("%.200s", a.raw)
	}
	if a := do(t, h, retry(p, state, yes).request(t)); a.reason() != "requestState" {
		t.Errorf("%.200s", a.raw)
	}
}

// The recorded answer is sealed: who reads the store learns nothing of it.
func TestRecordedAnswerIsSealed(t *testing.T) {
	var kept []byte
	store := &spyStore{Store: memstore.New(nil), finish: func(response []byte) { kept = response }}
	tool := tool1(func(ctx context.Context) (any, error) {
		_, err := thaw.Confirm(ctx, "approve", "?")
		return "a very private answer", err
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Store: store, Host: resident})
	p := asks(callT())
	state := stateOf(t, do(t, h, p.request(t)))
	do(t, h, retry(p, state, yes).request(t))
	if len(kept) == 0 || strings.Contains(string(kept), "private") {
		t.Errorf("%q", kept)
	}
}

type spyStore struct {
	task.Store
	finish func(response []byte)
}

func (s *spyStore) Finish(ctx context.Context, u task.Use, response []byte) error {
	s.finish(response)
	return s.Store.Finish(ctx, u, response)
}

// A round that ends in what the client can mend, and had no effect, is given back: the same
// retry then fares by its own capabilities (B-37).
func TestOnceGivesBack(t *testing.T) {
	for _, effect := range []bool{false, true} {
		runs := 0
		tool := tool1(func(ctx context.Context) (any, error) {
			if _, err := thaw.Confirm(ctx, "approve", "?"); err != nil {
				return nil, err
			}
			if effect {
				if err := thaw.Do(ctx, "effect", func(context.Context) error { runs++; return nil }); err != nil {
					return nil, err
				}
			}
			_, err := thaw.Confirm(ctx, "second", "?")
			return "end", err
		}, nil)
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Store: memstore.New(nil), Host: resident})
		p := asks(callT())
		state := stateOf(t, do(t, h, p.request(t)))
		cannot := retry(callT(), state, yes)
		if a := do(t, h, cannot.request(t)); a.code() != mcp.CodeMissingCapability || a.status != 400 {
			t.Fatalf("%d %s", a.status, a.raw)
		}
		a := do(t, h, retry(p, state, yes).request(t))
		if effect {
			// What a step did is not done again: the answer is the recorded one.
			if a.code() != mcp.CodeMissingCapability || runs != 1 {
				t.Errorf("%s after %d runs", a.raw, runs)
			}
			continue
		}
		if second := stateOf(t, a); !strings.Contains(do(t, h, retry(p, second, `{"second":{"action":"accept"}}`).request(t)).raw, "end") {
			t.Error("the call does not go on")
		}
	}
}
