package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// MCTP 0.1: the same tools and tasks by plain HTTP, from first byte to last. What it looks like is
// in package mctp; who may do what is judged by the checks of request.go.

// mctpRequest is a request that is not MCP's.
type mctpRequest struct {
	request
	route mctp.Route
	tool  *tool // of Create
}

// mctpChecks are what such a request passes before anything of it runs, in the order of those
// of MCP. What a new task needs besides comes in create.
var mctpChecks = [...]func(*mctpRequest) *failure{
	func(q *mctpRequest) *failure { return q.checkOrigin() },
	(*mctpRequest).exposeHeaders,
	func(q *mctpRequest) *failure { return q.answerPreflight() },
	func(q *mctpRequest) *failure { return q.checkHeaderSize() },
	func(q *mctpRequest) *failure { return q.checkCredentials() },
	(*mctpRequest).checkRoute,
	(*mctpRequest).checkVerb,
}

func (h *Handler) serveMCTP(w http.ResponseWriter, r *http.Request) {
	q := &mctpRequest{request: request{h: h, cat: h.catalog.Load(), w: w, r: r}, route: mctp.RouteOf(h.below(r.URL.EscapedPath()))}
	q.verbs = q.route.Kind.Allow()
	q.out.init(h, w, r)
	defer q.contain()
	for _, check := range mctpChecks {
		if f := check(q); f != nil {
			q.refuse(f)
			return
		}
	}
	var f *failure
	switch q.route.Kind {
	case mctp.Discovery:
		f = q.discover()
	case mctp.OpenAPI:
		f = q.describe()
	case mctp.Create:
		f = q.create()
	case mctp.State:
		f = q.state()
	case mctp.Outcome:
		f = q.outcome()
	}
	if f != nil {
		q.refuse(f)
	}
}

// contain keeps a panic in an author's code from costing the client its answer.
func (q *mctpRequest) contain() {
	p := recover()
	if p == nil {
		return
	}
	id := newID()
	q.h.logger.Error("panic in a request", "call", id, "path", q.route.Tool, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	q.refuse(internal(reasonPanic, fmt.Sprintf("Internal error (reference %s)", id[:8])))
}

// refuse answers with f as a problem.
func (q *mctpRequest) refuse(f *failure) {
	if f != answered {
		q.problem(f, nil)
	}
}

func (q *mctpRequest) problem(f *failure, violations []mctp.Violation) {
	p := mctp.Problem{Status: f.status, Reason: f.reason, Detail: f.message, Errors: violations}
	if p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	if p.Status == http.StatusInternalServerError {
		q.h.logger.Warn("request refused", "reason", f.reason, "method", q.r.Method)
	}
	h := q.w.Header()
	f.setHeaders(h)
	h.Set("Cache-Control", "no-store")
	q.write(p.Status, mctp.ContentTypeProblem, p.AppendJSON(nil))
}

// write writes the one answer.
func (q *mctpRequest) write(status int, contentType string, body []byte) {
	if fits, limit := host.Fits(q.r.Context(), body); !fits {
		status, contentType = http.StatusInternalServerError, mctp.ContentTypeProblem
		p := mctp.Problem{Status: status, Reason: reasonResponseTooLarge, Detail: "The answer is too large: " + strconv.Itoa(len(body)) +
			" bytes; this host delivers at most " + strconv.Itoa(limit) + " bytes, escaping included"}
		body = p.AppendJSON(nil)
	}
	h := q.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.w.WriteHeader(status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(body)
	}
}

// exposeHeaders lets pages read what tasks say in headers.
func (q *mctpRequest) exposeHeaders() *failure {
	if h := q.w.Header(); h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, Location, Last-Modified, ETag, "+mctp.HeaderStatus+", "+mctp.HeaderInputRequired)
	}
	return nil
}

