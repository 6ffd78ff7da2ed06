package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
)

// running is one run of a handler: the author's view of it (call.Call), and the one place
// where it ends. It may outlive the request in the hands of a handler that kept its ctx.
type running struct {
	h             *Handler
	*catalog                 // what the call began with
	out           *responder // where notifications and the answer go
	requestID     []byte
	meta          *meta
	acceptsStream bool
	kind          string // "tool", "prompt", "resource", "completion"
	name          string
	principal     *thaw.Principal
	scopes        []string        // what the operation is declared to need
	ctx           context.Context // the handler's
	method        string
	args          []byte

	asks     bool // it may suspend
	run      journal.Run
	keep     journal.Waiter // where its journal goes
	before   *continuation
	round    int // from 1
	attempt  int // from 1
	taskID   string
	kept     *kept                // of an answer that is recorded; nil otherwise, and in a task
	say      func(message string) // of a task; nil in a plain call
	revision int                  // the one the call began under
	started  time.Time            // in the round that began it; zero in that round
	claimed  *task.Use            // the round that this run took, on a once-only call; mu guards it

	idOnce sync.Once
	callID statecodec.CallID // through sealedID

	// mu makes the end one event: whoever ends the call first answers, while nobody else
	// writes, and what comes later is dropped.
	mu    sync.Mutex
	ended bool
	emit  emitter
}

// handle runs fn, the author's part of the request, under the deadline and out of reach
// of its panics, and sends what it returns: the message with its result, or an error.
func (q *request) handle(kind, name string, timeout time.Duration, fn func(ctx context.Context, c *running) ([]byte, error)) {
	c := &running{
		h: q.h, catalog: q.cat, out: &q.out, requestID: q.msg.id, meta: &q.msg.meta,
		acceptsStream: q.acceptsStream, kind: kind, name: name, principal: q.principal, scopes: q.target.needs(), method: q.msg.method, args: q.args,
	}
	c.keep = (*keeper)(c)
	c.resume(q)
	ctx := withTrace(q.r.Context(), &q.msg.meta)
	if limit := q.h.limits.request; limit > 0 && (timeout == 0 || limit < timeout) {
		timeout = limit
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	ctx = call.NewContext(ctx, c)
	c.ctx = ctx
	// A handler that does not look at its ctx must not cost the client its answer.
	if deadline, ok := ctx.Deadline(); ok {
		q.out.until = deadline
		defer time.AfterFunc(time.Until(deadline), c.overrun).Stop()
	}

	returned := false
	defer func() {
		if !returned {
			c.broke(recover(), debug.Stack())
		}
	}()
	o := c.outcome(c.settle(fn(ctx, c))) // an error's own methods run here, so still under the recover
	returned = true
	c.end(func() {
		c.settleClaim(o)
		c.send(o)
	})
}

// resume takes up what the request brings of the rounds before it.
func (c *running) resume(q *request) {
	c.before, c.round, c.attempt, c.callID, c.kept = q.before, 1, 1, q.callID, q.kept
	if t, ok := q.target.(*tool); ok {
		c.revision = t.Revision
	}
	if q.before.resumes() {
		s := &q.before.state
		c.callID, c.started, c.revision, c.round = s.CallID, s.Started, int(s.Revision), int(s.Round)+1
	}
	if c.asks = q.op.asks; c.asks && q.before != nil {
		c.run.Begin(q.before.journal, q.before.answers)
	}
}

// outcome is what a call ends with: a message with its result, a failure, or nothing for a
// client that has left or a call that has ended before.
type outcome struct {
	message []byte
	failure *failure
}

// end runs answer if nothing has ended the call before.
func (c *running) end(answer func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		if c.kept != nil {
			c.kept.effects = c.run.Effects()
		}
		answer()
	}
}

