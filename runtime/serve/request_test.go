package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
)

// The order of spec 0.4: of two faults in one request, the earlier check answers. Each
// fault changes a good call of route; the pairs are all there are.
func TestChecksInOrder(t *testing.T) {
	type fault struct {
		name   string
		spoil  func(p *post)
		status int
		code   int
		reason string
	}
	header := func(k, v string) func(*post) { return func(p *post) { p.headers[k] = v } }
	faults := []fault{
		{"1 host", func(p *post) { p.host = "evil.example" }, 403, -32600, "forbidden_host"},
		{"1 origin", header("Origin", "http://evil.example"), 403, -32600, "forbidden_origin"},
		{"2 headers", header("X-Big", strings.Repeat("x", 40<<10)), 431, -32600, "headers_too_large"},
		{"3 credentials", header("Authorization", "Bearer mallory"), 401, -32600, "unauthorized"},
		{"4 verb", func(p *post) { p.verb = http.MethodPut }, 405, -32600, "method_not_allowed"},
		{"content type", header("Content-Type", "text/plain"), 415, -32600, "unsupported_media_type"},
		{"4 body size", func(p *post) { p.params["pad"] = strings.Repeat("x", 5<<20) }, 413, -32600, "body_too_large"},
		{"5 not JSON", func(p *post) { p.suffix = "}" }, 400, -32700, "parse_error"},
		{"5 bad id", func(p *post) { p.id = "null" }, 400, -32600, "invalid_request"},
		{"7 no version header", header("MCP-Protocol-Version", "-"), 400, -32020, "header_mismatch"},
		{"8 no _meta", func(p *post) { p.meta = map[string]any{"absent": true} }, 400, -32602, "invalid_meta"},
		{"9 version differs", header("MCP-Protocol-Version", "2025-11-25"), 400, -32020, "header_mismatch"},
		{"10 version not served", func(p *post) {
			p.headers["MCP-Protocol-Version"] = "1900-01-01"
			p.meta = map[string]any{"io.modelcontextprotocol/protocolVersion": "1900-01-01", "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
		}, 400, -32022, "unsupported_version"},
		{"11 no method header", header("Mcp-Method", "-"), 400, -32020, "header_mismatch"},
		{"12 unknown method", func(p *post) { p.method = "no/such" }, 404, -32601, "unknown_method"},
		{"13 no name header", header("Mcp-Name", "-"), 400, -32020, "header_mismatch"},
		{"14 arguments no object", func(p *post) { p.params["arguments"] = []int{1} }, 200, -32602, "invalid_params"},
		{"16 unknown tool", func(p *post) { p.params["name"] = "nope" }, 200, -32602, "unknown_tool"},
		{"17 no mirrored header", header("Mcp-Param-Region", "-"), 400, -32020, "header_mismatch"},
		{"18 no scope", header("Authorization", "Bearer guest-token"), 403, -32600, "insufficient_scope"},
		{"rate, which the good request has used up", func(*post) {}, 429, -32603, "rate_limited"},
	}
	ran := 0
	s := testServer(&ran)
	s.Tools = []*thaw.Tool{routeTool(&ran, &thaw.ToolOptions{Scopes: []string{"files:read"}, Rate: &thaw.Rate{PerMinute: 1}})}
	h, _ := newHandler(t, s, Options{Host: resident, Auth: []auth.Scheme{people()}})
	good := func() post {
		return post{
			method:  "tools/call",
			params:  map[string]any{"name": "route", "arguments": map[string]any{"region": "eu", "priority": "x"}},
			headers: map[string]string{"Authorization": "Bearer alice-token", "Mcp-Param-Region": "eu", "Mcp-Param-Priority": "x"},
		}
	}
	// 20: the arguments break the schema, which only a request without any other fault shows.
	if got := do(t, h, good().request(t)); got.status != 200 || got.result(t)["isError"] != true {
		t.Fatalf("the good request: %d %s", got.status, got.raw)
	}
	for i, first := range faults {
		for _, second := range faults[i:] {
			t.Run(first.name+" before "+second.name, func(t *testing.T) {
				p := good()
				second.spoil(&p)
				first.spoil(&p)
				got := do(t, h, p.request(t))
				// A fault may hide the later one by changing the same thing; it may never let it win.
				if got.status != first.status || got.code() != first.code || got.reason() != first.reason {
					t.Errorf("got %d, %d, %s; want %d, %d, %s\n%.300s", got.status, got.code(), got.reason(), first.status, first.code, first.reason, got.raw)
				}
			})
		}
	}
	if ran != 0 {
		t.Errorf("a handler ran %d times", ran)
	}
}

// V-18: whoever speaks an older revision is told so, with what is spoken here, whichever check it fails.
func TestOlderRevisions(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	for name, c := range map[string]struct {
		header string
		code   int
	}{"without the header": {"", -32020}, "with a header of its own": {"2025-06-18", -32602}, "with ours": {"2026-07-28", -32602}} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if c.header != "" {
			r.Header.Set("MCP-Protocol-Version", c.header)
		}
		old := c.header != "2026-07-28"
		got := do(t, h, r)
		if got.status != 400 || got.code() != c.code || strings.Contains(got.raw, `"supported":["2026-07-28"]`) != old || strings.Contains(got.raw, "MCP 2026-07-28 alone") != old {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
}

// B-03, B-04, B-05: an id comes back as it was sent, on every path, or not at all.
func TestIDs(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	for _, id := range []string{`1`, `0`, `-5`, `9007199254740993`, `9223372036854775807`, `123456789012345678901234567890`, `"a"`, `""`, `"1"`, `"\u00e9\n\ud83d\ude00"`} {
		for name, p := range map[string]post{
			"result":  {method: "tools/list", id: id},
			"error":   {method: "no/such", id: id},
			"header":  {method: "tools/list", id: id, headers: map[string]string{"Mcp-Method": "x"}},
			"version": {method: "tools/list", id: id, headers: map[string]string{"MCP-Protocol-Version": "-"}},
		} {
			if got := do(t, h, p.request(t)); !strings.Contains(got.raw, `"id":`+id+`,`) {
				t.Errorf("%s: id %s did not come back: %s", name, id, got.raw)
			}
		}
	}
	for _, id := range []string{`null`, `1.5`, `1e3`, `1.0`, `true`, `{}`, `[1]`} {
		got := do(t, h, post{method: "tools/list", id: id}.request(t))
		if got.status != 400 || got.code() != -32600 || strings.Contains(got.raw, `"id"`) {
			t.Errorf("id %s: %d %s", id, got.status, got.raw)
		}
	}
}

func TestBodies(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	call := func(rest string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call",` + rest + `}`
	}
	params := func(rest string) string { return call(`"params":{"_meta":` + goodMeta + rest + `}`) }
	for _, c := range []struct {
		name, body   string
		status, code int
		withID       bool
	}{
		{"empty", " ", 400, -32700, false},
		{"null", "null", 400, -32600, false},
		{"number", "7", 400, -32600, false},
		{"batch", "[" + params(`,"name":"echo","arguments":{"text":"x"}`) + "]", 400, -32600, false},
		{"empty batch", "[]", 400, -32600, false},
		{"trailing bytes", params(`,"name":"echo","arguments":{"text":"x"}`) + "{}", 400, -32700, false},
		{"duplicate member", params(`,"name":"echo","name":"route","arguments":{"text":"x"}`), 400, -32700, false},
		{"bad UTF-8", params(`,"name":"echo","arguments":{"text":"` + "\xff" + `"}`), 400, -32700, false},
		{"too deep", params(`,"name":"echo","arguments":{"text":"x","y":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), 400, -32700, false},
		{"no jsonrpc", `{"id":1,"method":"tools/list","params":{"_meta":` + goodMeta + `}}`, 400, -32600, true},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, 400, -32600, true},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, 400, -32600, true},
		{"an error response", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, 400, -32600, true},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":7}`, 400, -32600, true},
		{"wrong case", `{"jsonrpc":"2.0","ID":1,"Method":"tools/list","params":{"_meta":` + goodMeta + `}}`, 400, -32600, false},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 400, -32602, true},
		{"params an array", call(`"params":["echo"]`), 400, -32602, true},
		{"_meta null", call(`"params":{"_meta":null}`), 400, -32602, true},
		{"request without id", `{"jsonrpc":"2.0","method":"tools/call","params":{"_meta":` + goodMeta + `,"name":"echo","arguments":{"text":"x"}}}`, 400, -32600, false},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, 202, 0, false},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/what"}`, 202, 0, false},
		{"a notification with wrong params", `{"jsonrpc":"2.0","method":"notifications/what","params":[]}`, 400, -32600, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := do(t, h, post{method: "tools/call", params: map[string]any{"name": "echo"}, body: c.body}.request(t))
			if got.status != c.status || got.code() != c.code {
				t.Errorf("got %d, %d: %s; want %d, %d", got.status, got.code(), got.raw, c.status, c.code)
			}
			if c.code != 0 && strings.Contains(got.raw, `"id":1`) != c.withID {
				t.Errorf("id: %s", got.raw)
			}
			if c.status == 202 && got.raw != "" {
				t.Errorf("a notification got a body: %s", got.raw)
			}
		})
	}
	if ran != 0 {
		t.Errorf("a handler ran %d times", ran)
	}
}

