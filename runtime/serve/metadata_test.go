package serve

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
)

type document struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}

func metadata(t *testing.T, h http.Handler, host, path string) (document, answer) {
	t.Helper()
	got := do(t, h, post{verb: http.MethodGet, host: host, path: path, headers: map[string]string{"Authorization": "Bearer junk", "Content-Type": "-"}}.request(t))
	var d document
	if got.status == http.StatusOK {
		if err := json.Unmarshal([]byte(got.raw), &d); err != nil {
			t.Fatalf("%v: %s", err, got.raw)
		}
	}
	return d, got
}

// B-57 of the case list: which addresses have a document, and of what.
func TestMetadata(t *testing.T) {
	one := []string{"https://mcp.example.com/prod/mcp"}
	two := []string{"https://a.example.com/mcp", "https://b.example.com/x/mcp", "https://b.example.com/y/mcp"}
	for _, c := range []struct {
		name       string
		urls       []string
		base       string
		host, path string
		resource   string // "": 404
	}{
		{"path form", one, "/prod", "mcp.example.com", "/.well-known/oauth-protected-resource/prod/mcp", one[0]},
		{"root", one, "/prod", "mcp.example.com", "/.well-known/oauth-protected-resource", one[0]},
		{"below the base", one, "/prod", "mcp.example.com", "/prod/.well-known/oauth-protected-resource", one[0]},
		{"path form below the base", one, "/prod", "mcp.example.com", "/prod/.well-known/oauth-protected-resource/prod/mcp", one[0]},
		{"path form of the endpoint itself", one, "/prod", "mcp.example.com", "/.well-known/oauth-protected-resource/mcp", one[0]},
		{"without a base", one, "", "mcp.example.com", "/.well-known/oauth-protected-resource/prod/mcp", one[0]},
		{"below a base that is none", one, "", "mcp.example.com", "/prod/.well-known/oauth-protected-resource", ""},
		{"another resource", one, "/prod", "mcp.example.com", "/.well-known/oauth-protected-resource/other", ""},
		{"a slash too many", one, "/prod", "mcp.example.com", "/.well-known/oauth-protected-resource/", ""},
		{"a longer name", one, "/prod", "mcp.example.com", "/.well-known/oauth-protected-resources", ""},
		{"another document", one, "/prod", "mcp.example.com", "/.well-known/oauth-authorization-server", ""},
		{"a Host that is not listed", one, "/prod", "evil.example", "/.well-known/oauth-protected-resource", one[0]},
		{"a Host with a port", one, "/prod", "mcp.example.com:8443", "/.well-known/oauth-protected-resource", one[0]},
		{"the first of several", two, "", "a.example.com", "/.well-known/oauth-protected-resource", two[0]},
		{"the second, by Host", two, "", "B.example.com", "/.well-known/oauth-protected-resource", two[1]},
		{"the second, by path", two, "", "b.example.com", "/.well-known/oauth-protected-resource/x/mcp", two[1]},
		{"the third, by path", two, "", "b.example.com", "/.well-known/oauth-protected-resource/y/mcp", two[2]},
		{"the third, by path alone", two, "", "evil.example", "/.well-known/oauth-protected-resource/y/mcp", two[2]},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := identified()
			o.PublicURLs, o.BasePath = c.urls, c.base
			h, _ := newHandler(t, testServer(new(int)), o)
			d, got := metadata(t, h, c.host, c.path)
			if c.resource == "" {
				if got.status != 404 {
					t.Errorf("got %d %s", got.status, got.raw)
				}
				return
			}
			if got.status != 200 || d.Resource != c.resource || !slices.Equal(d.AuthorizationServers, o.AuthorizationServers) ||
				!slices.Equal(d.BearerMethods, []string{"header"}) || d.Name != "test" || d.ScopesSupported != nil {
				t.Errorf("got %d %s, want resource %s", got.status, got.raw, c.resource)
			}
			if got.header.Get("Content-Type") != "application/json" || got.header.Get("Cache-Control") != "public, max-age=300" ||
				got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("WWW-Authenticate") != "" {
				t.Errorf("headers %v", got.header)
			}
		})
	}
}

