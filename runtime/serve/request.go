package serve

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/statecodec"
)

// request is one POST to the MCP endpoint, from its first byte to its last.
type request struct {
	h   *Handler
	cat *catalog
	w   http.ResponseWriter
	r   *http.Request

	verbs string // that the path has

	body []byte
	msg  message
	op   *operation
	out  responder

	principal     *thaw.Principal // who calls; nil: not known yet
	acceptsStream bool

	target target // what lookup found; nil: the method is about nothing
	args   []byte

	before *continuation     // nil: a first round that brings nothing
	callID statecodec.CallID // of a call that was begun before it came here; zero: a new one
	kept   *kept             // what the answer is recorded with; nil: it goes to the client alone
}

// kept says more of a call whose answer is recorded, for whoever asks, than the answer does.
type kept struct {
	effects bool // a step has run
}

// target is what a request is about: *tool, *prompt, *reading, *completion.
type target interface {
	// needs are the scopes that it is declared to need.
	needs() []string
}

// checks are what a request has to pass before anything of it runs, in the order of
// spec 0.4, whose numbers they carry. The first failure is the answer. Whatever sets a
// 4xx happens here, before the first byte of a stream.
var checks = [...]func(*request) *failure{
	(*request).checkOrigin,      // 1  Origin, and Host on a loopback bind
	(*request).answerPreflight,  //    a browser asks before it sends credentials
	(*request).checkHeaderSize,  // 2  size of the headers
	(*request).checkCredentials, // 3  who calls, before the verb: clients probe with GET
	(*request).checkVerb,        // 4  POST only
	(*request).checkMedia,       //    Content-Type and Accept
	(*request).readBody,         // 4  size of the body
	(*request).parseBody,        // 5  one JSON object; 6 notifications end here
	(*request).checkVersionLine, // 7  MCP-Protocol-Version is there
	(*request).checkMeta,        // 8  required _meta fields
	(*request).checkVersion,     // 9  header equals _meta; 10 version served
	(*request).checkMethodLine,  // 11 Mcp-Method is there and equal
	(*request).checkMethod,      // 12 method known, its capability on
	(*request).checkNameLine,    // 13 Mcp-Name where the method needs one
	(*request).checkParams,      // 14 params against the schema
	(*request).checkExtension,   // 15 tasks/* for clients that declared them
	(*request).lookup,           // 16 tool, prompt, resource
	(*request).checkMirrored,    // 17 Mcp-Param-* against the tool's annotations
	(*request).checkScopes,      // 18 what the caller may do
	(*request).checkRate,        //    the tool's own limit
	(*request).checkState,       // 19 requestState
}

// answered is a failure that needs no answer: the request has one already.
var answered = &failure{}

func (h *Handler) serveMCP(w http.ResponseWriter, r *http.Request) {
	h.answer(&request{h: h, cat: h.catalog.Load(), w: w, r: r, verbs: allowedVerbs})
}

func (h *Handler) answer(q *request) {
	q.out.init(h, q.w, q.r)
	defer q.out.stop()
	defer q.contain()
	if !q.out.canStream && q.cat.buffered != nil {
		q.cat = q.cat.buffered
	}
	for _, check := range checks {
		if f := check(q); f != nil {
			if f != answered {
				q.fail(f)
			}
			return
		}
	}
	q.op.run(q)
}