// H-07: lenient about what the client reads.
func TestAccept(t *testing.T) {
	for _, c := range []struct {
		accept       string
		json, stream bool
	}{
		{"application/json, text/event-stream", true, true},
		{"text/event-stream, application/json", true, true},
		{"*/*", true, true},
		{"application/*", true, false},
		{"application/json", true, false},
		{"text/event-stream", false, true},
		{"application/json;charset=utf-8;q=0.9, text/event-stream;q=0.5", true, true},
		{"APPLICATION/JSON, Text/Event-Stream", true, true},
		{"application/json, text/event-stream;q=0", true, false},
		{"*/*, text/event-stream;q=0", true, false},
		{"text/html", false, false},
		{";;;", true, true},
	} {
		if j, s := accepts([]string{c.accept}); j != c.json || s != c.stream {
			t.Errorf("accepts(%q) = %v, %v; want %v, %v", c.accept, j, s, c.json, c.stream)
		}
	}
	if j, s := accepts([]string{"application/json", "text/event-stream"}); !j || !s {
		t.Error("two lines are one list")
	}
	if j, s := accepts(nil); !j || !s {
		t.Error("absent means everything")
	}
}

func TestVerbsAndPaths(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: offLoopback, BasePath: "/agents/", AllowedOrigins: []string{"https://app.example.com"}})
	for _, c := range []struct {
		verb, path string
		status     int
		allow      string
	}{
		{"GET", "/mcp", 405, "POST, OPTIONS"},
		{"DELETE", "/mcp", 405, "POST, OPTIONS"},
		{"HEAD", "/mcp", 405, "POST, OPTIONS"},
		{"OPTIONS", "/mcp", 204, "POST, OPTIONS"},
		{"POST", "/mcp/", 200, ""},
		{"POST", "/agents/mcp", 200, ""},
		{"POST", "/agentsmcp", 404, ""},
		{"POST", "/", 404, ""},
		{"POST", "/mcp/x", 404, ""},
		{"GET", "/health", 200, ""},
		{"HEAD", "/healthz", 200, ""},
		{"GET", "/agents/healthz", 200, ""},
		{"POST", "/health", 405, "GET, HEAD"},
	} {
		t.Run(c.verb+" "+c.path, func(t *testing.T) {
			got := do(t, h, post{method: "tools/list", verb: c.verb, path: c.path}.request(t))
			if got.status != c.status || got.header.Get("Allow") != c.allow {
				t.Errorf("got %d, Allow %q; want %d, %q", got.status, got.header.Get("Allow"), c.status, c.allow)
			}
			if c.verb == "HEAD" && got.raw != "" {
				t.Errorf("HEAD got a body: %s", got.raw)
			}
		})
	}
}

