package serve

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// FuzzIdentity sends any credential to any path of any host: nobody gets in but by the exact
// token, a refusal has one challenge of one line, and no name is repeated that is not the
// server's own.
func FuzzIdentity(f *testing.F) {
	o := identified()
	o.BasePath, o.Logger = "/prod", slog.New(slog.DiscardHandler)
	h, err := New(testServer(new(int)), &o)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("POST", "mcp.example.com", "/mcp", "Bearer alice-token")
	f.Add("GET", "zzz.example", "/prod/.well-known/oauth-protected-resource/mcp", "Bearer alice-tokeN")
	f.Add("HEAD", "zzz.example", "/.well-known/oauth-protected-resource", "Basic x")
	f.Add("GET", "zzz.example\"\r\n", "/mcp", "Bearer \"\r\nX-Forged: zzz")
	f.Fuzz(func(t *testing.T, verb, host, path, authorization string) {
		r := &http.Request{Method: verb, Host: "zzz" + host, URL: &url.URL{Path: path}, Header: http.Header{}, Body: http.NoBody}
		if authorization != "" {
			r.Header["Authorization"] = []string{authorization}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		known := strings.TrimPrefix(authorization, "Bearer ")
		_, knows := people().callers[known]
		answer := w.Body.String()
		for _, line := range w.Header()["Www-Authenticate"] {
			answer += line
		}
		switch challenges := w.Header()["Www-Authenticate"]; w.Code {
		case http.StatusUnauthorized:
			if len(challenges) != 1 || !strings.Contains(challenges[0], metadataParam) || strings.ContainsAny(challenges[0], "\r\n") {
				t.Fatalf("challenges %q", challenges)
			}
		case http.StatusBadRequest, http.StatusUnsupportedMediaType:
			if !knows || "Bearer "+known != authorization {
				t.Fatalf("%q got past the credentials: %d", authorization, w.Code)
			}
		}
		if strings.Contains(answer, "zzz") {
			t.Fatalf("the answer repeats the host or the credential: %s", answer)
		}
	})
}
