package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/wire"
)

// query is one HTTP request, made of a JSON-RPC request and then bent.
type query struct {
	verb   string
	header http.Header
	host   string // "": the server's own
	body   string
	method string // of the JSON-RPC request, for the schema of its result
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"differential","version":"1.0.0"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

// ask is a request of a method with good headers. params are the members of params
// beside _meta, as JSON text that ends in a comma, or nothing.
func ask(method, params string) *query {
	q := &query{verb: http.MethodPost, method: method, header: http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {method},
	}}
	q.body = `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + meta + `}}`
	var named struct{ Params struct{ Name, URI string } }
	if json.Unmarshal([]byte(q.body), &named) == nil {
		if name := named.Params.Name + named.Params.URI; name != "" {
			q.header.Set("Mcp-Name", name)
		}
	}
	return q
}

// call is a call of a tool.
func call(tool, arguments string) *query {
	return ask("tools/call", `"name":"`+tool+`","arguments":`+arguments+`,`)
}

// raw is a call of add whose body is replaced.
func raw(body string) *query {
	q := call("add", `{"a":1,"b":2}`)
	q.body = body
	return q
}

// with sets a header, replacing what is there.
func (q *query) with(name string, values ...string) *query {
	q.header[http.CanonicalHeaderKey(name)] = values
	return q
}

func (q *query) without(name string) *query {
	q.header.Del(name)
	return q
}

// replace replaces one text in the body by another; the first must be there.
func (q *query) replace(t *testing.T, old, new string) *query {
	t.Helper()
	if !strings.Contains(q.body, old) {
		t.Fatalf("the body has no %s", old)
	}
	q.body = strings.Replace(q.body, old, new, 1)
	return q
}

// answer is what came back.
type answer struct {
	status   int
	media    string
	messages [][]byte
	text     string // the body, for messages of the test
	open     bool   // a stream of a session, as older revisions have it
}

// patience bounds one request, so that a stream without an end fails its row.
const patience = 30 * time.Second

func send(t *testing.T, url string, q *query) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.verb, url, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = q.header.Clone()
	if q.host != "" {
		r.Host = q.host
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	media := res.Header.Get("Content-Type")
	if q.verb == http.MethodGet && res.StatusCode == http.StatusOK {
		return answer{status: res.StatusCode, open: true} // the body of such a stream has no end
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: res.StatusCode, media: media, messages: wire.Messages(media, b), text: string(b)}
}

// outcome is an answer in one line: the status; the codes or result members of its
// messages; and how the request's id came back.
//
//	200 result(content resultType)            a result, its members without _meta
//	200 isError(content resultType)           a tool error
//	200 progress, result(content resultType)  a notification before the result
//	400 -32020                                an error with the request's id
//	400 -32700 no id, 400 -32700 id null      an error without an id, or with null
//	202 empty, 405 text                       no JSON-RPC at all
//	200 open stream                           what older revisions answer to GET
func (a answer) outcome(sentID string) string {
	if a.open {
		return fmt.Sprintf("%d open stream", a.status)
	}
	if len(a.messages) == 0 {
		if strings.TrimSpace(a.text) == "" {
			return fmt.Sprintf("%d empty", a.status)
		}
		return fmt.Sprintf("%d text", a.status)
	}
	var parts []string
	for _, m := range a.messages {
		parts = append(parts, describe(m, sentID))
	}
	return fmt.Sprintf("%d %s", a.status, strings.Join(parts, ", "))
}

func describe(message []byte, sentID string) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Result map[string]json.RawMessage
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return "no message"
	}
	id := ""
	switch {
	case m.Method != "":
	case m.ID == nil:
		id = " no id"
	case string(m.ID) == "null":
		id = " id null"
	case !bytes.Equal(m.ID, []byte(sentID)):
		id = " id " + string(m.ID)
	}
	switch {
	case m.Method != "":
		return strings.TrimPrefix(m.Method, "notifications/") + id
	case m.Error != nil:
		return fmt.Sprintf("%d%s", m.Error.Code, id)
	}
	kind := "result"
	if string(m.Result["isError"]) == "true" {
		kind = "isError"
	}
	var members []string
	for name := range m.Result {
		if name != "_meta" && name != "isError" {
			members = append(members, name)
		}
	}
	slices.Sort(members)
	return kind + "(" + strings.Join(members, " ") + ")" + id
}