// contain keeps a panic outside the handlers, which handle contains itself, from costing
// the client its answer: an author's code also runs where definitions are encoded.
func (q *request) contain() {
	p := recover()
	if p == nil {
		return
	}
	id := newID()
	q.h.logger.Error("panic in a request", "call", id, "method", q.msg.method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	q.out.fail(q.msg.id, internal(reasonPanic, fmt.Sprintf("Internal error (reference %s)", id[:8])))
}

// fail answers with f. What is the client's own fault is not logged: the client has the
// whole of it.
func (q *request) fail(f *failure) {
	if f.code == mcp.CodeInternalError && f.retryAfter == 0 { // a busy server is no news, and clients could fill the log
		q.h.logger.Warn("request refused", "reason", f.reason, "method", q.msg.method)
	}
	q.out.fail(q.msg.id, f)
}

func (q *request) checkHeaderSize() *failure {
	n := 0
	for name, lines := range q.r.Header {
		for _, line := range lines {
			n += len(name) + len(line) + len(": \r\n")
		}
	}
	if n > q.h.limits.headers {
		return &failure{status: http.StatusRequestHeaderFieldsTooLarge, code: mcp.CodeInvalidRequest, reason: reasonHeadersTooLarge,
			message: "Headers too large: " + strconv.Itoa(n) + " bytes, allowed are " + strconv.Itoa(q.h.limits.headers)}
	}
	return nil
}

const allowedVerbs = "POST, OPTIONS"

func (q *request) checkVerb() *failure {
	if q.r.Method == http.MethodPost {
		return nil
	}
	return &failure{status: http.StatusMethodNotAllowed, code: mcp.CodeInvalidRequest, reason: reasonMethodNotAllowed,
		message: "Method not allowed: this endpoint takes POST", allow: allowedVerbs}
}

// checkMedia is lenient about what the client can read and strict about what it sent (H-07).
func (q *request) checkMedia() *failure {
	if sent := q.r.Header["Content-Type"]; len(sent) > 1 || len(sent) == 1 && sent[0] != "application/json" {
		media, _, err := mime.ParseMediaType(sent[0])
		if err != nil || len(sent) > 1 || media != "application/json" {
			return &failure{status: http.StatusUnsupportedMediaType, code: mcp.CodeInvalidRequest, reason: reasonUnsupportedMediaType,
				message: "Unsupported media type: Content-Type must be application/json"}
		}
	}
	if coding := q.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &failure{status: http.StatusUnsupportedMediaType, code: mcp.CodeInvalidRequest, reason: reasonUnsupportedMediaType,
			message: "Unsupported media type: Content-Encoding must be absent"}
	}
	acceptsJSON, acceptsStream := accepts(q.r.Header["Accept"])
	q.acceptsStream, q.out.onlyEvents = acceptsStream, acceptsStream && !acceptsJSON
	return nil
}

// readBody reads the body into one buffer of its own: handlers may keep their arguments.
func (q *request) readBody() *failure {
	limit := q.h.limits.body
	tooLarge := func() *failure {
		return &failure{status: http.StatusRequestEntityTooLarge, code: mcp.CodeInvalidRequest, reason: reasonBodyTooLarge,
			message: "Body too large: allowed are " + strconv.Itoa(limit) + " bytes"}
	}
	length := q.r.ContentLength
	if length > int64(limit) {
		return tooLarge()
	}
	var err error
	// A length that is only claimed buys no large buffer.
	if 0 <= length && length <= socketBuffer {
		q.body = make([]byte, length)
		_, err = io.ReadFull(q.r.Body, q.body)
	} else {
		q.body, err = io.ReadAll(io.LimitReader(q.r.Body, int64(limit)+1))
	}
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
			q.out.clientStays() // net/http ends the context as if it had left; it may read on
		} else if q.r.Context().Err() != nil {
			q.out.abandoned()
			return answered
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return invalidRequest("the body cannot be read")
		}
		return &failure{status: http.StatusRequestTimeout, code: mcp.CodeInvalidRequest, reason: reasonIncompleteBody,
			message: "Request timeout: the body did not arrive whole"}
	}
	if len(q.body) > limit {
		return tooLarge()
	}
	return nil
}

func (q *request) parseBody() *failure {
	m, notification, f := parse(q.body, q.h.limits.depth)
	q.msg = m
	if f != nil {
		return f
	}
	if !notification {
		return nil
	}
	// No notification of a client has an effect over HTTP (H-10); one with a request's
	// method is a request that lost its id, and its sender waits for an answer.
	if !strings.HasPrefix(m.method, "notifications/") {
		return invalidRequest("a request needs an id")
	}
	if m.params.raw == nil && !m.params.absentOrNull {
		return invalidRequest("params must be an object")
	}
	q.w.WriteHeader(http.StatusAccepted)
	return answered
}

func (q *request) checkVersionLine() *failure {
	if _, f := plainHeader(q.r.Header, mcp.HeaderProtocolVersion); f != nil {
		// An older client shows its user nothing but this (V-18).
		if q.msg.method == "initialize" {
			f.message += "; the client speaks an older revision, this server MCP " + mcp.Version + " alone"
		} else {
			f.message += "; this server speaks MCP " + mcp.Version
		}
		f.data = supportedVersions
		return f
	}
	return nil
}

