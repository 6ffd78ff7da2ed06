package serve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"

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
	document, err := q.cat.documents.of(items, func() (mctp.Document, error) { return q.document(items) })
	if err != nil {
		q.h.logger.Error("encode the OpenAPI document", "error", err)
		return internal(reasonInternal, "Internal error: the log has why")
	}
	base, fixed := q.base()
	q.sendCacheable(document.At(nil, base), fixed)
	return nil
}

func (q *mctpRequest) document(items []item) (mctp.Document, error) {
	api := mctp.API{Title: cmp.Or(q.cat.heading, q.cat.name), Version: q.cat.version, Bearer: len(q.h.auth) > 0}
	for _, it := range items {
		tool := mctp.Tool{Name: it.name, Scopes: q.cat.tools[it.name].Scopes, Input: strictjson.Member(it.json, "inputSchema"), Output: strictjson.Member(it.json, "outputSchema")}
		tool.Title, _ = strictjson.String(strictjson.Member(it.json, "title"))
		tool.Description, _ = strictjson.String(strictjson.Member(it.json, "description"))
		api.Tools = append(api.Tools, tool)
	}
	return api.Document()
}

// documents are those that were made, by their tools: to make one costs a hundred times as much as
// to send it, and who asks for it may be anybody.
type documents struct {
	mu   sync.Mutex
	made map[string]mctp.Document
}

// maxDocuments bounds the memory of documents; there are as many as callers differ in their scopes.
const maxDocuments = 32

func (d *documents) of(items []item, build func() (mctp.Document, error)) (mctp.Document, error) {
	var names strings.Builder
	for _, it := range items {
		names.WriteString(it.name + "\n")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if made, ok := d.made[names.String()]; ok {
		return made, nil
	}
	made, err := build()
	if err != nil {
		return nil, err
	}
	if d.made == nil || len(d.made) >= maxDocuments {
		d.made = map[string]mctp.Document{}
	}
	d.made[names.String()] = made
	return made, nil
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