func (q *mctpRequest) checkRoute() *failure {
	if q.route.Kind == mctp.Create {
		q.tool = q.cat.tools[q.route.Tool]
	}
	if q.route.Kind == mctp.Nowhere || q.route.Kind == mctp.Create && q.tool == nil {
		return &failure{status: http.StatusNotFound, code: mcp.CodeInvalidRequest, reason: reasonNotFound,
			message: "Not found: GET " + q.h.basePath + "/" + mctp.PathDiscovery + " has the addresses of the tasks"}
	}
	return nil
}

func (q *mctpRequest) checkVerb() *failure {
	verb := q.r.Method
	if verb == http.MethodHead {
		verb = http.MethodGet
	}
	if slices.Contains(strings.Split(q.verbs, ", "), verb) {
		return nil
	}
	return &failure{status: http.StatusMethodNotAllowed, code: mcp.CodeInvalidRequest, reason: reasonMethodNotAllowed,
		message: "Method not allowed: this address takes " + q.verbs, allow: q.verbs}
}

// base is the address that the paths stand below, as clients know it: where THAW_PUBLIC_URL says
// that the endpoint /mcp is. A list has the one that the request came to. fixed reports whether it
// is that, and not what the request said.
func (q *mctpRequest) base() (base string, fixed bool) {
	urls := q.h.publicURLs
	for i, u := range urls {
		if strings.EqualFold(u.Host, q.r.Host) {
			urls = urls[i:]
			break
		}
	}
	if len(urls) == 0 {
		scheme := "https"
		if q.h.host.Loopback {
			scheme = "http"
		}
		return scheme + "://" + q.r.Host + q.h.basePath, false
	}
	prefix, ends := strings.CutSuffix(strings.TrimSuffix(urls[0].EscapedPath(), "/"), "/mcp")
	if !ends {
		prefix = ""
	}
	return urls[0].Scheme + "://" + urls[0].Host + prefix, true
}

// allowed yields the definitions of the tools that the caller may use, in their order.
func (q *mctpRequest) allowed() ([]item, *failure) {
	items, err := q.cat.lists[listTools].items()
	if err != nil {
		q.h.logger.Error("the tools cannot be listed", "error", err)
		return nil, internal(reasonInternal, "Internal error: the log has why")
	}
	var allowed []item
	for _, it := range items {
		if q.h.hasScopes(q.principal, q.cat.tools[it.name].Scopes) {
			allowed = append(allowed, it)
		}
	}
	return allowed, nil
}

func (q *mctpRequest) discover() *failure {
	items, f := q.allowed()
	if f != nil {
		return f
	}
	base, fixed := q.base()
	endpoints := make([]mctp.Endpoint, len(items))
	for i, it := range items {
		endpoints[i] = mctp.Endpoint{Name: it.name, URL: base + "/" + url.PathEscape(it.name)}
	}
	q.cacheable(mctp.AppendDiscovery(nil, endpoints), fixed)
	return nil
}

// describe answers with the OpenAPI document.
func (q *mctpRequest) describe() *failure {
	items, f := q.allowed()
	if f != nil {
		return f
	}
	base, fixed := q.base()
	api := mctp.API{Title: cmp.Or(q.cat.heading, q.cat.name), Version: q.cat.version, Server: base, Bearer: len(q.h.auth) > 0}
	for _, it := range items {
		tool := mctp.Tool{Name: it.name, Scopes: q.cat.tools[it.name].Scopes, Input: strictjson.Member(it.json, "inputSchema"), Output: strictjson.Member(it.json, "outputSchema")}
		tool.Title, _ = strictjson.String(strictjson.Member(it.json, "title"))
		tool.Description, _ = strictjson.String(strictjson.Member(it.json, "description"))
		api.Tools = append(api.Tools, tool)
	}
	body, err := api.AppendJSON(nil)
	if err != nil {
		q.h.logger.Error("encode the OpenAPI document", "error", err)
		return internal(reasonInternal, "Internal error: the log has why")
	}
	q.cacheable(body, fixed)
	return nil
}