func (q *request) checkMeta() *failure {
	missing := func(text string) *failure {
		f := invalidParams(reasonInvalidMeta, "Invalid params: "+text)
		f.status = http.StatusBadRequest // B-25
		// No fault of the body's: older revisions have no _meta (V-18).
		if q.r.Header[mcp.HeaderProtocolVersion][0] != mcp.Version {
			f.message += "; this server speaks MCP " + mcp.Version + " alone"
			f.data = supportedVersions
		}
		return f
	}
	m := &q.msg.meta
	switch {
	case q.msg.params.raw == nil:
		return missing("params must be an object with _meta")
	case m.raw == nil:
		return missing("params._meta must be an object")
	case strictjson.Kind(m.version) != '"':
		return missing("_meta must have " + mcp.MetaProtocolVersion + ", a string")
	case strictjson.Kind(m.capabilities) != '{':
		return missing("_meta must have " + mcp.MetaClientCapabilities + ", an object")
	}
	return nil
}

var supportedVersions = []byte(`"supported":["` + mcp.Version + `"]`)

func (q *request) checkVersion() *failure {
	header, sent := q.r.Header[mcp.HeaderProtocolVersion][0], q.msg.meta.version
	if !strictjson.Is(sent, header) {
		return headerMismatch("header %s differs from _meta", mcp.HeaderProtocolVersion)
	}
	if header != mcp.Version {
		f := &failure{status: http.StatusBadRequest, code: mcp.CodeUnsupportedVersion, reason: reasonUnsupportedVersion,
			message: "Unsupported protocol version"}
		f.data = append(append([]byte(nil), supportedVersions...), `,"requested":`...)
		f.data = append(f.data, escapeSeparators(sent)...)
		return f
	}
	return nil
}

func (q *request) checkMethodLine() *failure {
	value, f := plainHeader(q.r.Header, mcp.HeaderMethod)
	if f == nil && value != q.msg.method {
		f = headerMismatch("header %s differs from the body's method", mcp.HeaderMethod)
	}
	return f
}

func (q *request) checkMethod() *failure {
	q.op = operations[q.msg.method]
	if q.op == nil || !q.op.served(q.cat) {
		f := &failure{status: http.StatusNotFound, code: mcp.CodeMethodNotFound, reason: reasonUnknownMethod,
			message: "Method not found"}
		if q.msg.method == "initialize" {
			f.message += "; this server speaks MCP " + mcp.Version + ", which has no initialize" // V-18
			f.data = supportedVersions
		}
		return f
	}
	return nil
}

func (q *request) checkNameLine() *failure {
	if q.op.mirrors == nil {
		return nil
	}
	value, member := q.op.mirrors(&q.msg.params)
	if value != nil && strictjson.Kind(value) != '"' {
		return nil // no header can repeat it, and checkParams says what is wrong with it
	}
	return checkName(q.r.Header, value, member)
}

func (q *request) checkParams() *failure {
	if f := checkMetaValues(&q.msg.meta); f != nil {
		return f
	}
	if q.op.params == nil {
		return nil
	}
	return q.op.params(q)
}

// checkMetaValues judges the optional _meta fields whose wrong value would change what
// the client gets. Trace fields are ignored when wrong (O-05).
func checkMetaValues(m *meta) *failure {
	if m.progressToken != nil && !isID(m.progressToken) {
		return invalidParams(reasonInvalidMeta, "Invalid params: _meta.progressToken must be a string or an integer")
	}
	if m.logLevel != nil {
		if level, _ := strictjson.String(m.logLevel); !knownLogLevel(level) {
			return invalidParams(reasonInvalidMeta, "Invalid params: _meta log level must be one of "+strings.Join(logLevels, ", "))
		}
	}
	return nil
}

func (q *request) lookup() *failure {
	if q.op.lookup == nil {
		return nil
	}
	return q.op.lookup(q)
}

func (q *request) checkMirrored() *failure {
	t, ok := q.target.(*tool)
	if !ok {
		return nil
	}
	return checkMirrored(q.r.Header, t.bindings, q.args)
}

func (q *request) checkRate() *failure {
	t, ok := q.target.(*tool)
	if !ok || t.rate == nil {
		return nil
	}
	if wait := t.rate.take(ownerOf(q.principal), q.h.now()); wait > 0 {
		f := internal(reasonRateLimited, "Rate limited: try again later")
		f.status, f.retryAfter = http.StatusTooManyRequests, wait
		return f
	}
	return nil
}