// The address in a challenge is one that leads to the document, wherever a gateway has put
// the server, and that says what the client asked for.
func TestChallengeLeadsToTheMetadata(t *testing.T) {
	for _, c := range []struct{ url, base, document string }{
		{"https://mcp.example.com/mcp", "", "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"},
		{"https://mcp.example.com/prod/mcp", "", "https://mcp.example.com/prod/.well-known/oauth-protected-resource/prod/mcp"},
		{"https://mcp.example.com/prod/mcp", "/prod", "https://mcp.example.com/prod/.well-known/oauth-protected-resource/prod/mcp"},
		{"https://mcp.example.com/a/b/mcp/", "/a/b", "https://mcp.example.com/a/b/.well-known/oauth-protected-resource/a/b/mcp/"},
		{"https://mcp.example.com/tools", "", "https://mcp.example.com/.well-known/oauth-protected-resource/tools"},
		{"https://mcp.example.com", "", "https://mcp.example.com/.well-known/oauth-protected-resource"},
		{"http://localhost:8080/mcp", "", "http://localhost:8080/.well-known/oauth-protected-resource/mcp"},
	} {
		t.Run(c.url, func(t *testing.T) {
			o := identified()
			o.PublicURLs, o.BasePath = []string{"https://first.example.com/mcp", c.url}, c.base
			h, _ := newHandler(t, testServer(new(int)), o)
			_, rest, _ := strings.Cut(c.url, "://")
			host, _, _ := strings.Cut(rest, "/")
			got := do(t, h, post{method: "tools/list", host: host, path: c.base + "/mcp"}.request(t))
			document := challengeParams(t, got.header.Get("WWW-Authenticate"))["resource_metadata"]
			if got.status != 401 || document != c.document {
				t.Fatalf("%d, document %s, want %s", got.status, document, c.document)
			}
			// What leads to the endpoint takes the same away from both paths.
			path := document[strings.Index(document, host)+len(host):]
			if c.base == "" {
				endpoint, _ := strings.CutSuffix(strings.TrimSuffix(strings.TrimPrefix(rest, host), "/"), "/mcp")
				if endpoint != "/tools" {
					path = strings.TrimPrefix(path, endpoint)
				}
			}
			if d, got := metadata(t, h, host, path); d.Resource != c.url {
				t.Errorf("%s: %d %s", path, got.status, got.raw)
			}
		})
	}
}

func TestMetadataVerbs(t *testing.T) {
	h, _ := newHandler(t, testServer(new(int)), identified())
	for _, c := range []struct {
		verb   string
		status int
		body   bool
	}{{"GET", 200, true}, {"HEAD", 200, false}, {"OPTIONS", 204, false}, {"POST", 405, false}, {"DELETE", 405, false}} {
		got := do(t, h, post{method: "tools/list", verb: c.verb, path: wellKnown, host: "any.example",
			headers: map[string]string{"Origin": "https://inspector.example", "Access-Control-Request-Headers": "mcp-protocol-version"}}.request(t))
		if got.status != c.status || (got.raw != "") != c.body || got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v %s", c.verb, got.status, got.header, got.raw)
		}
		if (c.status == 405 || c.status == 204) && got.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: Allow %q", c.verb, got.header.Get("Allow"))
		}
		if c.verb == "OPTIONS" && (got.header.Get("Access-Control-Allow-Headers") != "*" || !strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "GET")) {
			t.Errorf("preflight %v", got.header)
		}
	}
}

// Where nobody logs in by OAuth there is nothing to say.
func TestNoMetadata(t *testing.T) {
	for name, o := range map[string]Options{
		"anonymous": {Host: offLoopback, PublicURLs: []string{publicURL}},
		"API keys":  {Host: offLoopback, PublicURLs: []string{publicURL}, Auth: []auth.Scheme{people()}},
	} {
		h, _ := newHandler(t, testServer(new(int)), o)
		if _, got := metadata(t, h, "mcp.example.com", wellKnown+"/mcp"); got.status != 404 {
			t.Errorf("%s: %d", name, got.status)
		}
		if got := do(t, h, post{method: "tools/list"}.request(t)); strings.Contains(got.header.Get("WWW-Authenticate"), "resource_metadata") {
			t.Errorf("%s: challenge %s", name, got.header.Get("WWW-Authenticate"))
		}
	}
}

// what to ask for at first, which a Replace may change.
func TestMetadataScopes(t *testing.T) {
	scoped := func(scopes ...string) thaw.Server {
		return thaw.Server{Name: "test", Tools: []*thaw.Tool{tool1(nil2, &thaw.ToolOptions{Scopes: scopes})}}
	}
	h, _ := newHandler(t, scoped("b", "a", "offline_access", "a"), identified())
	if d, _ := metadata(t, h, "", wellKnown); !slices.Equal(d.ScopesSupported, []string{"a", "b"}) {
		t.Errorf("got %q", d.ScopesSupported)
	}
	if err := h.Replace(scoped("c")); err != nil {
		t.Fatal(err)
	}
	if d, _ := metadata(t, h, "", wellKnown); !slices.Equal(d.ScopesSupported, []string{"c"}) {
		t.Errorf("after a Replace %q", d.ScopesSupported)
	}
}

// What clients could not find or compare is refused at start.
func TestBadMetadataOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no public URL":          {Options{AuthorizationServers: []string{"https://idp.example.com"}}, "THAW_PUBLIC_URL"},
		"upper case":             {Options{AuthorizationServers: []string{"https://idp.example.com"}, PublicURLs: []string{"https://MCP.example.com/mcp"}}, "upper-case"},
		"a query":                {Options{AuthorizationServers: []string{"https://idp.example.com"}, PublicURLs: []string{"https://mcp.example.com/mcp?x"}}, "query"},
		"not https":              {Options{AuthorizationServers: []string{"https://idp.example.com"}, PublicURLs: []string{"http://mcp.example.com/mcp"}}, "https"},
		"an issuer that is none": {Options{AuthorizationServers: []string{"idp"}, PublicURLs: []string{publicURL}}, "issuer"},
		"scopes of no issuer":    {Options{ScopesSupported: []string{"x"}, PublicURLs: []string{publicURL}}, "AuthorizationServers"},
		"a scope that is none":   {Options{AuthorizationServers: []string{"https://idp.example.com"}, ScopesSupported: []string{`x"`}, PublicURLs: []string{publicURL}}, "scope"},
	} {
		if _, err := New(testServer(new(int)), &c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
