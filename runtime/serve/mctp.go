package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/runtime/host"
)

// MCTP 0.1: the same tools and tasks by plain HTTP. What it looks like is in package mctp; who may
// do what is judged by the checks of request.go.

// mctpRequest is a request that is not MCP's, from first byte to last.
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
	(*mctpRequest).checkPath, // who looks for what is nowhere is not told to log in: MCP's clients look around
	func(q *mctpRequest) *failure { return q.checkCredentials() },
	(*mctpRequest).checkTool,
	(*mctpRequest).checkVerb,
}

func (h *Handler) serveMCTP(w http.ResponseWriter, r *http.Request) {
	q := &mctpRequest{request: request{h: h, cat: h.catalog.Load(), w: w, r: r}, route: mctp.RouteOf(h.belowEscaped(r.URL))}
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

// contain keeps a panic from costing the client its answer: an author's code also runs where
// schemas are encoded.
func (q *mctpRequest) contain() {
	p := recover()
	if p == nil {
		return
	}
	id := newID()
	q.h.logger.Error("panic in a request", "call", id, "tool", q.route.Tool, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
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
		q.h.logger.Warn("request refused", "reason", f.reason, "method", q.r.Method, "tool", q.route.Tool)
	}
	h := q.w.Header()
	h.Del("ETag")
	h.Set("Cache-Control", "no-store")
	f.setHeaders(h)
	writeWhole(q.w, q.r, p.Status, contentTypeProblem, p.AppendJSON(nil))
}

var contentTypeProblem = []string{mctp.ContentTypeProblem}

// send answers with JSON.
func (q *mctpRequest) send(status int, body []byte) {
	if fits, limit := host.Fits(q.r.Context(), body); !fits {
		q.problem(internal(reasonResponseTooLarge, "The answer is too large: "+strconv.Itoa(len(body))+" bytes; this host delivers at most "+
			strconv.Itoa(limit)+" bytes, escaping included"), nil)
		return
	}
	writeWhole(q.w, q.r, status, contentTypeJSON, body)
}

// exposeHeaders lets pages read what tasks say in headers.
func (q *mctpRequest) exposeHeaders() *failure {
	if h := q.w.Header(); h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, Location, Last-Modified, ETag, "+mctp.HeaderStatus+", "+mctp.HeaderInputRequired)
	}
	return nil
}

func (q *mctpRequest) checkPath() *failure {
	if q.route.Kind == mctp.Nowhere {
		return q.notFound()
	}
	if q.r.Host == "" && len(q.h.publicURLs) == 0 {
		return invalidRequest("the header Host, which addresses are made of, is empty")
	}
	return nil
}

func (q *mctpRequest) notFound() *failure {
	return &failure{status: http.StatusNotFound, reason: reasonNotFound,
		message: "Not found: GET " + q.h.basePath + "/" + mctp.PathDiscovery + " has the addresses of the tools, and " + q.h.basePath + "/mcp is the MCP endpoint"}
}

func (q *mctpRequest) checkTool() *failure {
	if q.route.Kind != mctp.Create {
		return nil
	}
	if q.tool = q.cat.tools[q.route.Tool]; q.tool == nil {
		return q.notFound()
	}
	q.target = q.tool
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
	return &failure{status: http.StatusMethodNotAllowed, reason: reasonMethodNotAllowed,
		message: "Method not allowed: this address takes " + q.verbs, allow: q.verbs}
}

// base is the address that the paths stand below, as clients know it: where THAW_PUBLIC_URL says
// that the endpoint /mcp is. A list has the one that the request came to. fixed reports whether it
// is that, and not what the request said.
func (q *mctpRequest) base() (base string, fixed bool) {
	urls := q.h.publicURLs
	if len(urls) == 0 {
		scheme := "https"
		if q.h.host.Loopback {
			scheme = "http"
		}
		return scheme + "://" + q.r.Host + q.h.basePath, false
	}
	u := urls[max(0, slices.IndexFunc(urls, func(u *url.URL) bool { return strings.EqualFold(u.Host, q.r.Host) }))]
	prefix, ends := strings.CutSuffix(strings.TrimSuffix(u.EscapedPath(), "/"), "/mcp")
	if !ends {
		prefix = ""
	}
	return u.Scheme + "://" + u.Host + prefix, true
}

// endpoint is where tasks of a tool are created.
func endpoint(base, tool string) string { return base + "/" + tool } // a tool's name needs no escaping
