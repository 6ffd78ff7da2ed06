package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// running is one run of a handler: the author's view of it (call.Call) and what its end
// becomes. It may outlive the request in the hands of a handler that kept its ctx.
type running struct {
	q    *request
	kind string // "tool", "prompt", "resource", "completion"
	name string
	id   func() string
	emit emitter
}

// handle runs fn, the author's part of the request, under the deadline and out of reach
// of its panics, and sends what it returns: the members of a result, or an error.
func (q *request) handle(kind, name string, timeout time.Duration, fn func(ctx context.Context, c *running) ([]byte, error)) {
	c := &running{q: q, kind: kind, name: name, id: sync.OnceValue(newID)}
	c.emit.init(c)
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
	// A handler that does not look at its ctx must not cost the client its answer.
	if _, bounded := ctx.Deadline(); bounded {
		defer context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				c.end(nil, ctx.Err())
				q.out.flush()
			}
		})()
	}
	if !q.acceptsJSON && q.acceptsStream && q.out.canStream {
		q.out.stream()
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		// recover is nil after runtime.Goexit, which ends this goroutine all the same:
		// the answer has to leave now.
		p := recover()
		if p == nil {
			q.out.announceClose()
		}
		c.panicked(p, debug.Stack())
		if p == nil {
			q.out.flush()
		}
	}()
	result, err := fn(ctx, c)
	c.end(result, err)
	returned = true
}

// end sends the result, or what err becomes. What comes after the first end is dropped.
func (c *running) end(result []byte, err error) {
	c.emit.end()
	if err == nil {
		c.q.out.result(c.q.msg.id, result)
		return
	}
	if c.q.out.left() {
		c.log(slog.LevelInfo, "client left", err)
		return
	}
	if c.kind == "tool" {
		if result := c.toolError(err); result != nil {
			c.q.out.result(c.q.msg.id, result)
			return
		}
	}
	c.q.out.fail(c.q.msg.id, c.failure(err))
}

// failure is the JSON-RPC error for err; docs/errors.md has the table.
func (c *running) failure(err error) *failure {
	var refusal *failure
	if errors.As(err, &refusal) {
		if refusal.code == mcp.CodeInternalError {
			c.log(slog.LevelError, refusal.reason, err)
		}
		return refusal
	}
	var protocol *mcp.Error
	if errors.As(err, &protocol) {
		if f := c.protocolFailure(protocol); f != nil {
			return f
		}
		c.log(slog.LevelError, "the handler returned an error that cannot be sent", err)
		return internal(reasonHandlerFailed, c.masked("failed", err))
	}
	if f := unsupported(err); f != nil {
		return f
	}
	if errors.Is(err, thaw.ErrNotFound) && c.kind == "resource" {
		return notFound(c.name)
	}
	if text, ok := clientText(err); ok {
		c.log(slog.LevelInfo, "handler error", err)
		return internal(reasonHandlerError, text)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.log(slog.LevelWarn, "handler timed out", err)
		return internal(reasonTimeout, c.name+" timed out")
	}
	c.log(slog.LevelError, "handler failed", err)
	return internal(reasonHandlerFailed, c.masked("failed", err))
}

// protocolFailure is a handler's own JSON-RPC error, or nil if it may not be sent.
func (c *running) protocolFailure(e *mcp.Error) *failure {
	if reservedCode(e.Code) {
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
	if !errors.As(err, &lacks) {
		return nil
	}
	needs, err := strictjson.Marshal(lacks.Needs)
	if err != nil {
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

// toolError is the isError result for err (F-16, F-17), or nil if err is a JSON-RPC error.
func (c *running) toolError(err error) []byte {
	var refusal *failure
	var protocol *mcp.Error
	if errors.As(err, &refusal) || errors.As(err, &protocol) || errors.Is(err, thaw.ErrUnsupported) {
		return nil
	}
	var text, reason string
	if own, ok := clientText(err); ok {
		c.log(slog.LevelInfo, "tool error", err)
		text = own
	} else if errors.Is(err, context.DeadlineExceeded) {
		c.log(slog.LevelWarn, "tool timed out", err)
		text, reason = c.name+" timed out", reasonTimeout
	} else {
		c.log(slog.LevelError, "tool failed", err)
		text, reason = c.masked("failed", err), reasonHandlerFailed
	}
	return c.errorResult(text, reason)
}

// errorResult is an isError result with one block of text.
func (c *running) errorResult(text, reason string) []byte {
	r := mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}
	if reason != "" {
		r.Meta = map[string]any{metaReason: reason}
	}
	b, err := c.q.encodeResult(&r)
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
// machine reads more.
func (c *running) masked(verb string, err error) string {
	text := fmt.Sprintf("%s %s (reference %s)", c.name, verb, c.id()[:8])
	if c.q.h.host.Loopback && err != nil {
		text += ": " + err.Error()
	}
	return text
}

// panicked ends the call after a panic of the handler, or its runtime.Goexit. Neither the
// value nor the stack leaves the process.
func (c *running) panicked(value any, stack []byte) {
	what := "runtime.Goexit"
	if value != nil {
		what = fmt.Sprint(value) // which survives a String method that panics
	}
	c.emit.end()
	c.q.h.logger.LogAttrs(context.Background(), slog.LevelError, "panic in a handler",
		slog.String("kind", c.kind), slog.String("name", c.name), slog.String("call", c.id()),
		slog.String("panic", what), slog.String("stack", string(stack)))
	c.q.out.fail(c.q.msg.id, internal(reasonPanic, fmt.Sprintf("Internal error (reference %s)", c.id()[:8])))
}

func (c *running) log(level slog.Level, message string, err error) {
	if l := c.q.h.logger; l.Enabled(context.Background(), level) {
		l.LogAttrs(context.Background(), level, message, slog.String("kind", c.kind), slog.String("name", c.name),
			slog.String("call", c.id()), slog.String("error", err.Error()))
	}
}

// failInternal answers -32603 for a fault of the server itself.
func (q *request) failInternal(what string, err error) {
	id := newID()
	q.h.logger.LogAttrs(context.Background(), slog.LevelError, what, slog.String("call", id), slog.String("error", err.Error()))
	q.out.fail(q.msg.id, internal(reasonInternal, fmt.Sprintf("Internal error (reference %s)", id[:8])))
}

// Info implements call.Call.
func (c *running) Info() any {
	m := &c.q.msg.meta
	client, _ := stringOf(memberOf(m.clientInfo, "name"))
	return thaw.CallInfo{
		ID:           c.id(),
		Tool:         c.name,
		Principal:    thaw.Principal{Scheme: "none"},
		ClientName:   client,
		Capabilities: mcp.ClientCapabilities{Raw: json.RawMessage(m.capabilities)},
		Meta:         json.RawMessage(m.raw),
	}
}

// Logger implements call.Call.
func (c *running) Logger() *slog.Logger {
	return c.q.h.logger.With(slog.String(c.kind, c.name), slog.String("call", c.id()))
}

// newID is 128 random bits in hex.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// memberOf is a member of a value that may be no object.
func memberOf(value []byte, name string) []byte {
	if strictjson.Kind(value) != '{' {
		return nil
	}
	return strictjson.Member(value, name)
}
