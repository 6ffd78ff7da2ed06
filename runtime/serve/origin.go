package serve

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/mcp"
)

// checkOrigin is the guard against pages that reach a server through a browser (H-02),
// and, on a loopback bind, against names that were made to resolve to it (H-05).
//
// No Origin: served. Off loopback only the configured origins are allowed; on loopback
// also a page that this server itself was asked under.
func (q *request) checkOrigin() *failure {
	if q.h.host.Loopback && !q.h.localName(q.r.Host) {
		return forbidden(reasonForbiddenHost, "Host is not local; list it in THAW_PUBLIC_URL to serve it")
	}
	origins := q.r.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	if len(origins) > 1 || !q.h.allowedOrigin(origins[0], q.r.Host) {
		return forbidden(reasonForbiddenOrigin, "Origin is not allowed")
	}
	h := q.w.Header()
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
	h.Add("Vary", "Origin")
	return nil
}

func forbidden(reason, message string) *failure {
	return &failure{status: http.StatusForbidden, code: mcp.CodeInvalidRequest, reason: reason, message: "Forbidden: " + message}
}

// answerPreflight answers a browser's question before the request, for an origin that
// checkOrigin let through. It comes without credentials, so it is answered before they are
// asked for.
func (q *request) answerPreflight() *failure {
	if q.r.Method != http.MethodOptions {
		return nil
	}
	r, h := q.r, q.w.Header()
	h.Set("Allow", q.verbs)
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Methods", q.verbs)
		// Mcp-Param-* are the tools' own, so the answer is what was asked for.
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
			h.Add("Vary", "Access-Control-Request-Headers")
		}
		h.Set("Access-Control-Max-Age", "7200")
	}
	q.w.WriteHeader(http.StatusNoContent)
	return answered
}

// localName reports whether a Host header names this machine, or a public URL of it.
func (h *Handler) localName(hostport string) bool {
	name := hostport
	if n, _, err := net.SplitHostPort(hostport); err == nil {
		name = n
	}
	if bare, ok := strings.CutPrefix(name, "["); ok && strings.HasSuffix(bare, "]") {
		name = strings.TrimSuffix(bare, "]") // an IPv6 address without a port
	}
	return isLocal(name) || slices.ContainsFunc(h.publicURLs, func(u *url.URL) bool { return strings.EqualFold(u.Host, hostport) })
}

// isLocal reports whether a host name can only be this machine's.
func isLocal(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// allowedOrigin compares scheme, host and port exactly.
func (h *Handler) allowedOrigin(origin, hostport string) bool {
	if slices.Contains(h.origins, origin) {
		return true
	}
	return h.host.Loopback && origin == "http://"+hostport
}
