package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/runtime/host"
)

// Discovery is cacheable: ETag, Cache-Control, conditional GET; filtered by the caller's scopes.
func TestMCTPDiscovery(t *testing.T) {
	tools := []*thaw.Tool{sentiment(nil), tool1(func(context.Context) (any, error) { return 1, nil }, &thaw.ToolOptions{Scopes: []string{"files:read"}})}
	both := `{"endpoints":{"text_analysis":"%[1]s/text_analysis","t":"%[1]s/t"}}`
	free := `{"endpoints":{"text_analysis":"%[1]s/text_analysis"}}`
	for name, c := range map[string]struct {
		urls        []string
		base, token string
		host        string
		facts       *host.Facts
		want, at    string
		cache, vary string
	}{
		"a public URL":                 {urls: []string{"https://api.example.com/mcp"}, want: free, at: "https://api.example.com", cache: "public", vary: "Origin"},
		"behind a prefix":              {urls: []string{"https://example.com/agents/mcp/"}, want: free, at: "https://example.com/agents", cache: "public", vary: "Origin"},
		"a public URL of no prefix":    {urls: []string{"https://example.com"}, want: free, at: "https://example.com", cache: "public", vary: "Origin"},
		"the one of several":           {urls: []string{"https://a.example/mcp", "https://b.example/x/mcp"}, host: "B.example", want: free, at: "https://b.example/x", cache: "public", vary: "Origin"},
		"none of several":              {urls: []string{"https://a.example/mcp", "https://b.example/mcp"}, host: "localhost", want: free, at: "https://a.example", cache: "public", vary: "Origin"},
		"no public URL":                {want: free, at: "http://localhost:8080", cache: "private", vary: "Origin"},
		"no public URL, a base path":   {base: "/base", want: free, at: "http://localhost:8080/base", cache: "private", vary: "Origin"},
		"no public URL, off loopback":  {facts: &offLoopback, host: "far.example", want: free, at: "https://far.example", cache: "private"},
		"off loopback, a public URL":   {facts: &offLoopback, urls: []string{"https://a.example/mcp"}, want: free, at: "https://a.example", cache: "public"},
		"who has the scopes":           {token: "alice-token", urls: []string{publicURL}, want: both, at: "https://mcp.example.com", cache: "private", vary: "Authorization, Origin"},
		"who has a broader scope":      {token: "admin-token", urls: []string{publicURL}, want: both, at: "https://mcp.example.com", cache: "private", vary: "Authorization, Origin"},
		"who has credentials, no more": {token: "guest-token", urls: []string{publicURL}, want: free, at: "https://mcp.example.com", cache: "private", vary: "Authorization, Origin"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{MCTP: true, PublicURLs: c.urls, BasePath: c.base, Host: resident, Store: memory(), Implies: implies}
			if c.facts != nil {
				o.Host = *c.facts
			}
			if c.token != "" {
				o.Auth = []auth.Scheme{people()}
			}
			h, _ := newHandler(t, thaw.Server{Tools: tools}, o)
			call := get(c.base + "/discovery")
			call.host = c.host
			if c.token != "" {
				call = call.as(c.token)
			}
			a := exchange(t, h, call)
			if want := fmt.Sprintf(c.want, c.at); a.raw != want {
				t.Errorf("got %s, want %s", a.raw, want)
			}
			tag := a.header.Get("ETag")
			for _, verb := range []string{"GET", "HEAD"} {
				for match, status := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200, "": 200} {
					again := call.with("If-None-Match", match)
					again.verb = verb
					a := exchange(t, h, again)
					if a.status != status || a.header.Get("ETag") != tag || a.header.Get("Cache-Control") != c.cache+", max-age=300" || strings.Join(a.header.Values("Vary"), ", ") != c.vary {
						t.Errorf("%s if none matches %s: %d %v", verb, match, a.status, a.header)
					}
				}
			}
			call.path = c.base + "/openapi.json"
			doc := exchange(t, h, call)
			var api struct {
				Servers []struct{ URL string }
				Paths   map[string]any
			}
			if err := json.Unmarshal([]byte(doc.raw), &api); err != nil || len(api.Servers) != 1 || api.Servers[0].URL != c.at || (api.Paths["/t/{id}/result"] != nil) != (c.want == both) || doc.header.Get("ETag") == "" {
				t.Errorf("%v: %s", err, doc.raw)
			}
		})
	}
}

// What was made for one caller is not another's.
func TestMCTPDocumentsByCaller(t *testing.T) {
	tools := []*thaw.Tool{sentiment(nil), tool1(func(context.Context) (any, error) { return 1, nil }, &thaw.ToolOptions{Scopes: []string{"files:read"}})}
	h, _ := newHandler(t, thaw.Server{Tools: tools}, Options{MCTP: true, Host: resident, Store: memory(), Auth: []auth.Scheme{people()}})
	for range 2 {
		for token, sees := range map[string]bool{"alice-token": true, "guest-token": false} {
			for _, path := range []string{"/discovery", "/openapi.json"} {
				if a := exchange(t, h, get(path).as(token)); strings.Contains(a.raw, `/t"`) != sees {
					t.Errorf("%s, %s: %s", token, path, a.raw)
				}
			}
		}
	}
}

// What changes changes the tag; a new deploy's tools are there.
func TestMCTPDiscoveryChanges(t *testing.T) {
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{sentiment(nil)}}, Options{MCTP: true, Host: resident, Store: memory()})
	before := exchange(t, h, get("/discovery")).header.Get("ETag")
	if err := h.Replace(thaw.Server{Name: "test", Tools: []*thaw.Tool{sentiment(nil), tool1(nil, nil)}}); err != nil {
		t.Fatal(err)
	}
	if a := exchange(t, h, get("/discovery").with("If-None-Match", before)); a.status != 200 || a.header.Get("ETag") == before || !strings.Contains(a.raw, `"t":`) {
		t.Errorf("%d %s", a.status, a.raw)
	}
}
