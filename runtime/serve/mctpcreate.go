package serve

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// A task that is created over MCTP. Every tool becomes one: it is stored before it is answered, a
// worker runs it, and the answer waits a moment for it, so that quick ones are finished then.

const (
	// mctpWait is how long the answer to a new task waits for its end, and mctpMaxWait how long a
	// client may have it wait (Prefer: wait=SECONDS, RFC 7240).
	mctpWait    = time.Second
	mctpMaxWait = 20 * time.Second
)

// create answers POST to a tool's address.
func (q *mctpRequest) create() *failure {
	for _, check := range [...]func(*request) *failure{(*request).checkScopes, (*request).checkMedia, (*request).readBody} {
		if f := check(&q.request); f != nil {
			return f
		}
	}
	key, f := q.idempotencyKey()
	if f != nil {
		return f
	}
	if q.args, f = q.parameters(); f != nil {
		return f
	}
	c := q.running()
	var s *task.Snapshot
	if key == "" {
		if f = q.admit(c); f == nil {
			s, f = q.make(c)
		}
	} else {
		s, f = q.makeOnce(c, key)
	}
	if f != nil {
		return f
	}
	s = q.await(s)
	base, _ := q.base()
	q.w.Header().Set("Location", endpoint(base, q.tool.Name)+"/"+s.Head.ID)
	q.send(http.StatusCreated, q.stand(s).AppendJSON(nil))
	return nil
}

// admit judges what is to become a task, which counts against the tool's rate.
func (q *mctpRequest) admit(c *running) *failure {
	if f := q.checkRate(); f != nil {
		return f
	}
	input, err := q.tool.Input()
	if err != nil {
		return c.broken("input schema", err)
	}
	if _, violations := input.Validate(q.args); len(violations) > 0 {
		q.problem(&failure{status: http.StatusUnprocessableEntity, reason: reasonInvalidArguments, message: "The parameters are not those of " + q.tool.Name}, violationsOf(violations))
		return answered
	}
	return nil
}

// parameters are those of the body: {"parameters":{…}}, or nothing for a tool that takes none.
func (q *mctpRequest) parameters() ([]byte, *failure) {
	body := strictjson.Trim(q.body)
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	if err := strictjson.Check(body, q.h.limits.depth); err != nil {
		return nil, &failure{status: http.StatusBadRequest, reason: reasonParseError, message: "Parse error: " + err.Error()}
	}
	wrong := invalidRequest(`the body has to be {"parameters": {…}}`)
	if strictjson.Kind(body) != '{' {
		return nil, wrong
	}
	if value := strictjson.Member(body, "parameters"); value != nil {
		if strictjson.Kind(value) != '{' {
			return nil, wrong
		}
		return value, nil
	}
	for range strictjson.Members(body) { // most likely what belongs into parameters
		return nil, wrong
	}
	return []byte("{}"), nil
}

func violationsOf(violations []schema.Violation) []mctp.Violation {
	list := make([]mctp.Violation, len(violations))
	for i, v := range violations {
		list[i] = mctp.Violation{Pointer: v.Path, Detail: v.Message}
	}
	return list
}

// mctpCapabilities are what the client of a task can do: whoever answers over MCP can be asked.
const mctpCapabilities = `{"elicitation":{"form":{},"url":{}},"extensions":{"` + tasksExtension + `":{}}}`

// running is the call that the task is made of.
func (q *mctpRequest) running() *running {
	raw := []byte(`{"` + mcp.MetaProtocolVersion + `":"` + mcp.Version + `","` + mcp.MetaClientCapabilities + `":` + mctpCapabilities)
	for _, trace := range [...]struct{ header, name string }{{"Traceparent", mcp.MetaTraceParent}, {"Tracestate", mcp.MetaTraceState}, {"Baggage", mcp.MetaBaggage}} {
		if lines := q.r.Header[trace.header]; len(lines) == 1 {
			raw = strictjson.AppendString(append(strictjson.AppendString(append(raw, ','), trace.name), ':'), strings.ToValidUTF8(lines[0], ""))
		}
	}
	q.msg = message{id: []byte("0"), method: mcp.MethodCallTool}
	q.msg.takeMeta(append(raw, '}'))
	return &running{h: q.h, catalog: q.cat, out: &q.out, requestID: q.msg.id, meta: &q.msg.meta, kind: "tool", name: q.tool.Name, principal: q.principal,
		scopes: q.tool.Scopes, method: q.msg.method, args: q.args, round: 1, attempt: 1, revision: q.tool.Revision, ctx: q.r.Context()}
}

// make makes the call a task. A tool that is never a task runs now, and is recorded with what it
// ended in.
func (q *mctpRequest) make(c *running) (*task.Snapshot, *failure) {
	creation, err := c.creation(q.tool)
	if err != nil {
		return nil, c.failure(err)
	}
	ctx, began := context.WithoutCancel(q.r.Context()), q.h.now()
	if q.tool.Tasks != declared.TaskNever {
		h, err := q.h.engine.Create(ctx, creation, unreachable)
		if err != nil {
			return nil, c.notCreated(err)
		}
		return &task.Snapshot{Head: h}, nil
	}
	outcome, f := q.runNow(c)
	if f != nil {
		return nil, f
	}
	h, err := q.h.engine.CreateEnded(ctx, began, creation, *outcome)
	if err != nil {
		return nil, c.notCreated(err)
	}
	return &task.Snapshot{Head: h, Outcome: outcome.Data}, nil
}

