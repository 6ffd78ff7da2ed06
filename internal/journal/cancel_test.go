package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/journal"
)

// cancelling is the keeper of a task that may be cancelled.
type cancelling struct {
	at        time.Time // of the cancellation
	now       time.Time
	ctx       context.Context
	stop      context.CancelCauseFunc
	recorded  []string
	onWaiting func()
}

func (*cancelling) Judge(call.Question, []byte) error { return nil }
func (*cancelling) Admit(call.Question) error         { return nil }
func (*cancelling) Ready(context.Context) error       { return nil }
func (*cancelling) Full(*journal.Entry, int) error    { return nil }
func (*cancelling) Start(bool) (bool, error)          { return true, nil }
func (k *cancelling) Now() time.Time                  { return k.now }
func (*cancelling) Durable() bool                     { return true }
func (*cancelling) Ends() time.Time                   { return time.Time{} }
func (*cancelling) Promote() bool                     { return false }
func (*cancelling) IdempotencyKey(string) string      { return "" }
func (k *cancelling) Keep(_ context.Context, e *journal.Entry) error {
	k.recorded = append(k.recorded, e.Key)
	return nil
}
func (k *cancelling) Wait(ctx context.Context, _ time.Duration) error {
	if k.onWaiting != nil {
		k.onWaiting()
	}
	return context.Cause(ctx)
}
func (*cancelling) Recovered(string, any, []byte) error { return errors.New("panic") }
func (k *cancelling) Cancelled() time.Time              { return k.at }
func (k *cancelling) Stop() context.Context             { k.stop(call.ErrCancelled); return k.ctx }
func (*cancelling) CleanUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// What the handler of a cancelled task is told, and what it may do then (tasks rule 14).
func TestCancelled(t *testing.T) {
	start := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	value := func(key, data string) journal.Entry {
		return journal.Entry{Key: key, Kind: journal.Value, Data: []byte(data)}
	}
	slept := func(key string, over time.Time) journal.Entry { return value(key, fmt.Sprint(over.UnixMilli())) }
	type handler struct {
		*journal.Run
		k    *cancelling
		seen []string
	}
	see := func(h *handler, what string, err error) {
		switch {
		case errors.Is(err, call.ErrCancelled):
			what += " cancelled"
		case err != nil:
			what += ": " + err.Error()
		}
		h.seen = append(h.seen, what)
	}
	step := func(h *handler, ctx context.Context, key string) {
		_, err := h.StepWith(ctx, h.k, nil, key, 0, func(ctx context.Context, _ int) (call.Outcome, error) {
			return call.Outcome{JSON: []byte("1")}, context.Cause(ctx)
		})
		see(h, key, err)
	}
	sleep := func(h *handler, key string) {
		see(h, key, h.SleepWith(h.k.ctx, h.k, key, 0, time.Minute))
	}
	for name, c := range map[string]struct {
		entries []journal.Entry
		now     int // minutes; the cancellation was at 10
		run     func(h *handler)
		want    []string
	}{
		"steps: one is told, the next clean up": {nil, 11, func(h *handler) {
			step(h, h.k.ctx, "a")
			step(h, h.k.ctx, "b")
			step(h, h.k.ctx, "c")
		}, []string{"a cancelled", "b", "c"}},
		"what is recorded comes back": {[]journal.Entry{value("a", "1")}, 11, func(h *handler) {
			step(h, h.k.ctx, "a")
			step(h, h.k.ctx, "b")
			step(h, h.k.ctx, "undo")
		}, []string{"a", "b cancelled", "undo"}},
		"a sleep that was over before": {[]journal.Entry{slept("s", at(9))}, 30, func(h *handler) {
			sleep(h, "s")
			step(h, h.k.ctx, "a")
			step(h, h.k.ctx, "undo")
		}, []string{"s", "a cancelled", "undo"}},
		"a sleep that is over since": {[]journal.Entry{slept("s", at(11))}, 30, func(h *handler) {
			sleep(h, "s")
			step(h, h.k.ctx, "undo")
		}, []string{"s cancelled", "undo"}},
		"a sleep that the run before came past, by another clock": {[]journal.Entry{slept("s", at(11)), value("a", "1")}, 30, func(h *handler) {
			sleep(h, "s")
			step(h, h.k.ctx, "a")
			step(h, h.k.ctx, "b")
		}, []string{"s", "a", "b cancelled"}},
		"a sleep that is not over": {[]journal.Entry{slept("s", at(60))}, 11, func(h *handler) {
			sleep(h, "s")
			step(h, h.k.ctx, "undo")
			sleep(h, "s2")
		}, []string{"s cancelled", "undo", "s2 cancelled"}},
		"a question": {nil, 11, func(h *handler) {
			_, err := h.AskWith(h.k, question, 0)
			see(h, "ask", err)
			step(h, h.k.ctx, "undo")
		}, []string{"ask cancelled", "undo"}},
		"a poll": {nil, 11, func(h *handler) {
			_, err := h.PollWith(h.k.ctx, h.k, nil, "poll", 0, time.Minute, func(context.Context, int) (call.Outcome, error) {
				return call.Outcome{JSON: []byte("false")}, nil
			})
			see(h, "poll", err)
			step(h, h.k.ctx, "undo")
		}, []string{"poll cancelled", "undo"}},
		"a ctx that outlives it needs no telling, and tells nobody": {nil, 11, func(h *handler) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(h.k.ctx), time.Hour)
			defer cancel()
			step(h, ctx, "undo")
			step(h, h.k.ctx, "a")
			step(h, h.k.ctx, "b")
		}, []string{"undo", "a cancelled", "b"}},
		"a branch's ctx ends with it": {nil, 11, func(h *handler) {
			branch, cancel := context.WithCancel(h.k.ctx)
			defer cancel()
			step(h, h.k.ctx, "a")
			step(h, branch, "b1")
			step(h, branch, "b2")
			step(h, h.k.ctx, "undo")
		}, []string{"a cancelled", "b1 cancelled", "b2 cancelled", "undo"}},
		"a branch that is made after it ends with it too": {nil, 11, func(h *handler) {
			h.k.Stop()
			branch, cancel := context.WithCancel(h.k.ctx)
			defer cancel()
			step(h, h.k.ctx, "a")
			step(h, branch, "b1")
			step(h, branch, "b2")
			step(h, h.k.ctx, "undo")
		}, []string{"a cancelled", "b1 cancelled", "b2 cancelled", "undo"}},
		"between two tries of one that waits elsewhere": {[]journal.Entry{{Key: "a", Kind: journal.Tried, Data: fmt.Appendf(nil, "[1,%d]", at(60).UnixMilli())}}, 11, func(h *handler) {
			step(h, h.k.ctx, "a")
			step(h, h.k.ctx, "undo")
		}, []string{"a cancelled", "undo"}},
		"in the midst of a step": {nil, 0, func(h *handler) {
			_, err := h.StepWith(h.k.ctx, h.k, nil, "a", 0, func(ctx context.Context, _ int) (call.Outcome, error) {
				h.k.at = at(10)
				h.k.Stop()
				return call.Outcome{}, context.Cause(ctx)
			})
			see(h, "a", err)
			step(h, h.k.ctx, "undo")
		}, []string{"a cancelled", "undo"}},
		"between two tries": {nil, 0, func(h *handler) {
			h.k.onWaiting = func() { h.k.at = at(10); h.k.Stop() }
			_, err := h.StepWith(h.k.ctx, h.k, nil, "a", 0, func(context.Context, int) (call.Outcome, error) {
				return call.Outcome{}, &call.Retry{Err: errors.New("busy"), After: time.Second, Max: 9}
			})
			see(h, "a", err)
			step(h, h.k.ctx, "undo")
		}, []string{"a cancelled", "undo"}},
		"not cancelled": {nil, 0, func(h *handler) {
			step(h, h.k.ctx, "a")
			h.k.stop(errors.New("out of time"))
			step(h, h.k.ctx, "b")
		}, []string{"a", "b: out of time"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			_ = ctx.Done() // whose channel tells it from others, as whoever runs the call sees to
			h := &handler{Run: &journal.Run{}, k: &cancelling{now: at(c.now), ctx: ctx, stop: stop}}
			if c.now >= 10 {
				h.k.at = at(10)
			}
			h.Begin(&journal.Journal{Entries: c.entries}, nil)
			c.run(h)
			if !slices.Equal(h.seen, c.want) {
				t.Errorf("%q, want %q", h.seen, c.want)
			}
			if h.Ended() != nil || h.Suspended() {
				t.Errorf("ended by %v, suspended %t", h.Ended(), h.Suspended())
			}
			if cancelled := !h.k.at.IsZero(); cancelled != errors.Is(context.Cause(ctx), call.ErrCancelled) {
				t.Errorf("the handler's ctx: %v", context.Cause(ctx))
			}
		})
	}
}
