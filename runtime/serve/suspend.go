package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/statecodec"
)

// The author's operations, over the journal of a plain call.

// Ask implements call.Call.
func (c *running) Ask(q call.Question, at call.Site) ([]byte, error) {
	return c.run.AskWith(c.keep, q, at)
}

// Step implements call.Call.
func (c *running) Step(ctx context.Context, key string, at call.Site, fn call.StepFunc) (call.Outcome, error) {
	return c.run.StepWith(ctx, c.keep, c, key, at, fn)
}

// Record implements call.Call.
func (c *running) Record(key string, at call.Site, value func() []byte) []byte {
	return c.run.RecordWith(c.ctx, c.keep, key, at, value)
}

// IdempotencyKey implements call.Call.
func (c *running) IdempotencyKey() string { return c.keep.IdempotencyKey("") }

// Sleep implements call.Call.
func (c *running) Sleep(ctx context.Context, key string, at call.Site, d time.Duration) error {
	return c.run.SleepWith(ctx, c.keep, key, at, d)
}

// Poll implements call.Call.
func (c *running) Poll(ctx context.Context, key string, at call.Site, every time.Duration, fn call.StepFunc) (call.Outcome, error) {
	return c.run.PollWith(ctx, c.keep, c, key, at, every, fn)
}

// Continue implements call.Call.
func (c *running) Continue(call.Site) error { return c.run.ContinueWith(c.keep) }

// Misuse implements call.Call.
func (c *running) Misuse(key string, at call.Site, what string) error {
	return c.run.Misuse(key, at, what)
}

// keeper keeps the journal of a plain call: in memory, until it is sealed into the state
// that the client carries.
type keeper running

// Judge implements journal.Keeper.
func (k *keeper) Judge(q call.Question, answer []byte) error {
	violations, err := input.Check(q.Method, q.Params, answer)
	if err != nil {
		return invalidAnswer(q.Key, err)
	}
	if len(violations) == 0 {
		return nil
	}
	var text strings.Builder
	for i, v := range violations {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(v.String())
	}
	return &journal.Violation{Text: text.String()}
}

// Admit implements journal.Keeper.
func (k *keeper) Admit(q call.Question) error {
	if !k.asks {
		return fmt.Errorf("%w: a completion cannot ask its user", thaw.ErrUnsupported)
	}
	if k.h.codec == nil {
		return errNoStateKey
	}
	if lacks := input.Lacks(q.Method, q.Params, k.meta.capabilities); lacks != nil {
		return &thaw.UnsupportedError{Needs: mcp.ClientCapabilities{Raw: lacks}}
	}
	if k.round > statecodec.MaxRounds {
		(*running)(k).log(slog.LevelWarn, "the call asks too often", slog.Int("rounds", k.round), slog.String("key", q.Key))
		return internal(reasonTooManyRounds, fmt.Sprintf("%s asked in %d rounds, which is the most there are", k.name, statecodec.MaxRounds))
	}
	return nil
}

// errNoStateKey is a lack of the deployment, so an ErrUnsupported without needs.
var errNoStateKey = fmt.Errorf("%w: this deployment cannot ask, it has no THAW_STATE_KEY to seal a state with", thaw.ErrUnsupported)

// Ready implements journal.Keeper: what a step does must not be lost because the key that
// seals it turns out to be out of reach.
func (k *keeper) Ready(ctx context.Context) error {
	if k.h.codec == nil {
		return nil
	}
	if err := k.h.codec.Ready(ctx); err != nil {
		(*running)(k).logError(slog.LevelError, "no key to seal the call's state with", err)
		return stateFailure(err)
	}
	return nil
}

// journalReserve is left free for what is around the entries: questions that are still to
// be asked, and the names of the parts.
const journalReserve = 512

// maxKept is what the answers and results of a call may take together.
const maxKept = statecodec.MaxJournal - journalReserve

// Full implements journal.Keeper. A server that cannot ask has no use for the journal, so
// only one that can has a limit for it.
func (k *keeper) Full(e *journal.Entry, size int) error {
	if k.h.codec == nil || size <= maxKept {
		return nil
	}
	what := "result of step"
	if e.Kind == journal.Answer {
		what = "answer to"
	}
	(*running)(k).log(slog.LevelError, "the call keeps too much", slog.String("key", e.Key), slog.Int("bytes", len(e.Data)),
		slog.Int("kept", size), slog.Int("allowed", maxKept))
	return internal(reasonStateTooLarge, fmt.Sprintf("%s: the %s %s has %d bytes; with all that the call keeps that is %d, allowed are %d",
		k.name, what, quoted([]byte(e.Key)), len(e.Data), size, maxKept))
}

// Start implements journal.Keeper.
func (k *keeper) Start(bool) (bool, error) { return true, nil }

// Keep implements journal.Keeper: what a plain call keeps is sealed when it asks.
func (k *keeper) Keep(context.Context, *journal.Entry) error { return nil }

// Wait implements journal.Keeper.
func (k *keeper) Wait(ctx context.Context, d time.Duration) error { return waitInPlace(ctx, d) }

