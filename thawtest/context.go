package thawtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/journal"
)

// Context is a handler's context for calling a function of yours directly: steps run,
// questions get their answer from answers (nil: none) or ErrUnsupported, Logger writes to the
// test's log, Progress goes nowhere, CallInfoFrom describes an anonymous call, which
// RequireScopes refuses. Misuse fails tb.
func Context(tb testing.TB, answers Answers) context.Context {
	d := &direct{tb: tb, answers: answers}
	return call.NewContext(tb.Context(), d)
}

type direct struct {
	tb      testing.TB
	answers Answers
	run     journal.Run
	failed  sync.Once
}

func (d *direct) Info() any {
	return thaw.CallInfo{ID: "thawtest", Tool: d.tb.Name(), Round: 1, Attempt: 1, Principal: thaw.Principal{Scheme: "none"}}
}
func (*direct) RequireScopes([]string) error {
	return errors.New("thawtest: the caller of Context is anonymous and has no scopes")
}
func (*direct) Progress(float64, float64, string) {}
func (d *direct) Logger() *slog.Logger            { return testLogger(d.tb) }
func (*direct) ClientLogger() *slog.Logger        { return slog.New(slog.DiscardHandler) }
func (*direct) IdempotencyKey() string            { return "thawtest" }

func (d *direct) Ask(q call.Question, at call.Site) ([]byte, error) {
	answer, ok := d.answers[q.Key]
	if !ok {
		return nil, thaw.ErrUnsupported
	}
	c := Call{tb: d.tb}
	raw := c.resultFor(question{q.Key, q.Method, q.Params}, answer)
	violations, err := input.Check(q.Method, q.Params, raw)
	if err != nil || len(violations) > 0 {
		d.tb.Errorf("thawtest: the answer to %q does not fit: %v %v", q.Key, err, violations)
	}
	return d.Record(q.Key, at, func() []byte { return raw }), nil
}

func (d *direct) Step(ctx context.Context, key string, at call.Site, fn call.StepFunc) (call.Outcome, error) {
	defer d.report()
	return d.run.StepWith(ctx, directKeeper{}, d, key, at, fn)
}

func (d *direct) Record(key string, at call.Site, value func() []byte) []byte {
	defer d.report()
	return d.run.RecordWith(d.tb.Context(), directKeeper{}, key, at, value)
}

func (d *direct) Sleep(ctx context.Context, key string, at call.Site, dur time.Duration) error {
	defer d.report()
	return d.run.SleepWith(ctx, directKeeper{}, key, at, dur)
}

func (d *direct) Poll(ctx context.Context, key string, at call.Site, every time.Duration, fn call.StepFunc) (call.Outcome, error) {
	defer d.report()
	return d.run.PollWith(ctx, directKeeper{}, d, key, at, every, fn)
}

func (*direct) Continue(call.Site) error { return nil }

func (d *direct) Misuse(key string, at call.Site, what string) error {
	defer d.report()
	return d.run.Misuse(key, at, what)
}

// report fails the test once with what ends the run.
func (d *direct) report() {
	if err := d.run.Ended(); err != nil {
		d.failed.Do(func() { d.tb.Errorf("thawtest: %v", err) })
	}
}

// directKeeper keeps nothing and never waits.
type directKeeper struct{}

func (directKeeper) Judge(call.Question, []byte) error          { return nil }
func (directKeeper) Admit(call.Question) error                  { return nil }
func (directKeeper) Ready(context.Context) error                { return nil }
func (directKeeper) Full(*journal.Entry, int) error             { return nil }
func (directKeeper) Start(bool) (bool, error)                   { return true, nil }
func (directKeeper) Now() time.Time                             { return time.Now() }
func (directKeeper) Durable() bool                              { return false }
func (directKeeper) Ends() time.Time                            { return time.Time{} }
func (directKeeper) Promote() bool                              { return false }
func (directKeeper) Keep(context.Context, *journal.Entry) error { return nil }
func (directKeeper) Wait(context.Context, time.Duration) error  { return nil }
func (directKeeper) IdempotencyKey(step string) string          { return "thawtest-" + step }
func (directKeeper) Recovered(key string, value any, stack []byte) error {
	return fmt.Errorf("step %q panicked: %v\n%s", key, value, stack)
}