// overrun answers for a handler whose time is over. The handler may go on, so the
// connection takes no further request: it would wait for this one.
func (c *running) overrun() {
	defer func() { // nothing above a timer would contain it
		if p := recover(); p != nil {
			c.log(slog.LevelError, "panic in an answer", slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		}
	}()
	c.end(func() {
		c.out.announceClose()
		o := c.outcomeOf(errOverrun)
		c.settleClaim(o)
		c.send(o)
		c.out.flush()
		host.Answered(c.ctx)
	})
}

// broke answers for a handler that did not return: a panic, or a runtime.Goexit, for
// which value is nil and which ends this goroutine all the same, so that the answer has to
// leave now. Neither the value nor the stack leaves the process.
func (c *running) broke(value any, stack []byte) {
	f := c.panicked(value, stack)
	c.end(func() {
		if value == nil {
			c.out.announceClose()
		}
		o := outcome{failure: f}
		c.settleClaim(o)
		c.send(o)
		if value == nil {
			c.out.flush()
			host.Answered(c.ctx)
		}
	})
}

// panicked logs a handler that did not return, and is what its client gets for it.
func (c *running) panicked(value any, stack []byte) *failure {
	what := "runtime.Goexit"
	if value != nil {
		what = fmt.Sprint(value) // which survives a String method that panics
	}
	c.log(slog.LevelError, "panic in a handler", slog.String("panic", what), slog.String("stack", string(stack)))
	return internal(reasonPanic, fmt.Sprintf("Internal error (reference %s)", c.id()[:8]))
}

// outcome is the message, or what err becomes; nothing once the call has ended.
func (c *running) outcome(message []byte, err error) outcome {
	if err == nil {
		return outcome{message: message}
	}
	c.mu.Lock()
	ended, claimed := c.ended, c.claimed != nil
	c.mu.Unlock()
	if ended {
		return outcome{}
	}
	if !claimed && c.out.left() { // of a once-only call the answer is kept for whoever asks again
		c.logError(slog.LevelInfo, "client left", err)
		return outcome{}
	}
	if !claimed && errors.Is(err, context.Canceled) && context.Cause(c.ctx) == host.ErrStopping {
		c.logError(slog.LevelWarn, "cut off by the stop of the server", err)
		return outcome{failure: whileStopping()}
	}
	return c.outcomeOf(err)
}

func whileStopping() *failure {
	f := internal(reasonStopping, "The server is stopping: try again")
	f.status, f.retryAfter = http.StatusServiceUnavailable, time.Second
	return f
}

func (c *running) outcomeOf(err error) outcome {
	if c.kind == "tool" {
		if message := c.toolError(err); message != nil {
			return outcome{message: message}
		}
	}
	return outcome{failure: c.failure(err)}
}

func (c *running) send(o outcome) {
	switch {
	case o.failure != nil:
		c.out.fail(c.requestID, o.failure)
	case o.message != nil:
		c.out.message(c.requestID, o.message)
	default:
		c.out.abandoned()
	}
}

var errOverrun = errors.New("the handler did not end in time")

// timedOut reports whether err is the end of the call's own time. A handler that ran into
// a deadline of its own has failed like any other.
func (c *running) timedOut(err error) bool {
	return err == errOverrun || errors.Is(err, context.DeadlineExceeded) && errors.Is(c.ctx.Err(), context.DeadlineExceeded)
}

// failure is the JSON-RPC error for err; docs/errors.md has the table.
func (c *running) failure(err error) *failure {
	var refusal *failure
	if errors.As(err, &refusal) {
		return refusal // whoever made it has logged it
	}
	var protocol *mcp.Error
	if errors.As(err, &protocol) {
		if f := protocolFailure(protocol); f != nil {
			return f
		}
		c.logError(slog.LevelError, "the handler returned an error that cannot be sent", err)
		return internal(reasonHandlerFailed, c.masked("failed", err))
	}
	if f := unsupported(err); f != nil {
		return f
	}
	if errors.Is(err, errNoStateKey) {
		c.logError(slog.LevelError, c.kind+" cannot ask", err)
		return internal(reasonCannotAsk, c.masked("cannot ask its user here", err))
	}
	if errors.Is(err, thaw.ErrNotFound) && c.kind == "resource" {
		return notFound(c.name)
	}
	if text, ok := clientText(err); ok {
		c.logError(slog.LevelInfo, "handler error", err)
		return internal(reasonHandlerError, text)
	}
	if c.timedOut(err) {
		c.logError(slog.LevelWarn, "handler timed out", err)
		return internal(reasonTimeout, c.name+" timed out")
	}
	c.logError(slog.LevelError, "handler failed", err)
	return internal(reasonHandlerFailed, c.masked("failed", err))
}

// protocolFailure is a handler's own JSON-RPC error, or nil if it may not be sent.
func protocolFailure(e *mcp.Error) *failure {
	if e == nil || reservedCode(e.Code) {
		return nil
	}
	f := &failure{status: statusOf(e.Code), code: e.Code, message: e.Message}
	if e.Data != nil {
		data, err := strictjson.Marshal(e.Data)
		if err != nil {
			return nil
		}
		f.raw = data
	}
	return f
}

// unsupported is the -32021 for an error that names the capabilities it lacks (B-30, B-31).
func unsupported(err error) *failure {
	var lacks *thaw.UnsupportedError
	if !errors.As(err, &lacks) || lacks == nil {
		return nil
	}
	needs, err := strictjson.AppendCompact(nil, lacks.Needs.Raw)
	if err != nil || strictjson.Kind(needs) != '{' { // B-31
		return nil
	}
	return &failure{status: statusOf(mcp.CodeMissingCapability), code: mcp.CodeMissingCapability, reason: reasonMissingCapability,
		message: "Missing required client capability", data: append([]byte(`"requiredCapabilities":`), needs...)}
}

func notFound(uri string) *failure {
	f := invalidParams(reasonUnknownResource, "Resource not found")
	f.data = strictjson.AppendString([]byte(`"uri":`), uri)
	return f
}

// toolError is the message with the isError result for err (F-16, F-17), or nil if err is a JSON-RPC error.
func (c *running) toolError(err error) []byte {
	var refusal *failure
	var protocol *mcp.Error
	if errors.As(err, &refusal) && refusal.challenge != "" && c.out.begun() { // a challenge would come too late
		return c.errorResult(refusal.message, refusal.reason)
	}
	if refusal != nil || errors.As(err, &protocol) || errors.Is(err, thaw.ErrUnsupported) {
		return nil
	}
	var text, reason string
	if own, ok := clientText(err); ok {
		c.logError(slog.LevelInfo, "tool error", err)
		text = own
	} else if c.timedOut(err) {
		c.logError(slog.LevelWarn, "tool timed out", err)
		text, reason = c.name+" timed out", reasonTimeout
	} else if errors.Is(err, context.Canceled) && errors.Is(c.ctx.Err(), context.Canceled) {
		c.logError(slog.LevelWarn, "tool was interrupted", err)
		text, reason = c.name+" was interrupted, and may have done part of its work", reasonInterrupted
	} else {
		c.logError(slog.LevelError, "tool failed", err)
		text, reason = c.masked("failed", err), reasonHandlerFailed
	}
	return c.errorResult(text, reason)
}

// errorResult is the message with an isError result of one block of text.
func (c *running) errorResult(text, reason string) []byte {
	r := mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
	if reason != "" {
		r.Meta = map[string]any{metaReason: reason}
	}
	b, err := c.encodeResult(&r)
	if err != nil {
		return nil // a text block always encodes
	}
	return b
}

// metaReason carries a reason code in a tool's result, where error.data does elsewhere.
const metaReason = "io.github.thaw-mcp/reason"

// clientText finds a text that an author wrote for the caller, and only that text.
func clientText(err error) (string, bool) {
	var e interface{ ClientText() string }
	if errors.As(err, &e) {
		return e.ClientText(), true
	}
	return "", false
}

// masked says that something failed and where to look it up. Only somebody at this very
// machine reads more, and of a task only where no other process can answer with how it ended.
func (c *running) masked(verb string, err error) string {
	text := fmt.Sprintf("%s %s (reference %s)", c.name, verb, c.id()[:8])
	told := c.h.local
	if c.taskID != "" || c.kept != nil {
		told = c.h.localTasks
	}
	if told && err != nil {
		text += ": " + err.Error()
	}
	return text
}

// log writes to the operator's log under the call's id and trace.
func (c *running) log(level slog.Level, message string, attrs ...slog.Attr) {
	if l := c.h.logger; l.Enabled(c.ctx, level) {
		l.LogAttrs(c.ctx, level, message, append(c.attrs(), attrs...)...)
	}
}

func (c *running) logError(level slog.Level, message string, err error) {
	c.log(level, message, slog.String("error", err.Error()))
}

// attrs are what every line about the call carries.
func (c *running) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String(c.kind, c.name), slog.String("call", c.id())}
	if id := traceID(c.ctx); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	return attrs
}

