package serve

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzRequest sends any body with any mirrored headers: no panic, one JSON-RPC message or
// nothing back, the id that was sent or none, and nothing runs that the headers did not
// name.
func FuzzRequest(f *testing.F) {
	ran := 0
	h, err := New(testServer(&ran), &Options{Host: resident})
	if err != nil {
		f.Fatal(err)
	}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":` + goodMeta + params + `}}`
	}
	f.Add(call(`,"name":"echo","arguments":{"text":"x"}`), "tools/call", "echo", "")
	f.Add(call(`,"name":"route","arguments":{"region":"eu","priority":42.0}`), "tools/call", "route", "eu")
	f.Add(call(`,"name":"echo","Name":"route","arguments":{"text":"x"}`), "tools/call", "=?base64?ZWNobw==?=", "")
	f.Add(`{"jsonrpc":"2.0","id":"\ud83d","method":"tools/list"}`, "tools/list", "", "")
	f.Add(`{"jsonrpc":"2.0","id":9007199254740993,"method":"resources/read","params":{"_meta":`+goodMeta+`,"uri":"docs://item/%2e%2e"}}`, "resources/read", "docs://item/%2e%2e", "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"_meta":`+goodMeta+`,"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"}}}`, "completion/complete", "", "")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"_meta":`+goodMeta+`,"name":"greet","arguments":{"name":"x"}}}`, "prompts/get", "greet", "")
	f.Add(`[{}]`, "x", "y", "z")
	f.Fuzz(func(t *testing.T, body, method, name, region string) {
		if method == "subscriptions/listen" {
			return // it stays open by design
		}
		before := ran
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Host = "localhost"
		r.Header["Mcp-Protocol-Version"] = []string{"2026-07-28"}
		r.Header["Mcp-Method"] = []string{method}
		r.Header["Mcp-Name"] = []string{name}
		if region != "" {
			r.Header["Mcp-Param-Region"] = []string{region}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if ran > before && (method != "tools/call" || name == "") {
			t.Fatalf("a tool ran for headers %q, %q", method, name)
		}
		if w.Code == 202 {
			if w.Body.Len() > 0 {
				t.Fatalf("a notification got %s", w.Body)
			}
			return
		}
		var answer, sent map[string]json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code >= 500 {
			t.Fatalf("status %d, %v: %q", w.Code, err, w.Body)
		}
		if id, ok := answer["id"]; ok {
			if err := json.Unmarshal([]byte(body), &sent); err != nil {
				t.Fatalf("id %s of an unreadable body", id)
			}
			var a, b any
			_ = json.Unmarshal(id, &a)
			_ = json.Unmarshal(sent["id"], &b)
			if a != b || a == nil {
				t.Fatalf("id %s, sent %s", id, sent["id"])
			}
		}
	})
}