// waitInPlace waits, unless ctx would end before.
func waitInPlace(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return context.DeadlineExceeded
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Recovered implements journal.Keeper.
func (k *keeper) Recovered(key string, value any, stack []byte) error {
	c := (*running)(k)
	c.log(slog.LevelError, "panic in a step", slog.String("key", key), slog.String("panic", fmt.Sprint(value)), slog.String("stack", string(stack)))
	return internal(reasonPanic, fmt.Sprintf("Internal error (reference %s)", c.id()[:8]))
}

// Now implements journal.Waiter.
func (k *keeper) Now() time.Time { return k.h.now() }

// Durable implements journal.Waiter: a plain call waits in place.
func (k *keeper) Durable() bool { return false }

// Ends implements journal.Waiter.
func (k *keeper) Ends() time.Time { return time.Time{} }

// Promote implements journal.Waiter.
func (k *keeper) Promote() bool { return (*running)(k).canBeTask() }

// IdempotencyKey implements journal.Keeper.
func (k *keeper) IdempotencyKey(step string) string {
	return (*running)(k).sealedID().IdempotencyKey(step)
}

// settle turns what the handler returned into what the call ends with: what ended the run
// whatever it returned, and what it asked, come before any result and error.
func (c *running) settle(message []byte, err error) ([]byte, error) {
	whole := c.closeRun()
	ended := c.run.Ended()
	if ended == nil && err != nil && errors.Is(err, thaw.ErrSuspended) && !c.run.Suspended() {
		ended = errAskedNothing
	}
	switch {
	case ended != nil: // what could not be recorded must not be asked away
		return nil, c.cutShort(ended)
	case c.run.Suspended() && !whole: // a step is still at work, and would be done again
		return nil, errOverrun
	case c.run.Promoted():
		return c.createTask(c.catalog.tools[c.name], c.run.Journal())
	case c.run.Suspended():
		return c.suspend()
	}
	if err == nil {
		if unread := c.run.Unread(); len(unread) > 0 {
			c.log(slog.LevelWarn, "the call recorded what its handler did not read again", slog.Any("keys", unread))
		}
	}
	return message, err
}

var errAskedNothing = errors.New("the handler returned ErrSuspended and has asked nothing")

// closeRun closes the run. Steps in flight have the call's own time to end, also where the
// client has left.
func (c *running) closeRun() (whole bool) {
	until := time.Now().Add(lingerTime)
	if deadline, ok := c.ctx.Deadline(); ok && (c.ctx.Err() == nil || deadline.Before(until)) {
		until = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(c.ctx), until)
	defer cancel()
	return c.run.Close(ctx)
}

// lingerTime is how long steps in flight have where the call has no time of its own, or
// nobody waits for it any more.
const lingerTime = 30 * time.Second

// cutShort is the failure for what ended the call whatever its handler returned.
func (c *running) cutShort(ended error) *failure {
	var refusal *failure
	if errors.As(ended, &refusal) {
		return refusal // whoever made it has logged it
	}
	c.logError(slog.LevelError, c.kind+" misuses its call", ended)
	return internal(reasonMisuse, c.masked("is broken", ended))
}

// suspend is the message that asks the client, with the state sealed in it.
func (c *running) suspend() ([]byte, error) {
	started := c.started
	if started.IsZero() {
		started = c.h.now()
	}
	binding, err := c.h.binding(c.principal, c.method, c.name, c.args)
	if err != nil {
		return nil, c.broken("arguments", err)
	}
	text := c.run.Journal().AppendJSON(nil)
	token, err := c.h.codec.Seal(context.WithoutCancel(c.ctx), statecodec.State{
		CallID: c.sealedID(), Started: started, Revision: uint32(c.revision), Round: uint16(c.round), Journal: text,
	}, binding)
	if errors.Is(err, statecodec.ErrTooLarge) {
		c.log(slog.LevelError, "the call keeps too much", slog.Int("kept", len(text)), slog.Int("allowed", statecodec.MaxJournal))
		return nil, internal(reasonStateTooLarge, fmt.Sprintf("%s keeps %d bytes, allowed are %d", c.name, len(text), statecodec.MaxJournal))
	}
	if err != nil {
		c.logError(slog.LevelError, "the call's state cannot be sealed", err)
		return nil, stateFailure(err)
	}
	b := append(appendEnvelope(nil, c.requestID), `{"resultType":"input_required","inputRequests":{`...)
	for i, q := range c.run.Questions() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, q.Key)
		b = strictjson.AppendString(append(b, `:{"method":`...), q.Method)
		b = append(append(b, `,"params":`...), withNote(q.Params, q.Note)...)
		b = append(b, '}')
	}
	b = strictjson.AppendString(append(b, `},"requestState":`...), token)
	return c.endResult(b, nil)
}

// withNote tells the user in a question's message why an answer to it was not taken.
func withNote(params []byte, note string) []byte {
	if note == "" {
		return params
	}
	b := []byte{'{'}
	for name, value := range strictjson.Members(params) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, name), ':')
		if text, ok := strictjson.String(value); ok && string(name) == "message" {
			b = strictjson.AppendString(b, text+"\n\n(The last answer did not fit: "+note+")")
			continue
		}
		b = append(b, value...)
	}
	return append(b, '}')
}

// sealedID is the call's id, the same over all its rounds. It never leaves: what names the
// call outside is derived from it.
func (c *running) sealedID() statecodec.CallID {
	c.idOnce.Do(func() {
		if c.callID == (statecodec.CallID{}) {
			c.callID = statecodec.NewCallID()
		}
	})
	return c.callID
}