// failInternal answers -32603 for a fault of the server itself.
func (q *request) failInternal(what string, err error) {
	id := newID()
	q.h.logger.LogAttrs(context.Background(), slog.LevelError, what, slog.String("call", id), slog.String("error", err.Error()))
	q.out.fail(q.msg.id, internal(reasonInternal, fmt.Sprintf("Internal error (reference %s)", id[:8])))
}

// Info implements call.Call.
func (c *running) Info() any {
	client, _ := strictjson.String(memberOf(c.meta.clientInfo, "name"))
	return thaw.CallInfo{
		ID:           c.id(),
		Tool:         c.name,
		Principal:    copied(c.principal),
		Round:        c.round,
		Attempt:      c.attempt,
		TaskID:       c.taskID,
		Revision:     c.revision,
		ClientName:   client,
		Capabilities: mcp.ClientCapabilities{Raw: json.RawMessage(c.meta.capabilities)},
		Meta:         json.RawMessage(c.meta.raw),
	}
}

// Logger implements call.Call.
func (c *running) Logger() *slog.Logger {
	return slog.New(replayHandler{c.h.logger.Handler().WithAttrs(c.attrs()), c})
}

// id names the call in the log, the same in all its rounds. Most calls never need one.
func (c *running) id() string { return c.sealedID().LogID() }

// newID is 128 random bits in hex.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