// cacheable answers with what stays the same until a deploy, or that it has (RFC 9110, 13). What
// is made for one caller, or of what a request said, no cache keeps for others.
func (q *mctpRequest) cacheable(body []byte, shared bool) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := q.w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, max-age=300")
	if shared && len(q.h.auth) == 0 {
		h.Set("Cache-Control", "public, max-age=300")
	}
	if len(q.h.auth) > 0 {
		h.Add("Vary", "Authorization")
	}
	if matches(q.r.Header["If-None-Match"], tag) {
		q.w.WriteHeader(http.StatusNotModified)
		return
	}
	q.write(http.StatusOK, "application/json", body)
}

// matches reports whether one of the tags in If-None-Match lines is tag, weak ones too.
func matches(lines []string, tag string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item == "*" || strings.TrimPrefix(item, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// find is the caller's task that the path names. One of another tool is one that never was.
func (q *mctpRequest) find() (*task.Snapshot, *failure) {
	s, err := q.h.engine.Get(q.r.Context(), q.route.ID, taskOwner(q.principal))
	switch {
	case err == nil && s.Head.Tool == q.route.Tool:
		return &s, nil
	case err == nil, errors.Is(err, task.ErrNotFound):
		return nil, &failure{status: http.StatusNotFound, code: mcp.CodeInvalidParams, reason: reasonUnknownTask, message: "Unknown task: it never was, or has expired"}
	}
	return nil, q.unreached(err)
}

func (q *mctpRequest) unreached(err error) *failure {
	q.h.logger.LogAttrs(context.Background(), slog.LevelError, "the store of tasks failed", slog.String("method", q.r.Method), slog.String("error", err.Error()))
	f := internal(reasonStoreUnavailable, "The task cannot be reached now: try again")
	f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
	return f
}

// stand is how the task stands, and puts it into the headers.
func (q *mctpRequest) stand(s *task.Snapshot) mctp.Task {
	t := mctp.Task{ID: s.Head.ID, Status: mctpStatus(s), Created: s.Head.Created}
	h := q.w.Header()
	h.Set(mctp.HeaderStatus, string(t.Status))
	h.Set("Last-Modified", s.Head.Updated.UTC().Format(http.TimeFormat))
	h.Set("Cache-Control", "no-store")
	if s.Head.Status == task.InputRequired {
		h.Set(mctp.HeaderInputRequired, "true")
	}
	if !t.Status.Ended() {
		h.Set("Retry-After", strconv.Itoa(max(1, int(s.Head.Poll/time.Second))))
	}
	return t
}

// mctpStatus is what MCTP calls the status of a task.
func mctpStatus(s *task.Snapshot) mctp.Status {
	switch s.Head.Status {
	case task.Completed:
		if mctp.IsError(s.Outcome) {
			return mctp.Failed
		}
		return mctp.Completed
	case task.Failed, task.Cancelled:
		return mctp.Failed
	case task.Working:
		if s.Head.Claims == 0 {
			return mctp.Pending
		}
	}
	return mctp.InProgress
}

func (q *mctpRequest) state() *failure {
	s, f := q.find()
	if f != nil {
		return f
	}
	q.write(http.StatusOK, "application/json", q.stand(s).AppendJSON(nil))
	return nil
}

// outcome answers with the result of a task that has ended.
func (q *mctpRequest) outcome() *failure {
	s, f := q.find()
	if f != nil {
		return f
	}
	t := q.stand(s)
	var result []byte
	switch {
	case !t.Status.Ended():
		return &failure{status: http.StatusConflict, code: mcp.CodeInvalidRequest, reason: reasonNotFinished, retryAfter: s.Head.Poll,
			message: "Not finished: the task is " + string(t.Status)}
	case s.Head.Status == task.Cancelled:
		result = mctp.Error("cancelled", "The task was cancelled")
	case s.Head.Status == task.Failed:
		result = mctp.ProtocolError(s.Outcome)
	case t.Status == mctp.Failed:
		result = mctp.ToolError(s.Outcome)
	default:
		result = mctp.Result(s.Outcome)
	}
	q.write(http.StatusOK, "application/json", t.AppendResult(nil, result))
	return nil
}
