package serve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mctp"
)

// allowed are the definitions of the tools that the caller may use, in their order.
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
		endpoints[i] = mctp.Endpoint{Name: it.name, URL: endpoint(base, it.name)}
	}
	q.sendCacheable(mctp.AppendDiscovery(nil, endpoints), fixed)
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
	q.sendCacheable(body, fixed)
	return nil
}

// sendCacheable answers with what stays the same until a deploy, or that it has (RFC 9110, 13).
// What is made for one caller, or of what a request said, no cache keeps for others.
func (q *mctpRequest) sendCacheable(body []byte, fixed bool) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := q.w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, max-age=300")
	if fixed && len(q.h.auth) == 0 {
		h.Set("Cache-Control", "public, max-age=300")
	}
	if len(q.h.auth) > 0 {
		h.Add("Vary", "Authorization")
	}
	// A cache must not give a page the answer that came without an Origin, and so lacks the page's.
	if (len(q.h.origins) > 0 || q.h.host.Loopback) && !slices.Contains(h.Values("Vary"), "Origin") {
		h.Add("Vary", "Origin")
	}
	if matches(q.r.Header["If-None-Match"], tag) {
		q.w.WriteHeader(http.StatusNotModified)
		return
	}
	q.send(http.StatusOK, body)
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