// runNow is what the tool ends in, run as a plain call whose client cannot be asked. A client that
// leaves does not end it: what was done is recorded, for whoever asks again. A caller that lacks
// scopes is refused as elsewhere, unless something was done.
func (q *mctpRequest) runNow(c *running) (*task.Outcome, *failure) {
	ctx, end := q.staying()
	defer end()
	// How large a result may be is for the door to say that it is read through.
	ctx = host.WithResponseLimit(ctx, 0, func([]byte) bool { return true })
	answered := make(chan struct{})
	w := &memoryResponse{header: http.Header{}}
	r := q.r.WithContext(host.WithAnswered(ctx, sync.OnceFunc(func() { close(answered) })))
	inner := &request{h: q.h, cat: q.cat, w: w, r: r, msg: q.msg, op: operations[mcp.MethodCallTool], principal: q.principal, target: q.tool, args: q.args, callID: c.sealedID(), kept: &kept{}}
	inner.msg.meta.capabilities = []byte("{}")
	inner.out.init(q.h, w, r)
	// On a goroutine of its own: a handler that outstays its time, or ends its goroutine, has
	// been answered for all the same.
	go func() {
		defer host.Answered(r.Context())
		defer inner.contain()
		serveTool(inner)
	}()
	<-answered
	if result := memberOf(w.body.Bytes(), "result"); result != nil {
		return &task.Outcome{Status: task.Completed, Data: result}, nil
	}
	fault := memberOf(w.body.Bytes(), "error")
	message, _ := strictjson.String(memberOf(fault, "message"))
	reason, _ := strictjson.String(memberOf(memberOf(fault, "data"), "reason"))
	if reason == reasonStopping {
		return nil, whileStopping()
	}
	if challenge := w.header.Get("WWW-Authenticate"); challenge != "" && !inner.kept.effects {
		return nil, &failure{status: w.status, reason: reason, message: message, challenge: challenge}
	}
	return &task.Outcome{Status: task.Failed, Message: message, Data: fault}, nil
}

// staying is the context of the request without the client's departure: it ends with the time
// there is, and when the host stops.
func (q *mctpRequest) staying() (context.Context, context.CancelFunc) {
	parent := q.r.Context()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	unhook := context.AfterFunc(parent, func() {
		if context.Cause(parent) == host.ErrStopping {
			cancel(host.ErrStopping)
		}
	})
	end := func() { unhook(); cancel(nil) }
	deadline, ok := parent.Deadline()
	if !ok {
		return ctx, end
	}
	ctx, over := context.WithDeadline(ctx, deadline)
	return ctx, func() { over(); end() }
}

// await waits until the task has ended or waits itself, for as long as the client likes and there
// is time.
func (q *mctpRequest) await(s *task.Snapshot) *task.Snapshot {
	if s.Head.Status != task.Working {
		return s
	}
	wait, applied := preferredWait(q.r.Header["Prefer"])
	if limit := q.h.limits.request; limit > 0 {
		wait = min(wait, limit)
	}
	switch applied {
	case preferAsync:
		q.w.Header().Set("Preference-Applied", preferAsync)
	case preferWait:
		q.w.Header().Set("Preference-Applied", preferWait+"="+strconv.Itoa(int(wait/time.Second)))
	}
	ctx, cancel := context.WithTimeout(q.r.Context(), wait)
	defer cancel()
	for pause := 5 * time.Millisecond; s.Head.Status == task.Working; pause = min(2*pause, time.Second/2) {
		select {
		case <-ctx.Done():
			return s
		case <-time.After(pause):
		}
		now, err := q.h.engine.Get(ctx, s.Head.ID, s.Head.Owner)
		if err != nil {
			return s // it was created, and that is the answer
		}
		s = &now
	}
	return s
}

// The preferences that are followed.
const (
	preferAsync = "respond-async"
	preferWait  = "wait"
)

// preferredWait reads Prefer lines (RFC 7240, section 2). applied is the preference that counts, or
// "". Of both, respond-async says what happens after the wait, which happens in any case.
func preferredWait(lines []string) (wait time.Duration, applied string) {
	wait = mctpWait
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			preference, _, _ := strings.Cut(item, ";") // its parameters mean nothing here
			name, value, _ := strings.Cut(preference, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case preferAsync:
				if applied == "" {
					wait, applied = 0, preferAsync
				}
			case preferWait:
				if d, ok := waitOf(strings.TrimSpace(value)); ok {
					return d, preferWait
				}
			}
		}
	}
	return wait, applied
}

// waitOf reads whole seconds, quoted or not, as far as they are followed.
func waitOf(value string) (time.Duration, bool) {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if most := uint64(mctpMaxWait / time.Second); err != nil || n > most { // there are digits only: it is too large
		n = most
	}
	return time.Duration(n) * time.Second, true
}
