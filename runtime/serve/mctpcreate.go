package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/internal/canon"
	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/statecodec"
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
	t := q.tool
	if f := q.h.requireScopes(q.r, q.principal, t.Scopes, t.Scopes); f != nil {
		return f
	}
	key, f := q.idempotencyKey()
	if f != nil {
		return f
	}
	q.target = t
	for _, check := range [...]func(*request) *failure{(*request).checkRate, (*request).checkMedia, (*request).readBody} {
		if f := check(&q.request); f != nil {
			return f
		}
	}
	if q.args, f = q.parameters(); f != nil {
		return f
	}
	input, err := t.Input()
	if err != nil {
		return q.running("").broken("input schema", err)
	}
	if _, violations := input.Validate(q.args); len(violations) > 0 {
		q.problem(&failure{status: http.StatusUnprocessableEntity, reason: reasonInvalidArguments, message: "The parameters are not those of " + t.Name}, violationsOf(violations))
		return nil
	}
	var s *task.Snapshot
	if key == "" {
		s, f = q.make(q.running(""))
	} else {
		s, f = q.makeOnce(key)
	}
	if f != nil {
		return f
	}
	if s, f = q.await(s); f != nil {
		return f
	}
	base, _ := q.base()
	q.w.Header().Set("Location", base+"/"+url.PathEscape(t.Name)+"/"+s.Head.ID)
	q.write(http.StatusCreated, "application/json", q.stand(s).AppendJSON(nil))
	return nil
}