// H-02, H-05.
func TestOrigins(t *testing.T) {
	ran := 0
	for _, c := range []struct {
		name, host, origin string
		facts              string
		status             int
	}{
		{"off loopback, no origin, any host", "svc.a.run.app", "", "off", 200},
		{"off loopback, allowed", "svc.a.run.app", "https://app.example.com", "off", 200},
		{"off loopback, foreign", "svc.a.run.app", "https://evil.example", "off", 403},
		{"off loopback, own", "svc.a.run.app", "https://svc.a.run.app", "off", 403},
		{"off loopback, null", "svc.a.run.app", "null", "off", 403},
		{"off loopback, look-alike", "svc.a.run.app", "https://app.example.com.evil.example", "off", 403},
		{"off loopback, other port", "svc.a.run.app", "https://app.example.com:8443", "off", 403},
		{"loopback, no origin", "localhost:8080", "", "on", 200},
		{"loopback, own origin", "localhost:8080", "http://localhost:8080", "on", 200},
		{"loopback, by address", "127.0.0.1:9", "http://127.0.0.1:9", "on", 200},
		{"loopback, IPv6", "[::1]:9", "http://[::1]:9", "on", 200},
		{"loopback, other port", "localhost:8080", "http://localhost:3000", "on", 403},
		{"loopback, rebound name", "evil.example:8080", "http://evil.example:8080", "on", 403},
		{"loopback, rebound name without origin", "evil.example:8080", "", "on", 403},
		{"loopback, a tunnel's public name", "tunnel.example.com", "", "on", 200},
		{"loopback, localhost as a prefix", "localhost.evil.example", "", "on", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := offLoopback
			if c.facts == "on" {
				facts = resident
			}
			h, _ := newHandler(t, testServer(&ran), Options{Host: facts, AllowedOrigins: []string{"https://app.example.com"}, PublicURLs: []string{"https://tunnel.example.com/mcp"}})
			headers := map[string]string{}
			if c.origin != "" {
				headers["Origin"] = c.origin
			}
			got := do(t, h, post{method: "tools/list", host: c.host, headers: headers}.request(t))
			if got.status != c.status {
				t.Errorf("got %d, want %d: %s", got.status, c.status, got.raw)
			}
			if allowed := got.header.Get("Access-Control-Allow-Origin"); allowed != "" && allowed != c.origin {
				t.Errorf("allowed %q", allowed)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: offLoopback, AllowedOrigins: []string{"https://app.example.com"}})
	got := do(t, h, post{method: "tools/list", verb: "OPTIONS", headers: map[string]string{
		"Origin": "https://app.example.com", "Access-Control-Request-Headers": "mcp-method,mcp-param-region"}}.request(t))
	if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
		got.header.Get("Access-Control-Allow-Headers") != "mcp-method,mcp-param-region" || got.header.Get("Access-Control-Allow-Methods") == "" {
		t.Errorf("%d %v", got.status, got.header)
	}
	if got := do(t, h, post{method: "tools/list", verb: "OPTIONS", headers: map[string]string{"Origin": "https://evil.example"}}.request(t)); got.status != 403 {
		t.Errorf("a foreign origin got %d", got.status)
	}
}

func ExampleHandler() {
	h, err := New(testServer(new(int)), nil)
	fmt.Println(h != nil, err)
	// Output: true <nil>
}