// parameters are those of the body: {"parameters":{…}}, or nothing for a tool that takes none.
func (q *mctpRequest) parameters() ([]byte, *failure) {
	body := strictjson.Trim(q.body)
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	if err := strictjson.Check(body, q.h.limits.depth); err != nil {
		return nil, &failure{status: http.StatusBadRequest, code: mcp.CodeParseError, reason: reasonParseError, message: "Parse error: " + err.Error()}
	}
	wrong := invalidRequest(`the body has to be {"parameters": {…}}`)
	if strictjson.Kind(body) != '{' {
		return nil, wrong
	}
	others := false
	for name, value := range strictjson.Members(body) {
		if string(name) != "parameters" {
			others = true
			continue
		}
		if strictjson.Kind(value) != '{' {
			return nil, wrong
		}
		return value, nil
	}
	if others { // most likely what belongs into parameters
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

// running is the call that the task is made of. capabilities are what its client can do.
func (q *mctpRequest) running(capabilities string) *running {
	if capabilities == "" { // whoever answers over MCP can be asked
		capabilities = `{"elicitation":{"form":{},"url":{}},"extensions":{"` + tasksExtension + `":{}}}`
	}
	raw := []byte(`{"` + mcp.MetaProtocolVersion + `":"` + mcp.Version + `","` + mcp.MetaClientCapabilities + `":` + capabilities)
	for header, name := range map[string]string{"Traceparent": mcp.MetaTraceParent, "Tracestate": mcp.MetaTraceState} {
		if lines := q.r.Header[header]; len(lines) == 1 {
			raw = strictjson.AppendString(append(strictjson.AppendString(append(raw, ','), name), ':'), strings.ToValidUTF8(lines[0], ""))
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
	ctx := context.WithoutCancel(q.r.Context())
	if q.tool.Tasks != declared.TaskNever {
		h, err := q.h.engine.Create(ctx, creation, unreachable)
		if err != nil {
			return nil, c.notCreated(err)
		}
		return &task.Snapshot{Head: h}, nil
	}
	outcome := q.runNow(c)
	if outcome == nil {
		q.out.abandoned()
		return nil, answered
	}
	h, err := q.h.engine.CreateEnded(ctx, creation, *outcome)
	if err != nil {
		return nil, c.notCreated(err)
	}
	return &task.Snapshot{Head: h, Outcome: outcome.Data}, nil
}

// runNow is what the tool ends in, run as a plain call whose client cannot be asked; nil if the
// client has left.
func (q *mctpRequest) runNow(c *running) *task.Outcome {
	w := &memoryResponse{header: http.Header{}}
	inner := &request{h: q.h, cat: q.cat, w: w, r: q.r, op: operations[mcp.MethodCallTool], principal: q.principal, target: q.tool, args: q.args}
	inner.msg = message{id: []byte("0"), method: mcp.MethodCallTool}
	inner.msg.takeMeta(c.meta.raw)
	inner.msg.meta.capabilities = []byte("{}")
	inner.out.init(q.h, w, q.r)
	serveTool(inner)
	if e := memberOf(w.body.Bytes(), "error"); e != nil {
		message, _ := strictjson.String(memberOf(e, "message"))
		return &task.Outcome{Status: task.Failed, Message: message, Data: e}
	}
	if r := memberOf(w.body.Bytes(), "result"); r != nil {
		return &task.Outcome{Status: task.Completed, Data: r}
	}
	return nil
}

// idempotencyKey is the request's; "" if it has none.
func (q *mctpRequest) idempotencyKey() (string, *failure) {
	lines := q.r.Header[mctp.HeaderIdempotencyKey]
	if len(lines) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(lines[0])
	plain := !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(lines) > 1 || key == "" || len(key) > mctp.MaxIdempotencyKey || !plain {
		return "", invalidRequest(mctp.HeaderIdempotencyKey + " has to be one line of 1 to " + strconv.Itoa(mctp.MaxIdempotencyKey) + " ASCII characters without spaces")
	}
	return key, nil
}

// makeOnce makes the task of a key, or finds it. The id is made of the key, so of several requests
// at a time one makes it; who finds it compares the parameters. A task that has expired and is
// not gone yet makes room for the next of its key.
func (q *mctpRequest) makeOnce(key string) (*task.Snapshot, *failure) {
	owner := taskOwner(q.principal)
	digest, err := canon.Digest(q.args)
	if err != nil {
		return nil, invalidRequest("the parameters cannot be compared: " + err.Error())
	}
	for turn := range uint32(4) {
		c := q.running("")
		c.callID = keyedCall(owner, q.tool.Name, key, turn)
		id := c.callID.TaskID()
		text, err := q.h.engine.Call(q.r.Context(), id, owner)
		if errors.Is(err, task.ErrNotFound) {
			s, f := q.make(c)
			if f != nil {
				return nil, f
			}
			if !s.Head.Expires.IsZero() && !s.Head.Expires.After(q.h.now()) {
				continue
			}
			text, err = q.h.engine.Call(q.r.Context(), id, owner) // another may have been quicker
		}
		if err != nil {
			return nil, q.unreached(err)
		}
		stored, err := readTaskCall(text)
		if err != nil {
			return nil, q.unreached(err)
		}
		if before, err := canon.Digest(stored.Arguments); err != nil || before != digest {
			return nil, &failure{status: http.StatusUnprocessableEntity, code: mcp.CodeInvalidRequest, reason: reasonKeyReused,
				message: mctp.HeaderIdempotencyKey + " was used with other parameters"}
		}
		s, err := q.h.engine.Get(q.r.Context(), id, owner)
		if err != nil {
			return nil, q.unreached(err)
		}
		return &s, nil
	}
	return nil, &failure{status: http.StatusConflict, code: mcp.CodeInvalidRequest, reason: reasonKeyReused, message: mctp.HeaderIdempotencyKey + " was used too often"}
}

// keyedCall is the call that an Idempotency-Key of an owner stands for.
func keyedCall(owner [32]byte, tool, key string, turn uint32) (id statecodec.CallID) {
	h := sha256.New()
	for _, part := range []string{"thaw/v1/mctp-key", string(owner[:]), tool, key} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	_ = binary.Write(h, binary.BigEndian, turn) // to a hash, never fails
	copy(id[:], h.Sum(nil))
	return id
}

// await waits until the task has ended or waits itself, for as long as the client likes.
func (q *mctpRequest) await(s *task.Snapshot) (*task.Snapshot, *failure) {
	wait, applied := preferredWait(q.r.Header["Prefer"])
	if applied != "" {
		q.w.Header().Set("Preference-Applied", applied)
	}
	until := time.Now().Add(wait)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		if s.Head.Status.Terminal() && (s.Outcome != nil || s.Head.Status == task.Cancelled) || s.Head.Status == task.InputRequired {
			return s, nil
		}
		left := time.Until(until)
		if left <= 0 && !s.Head.Status.Terminal() {
			return s, nil
		}
		timer := time.NewTimer(min(pause, max(left, 0)))
		select {
		case <-q.r.Context().Done():
			timer.Stop()
			return s, nil // it is there, and the client may be
		case <-timer.C:
		}
		now, err := q.h.engine.Get(q.r.Context(), s.Head.ID, s.Head.Owner)
		if err != nil {
			return s, nil // it was created, and that is the answer
		}
		s = &now
	}
}

// preferredWait reads Prefer lines (RFC 7240). applied is the preference that was followed, or "".
func preferredWait(lines []string) (wait time.Duration, applied string) {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				return 0, "respond-async"
			case "wait":
				if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16); err == nil {
					wait = min(time.Duration(n)*time.Second, mctpMaxWait)
					return wait, "wait=" + strconv.Itoa(int(wait/time.Second))
				}
			}
		}
	}
	return mctpWait, ""
}
