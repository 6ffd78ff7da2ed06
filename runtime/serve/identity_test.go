package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/mcp"
)

// tokens is a scheme of bearer tokens that begin with its prefix.
type tokens struct {
	prefix  string
	callers map[string]thaw.Principal
	down    bool
}

var errUnknownToken = errors.New("tokens: the token is unknown")

func (s *tokens) Authenticate(r *http.Request) (thaw.Principal, bool, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !strings.HasPrefix(token, s.prefix) {
		return thaw.Principal{}, false, nil
	}
	if s.down {
		return thaw.Principal{}, false, auth.ErrUnavailable
	}
	if p, ok := s.callers[token]; ok {
		return p, true, nil
	}
	return thaw.Principal{}, false, errUnknownToken
}

// schemeFunc is a scheme of one function.
type schemeFunc func(r *http.Request) (thaw.Principal, bool, error)

func (f schemeFunc) Authenticate(r *http.Request) (thaw.Principal, bool, error) { return f(r) }

func person(subject string, scopes ...string) thaw.Principal {
	return thaw.Principal{Scheme: "test", Issuer: "https://idp.example.com", Subject: subject, Scopes: scopes}
}

// people are alice with two scopes, admin with a broad one, and guest with none.
func people() *tokens {
	return &tokens{callers: map[string]thaw.Principal{
		"alice-token": person("alice", "files:read", "files:write"),
		"admin-token": person("admin", "files:*"),
		"guest-token": person("guest"),
	}}
}

const publicURL = "https://mcp.example.com/mcp"

// identified are the options of a server that knows people, at publicURL.
func identified() Options {
	return Options{
		Host: offLoopback, Auth: []auth.Scheme{people()},
		PublicURLs: []string{publicURL}, AuthorizationServers: []string{"https://idp.example.com"},
	}
}

// as is p with a bearer token; "" is without.
func (p post) as(token string) post {
	headers := map[string]string{}
	for k, v := range p.headers {
		headers[k] = v
	}
	if token != "" {
		headers["Authorization"] = "Bearer " + token
	}
	p.headers = headers
	return p
}

const metadataParam = `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`

// params are those of a challenge, which may come in any order.
func challengeParams(t *testing.T, challenge string) map[string]string {
	t.Helper()
	rest, ok := strings.CutPrefix(challenge, "Bearer")
	if !ok {
		t.Fatalf("challenge %q is not for Bearer", challenge)
	}
	params := map[string]string{}
	for part := range strings.SplitSeq(rest, ", ") {
		if part = strings.TrimSpace(part); part != "" {
			name, value, _ := strings.Cut(part, "=")
			params[name] = strings.Trim(value, `"`)
		}
	}
	return params
}

// who calls, and what who cannot say so is told.
func TestCredentials(t *testing.T) {
	fails := func(err error) auth.Scheme {
		return schemeFunc(func(*http.Request) (thaw.Principal, bool, error) { return thaw.Principal{}, false, err })
	}
	gives := func(p thaw.Principal) auth.Scheme {
		return schemeFunc(func(*http.Request) (thaw.Principal, bool, error) { return p, true, nil })
	}
	for _, c := range []struct {
		name          string
		scheme        auth.Scheme
		authorization string
		status        int
		reason        string
		err           string // of the challenge
		log           string
	}{
		{"good", people(), "Bearer alice-token", 200, "", "", ""},
		{"missing", people(), "", 401, "unauthorized", "", ""},
		{"of a kind that nobody knows", people(), "Basic dXNlcjpw", 401, "unauthorized", "", ""},
		{"unknown", people(), "Bearer mallory-token", 401, "unauthorized", "invalid_token", "the token is unknown"},
		{"malformed", fails(fmt.Errorf("x: %w", auth.ErrMalformed)), "Bearer", 401, "unauthorized", "invalid_token", "malformed"},
		{"not to be judged now", fails(fmt.Errorf("jwks: %w", auth.ErrUnavailable)), "Bearer x", 503, "auth_unavailable", "", "jwks"},
		{"a scheme that panics", schemeFunc(func(*http.Request) (thaw.Principal, bool, error) { panic("boom") }), "Bearer x", 503, "auth_unavailable", "", "boom"},
		{"a caller without a subject", gives(thaw.Principal{Scheme: "test"}), "Bearer x", 401, "unauthorized", "invalid_token", "no Subject"},
		{"a caller without a scheme", gives(thaw.Principal{Subject: "x"}), "Bearer x", 401, "unauthorized", "invalid_token", "no Scheme"},
		{"an anonymous caller with a name", gives(thaw.Principal{Scheme: "none", Subject: "x"}), "Bearer x", 401, "unauthorized", "invalid_token", "nothing else"},
		{"an anonymous caller with scopes", gives(thaw.Principal{Scheme: "none", Scopes: []string{"x"}}), "", 401, "unauthorized", "invalid_token", "nothing else"},
		{"an anonymous caller that a scheme lets in", gives(thaw.Principal{Scheme: "none"}), "", 200, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			o := identified()
			o.Auth = []auth.Scheme{c.scheme}
			h, log := newHandler(t, testServer(&ran), o)
			p := post{method: "tools/call", params: map[string]any{"name": "echo", "arguments": map[string]any{"text": "hi"}}, headers: map[string]string{}}
			if c.authorization != "" {
				p.headers["Authorization"] = c.authorization
			}
			got := do(t, h, p.request(t))
			if got.status != c.status || got.reason() != c.reason || (ran == 1) != (c.status == 200) {
				t.Errorf("got %d %s, ran %d", got.status, got.raw, ran)
			}
			if c.status != 200 && strings.Contains(got.raw, `"id"`) {
				t.Errorf("the body was not read and there is an id: %s", got.raw)
			}
			challenge := got.header.Get("WWW-Authenticate")
			switch c.status {
			case 401:
				params := challengeParams(t, challenge)
				if params["error"] != c.err || !strings.Contains(challenge, metadataParam) {
					t.Errorf("challenge %q", challenge)
				}
				if got.code() != -32600 {
					t.Errorf("code %d", got.code())
				}
			case 503:
				if got.header.Get("Retry-After") != "5" || challenge != "" || got.code() != -32603 {
					t.Errorf("Retry-After %q, challenge %q, code %d", got.header.Get("Retry-After"), challenge, got.code())
				}
			}
			if c.log == "" && log.String() != "" || !strings.Contains(log.String(), c.log) || c.log != "" && strings.Contains(got.raw, c.log) {
				t.Errorf("log %q, answer %s", log, got.raw)
			}
		})
	}
}

// Spec 0.4, B-61 of the case list: clients probe with GET, and a bare 405 would hide the
// login. A browser's question and a probe of health have no credential.
func TestCredentialsBeforeTheVerb(t *testing.T) {
	ran := 0
	o := identified()
	o.AllowedOrigins = []string{"https://app.example.com"}
	h, _ := newHandler(t, testServer(&ran), o)
	for _, c := range []struct {
		verb, path, token string
		headers           map[string]string
		status            int
	}{
		{"GET", "/mcp", "", nil, 401},
		{"GET", "/mcp", "mallory", nil, 401},
		{"GET", "/mcp", "alice-token", nil, 405},
		{"DELETE", "/mcp", "", map[string]string{"Mcp-Session-Id": "abc"}, 401},
		{"DELETE", "/mcp", "alice-token", map[string]string{"Mcp-Session-Id": "abc"}, 405},
		{"HEAD", "/mcp", "", nil, 401},
		{"HEAD", "/mcp", "alice-token", nil, 405},
		{"PUT", "/mcp", "mallory", nil, 401},
		{"OPTIONS", "/mcp", "", map[string]string{"Origin": "https://app.example.com", "Access-Control-Request-Headers": "authorization"}, 204},
		{"GET", "/mcp", "", map[string]string{"Origin": "https://evil.example"}, 403},
		{"POST", "/mcp", "", map[string]string{"Content-Type": "text/plain"}, 401},
		{"GET", "/health", "", nil, 200},
		{"GET", "/healthz", "mallory", nil, 200},
		{"GET", "/elsewhere", "", nil, 404},
	} {
		t.Run(c.verb+" "+c.path+" "+c.token, func(t *testing.T) {
			got := do(t, h, post{method: "tools/list", verb: c.verb, path: c.path, headers: c.headers}.as(c.token).request(t))
			if got.status != c.status || (got.header.Get("WWW-Authenticate") != "") != (c.status == 401) || (got.header.Get("Allow") != "") != (c.status == 405 || c.status == 204) {
				t.Errorf("got %d, %v", got.status, got.header)
			}
			if c.verb == "HEAD" && got.raw != "" {
				t.Errorf("HEAD got a body: %s", got.raw)
			}
		})
	}
	notification := post{method: "notifications/cancelled", id: "-"}
	if got := do(t, h, notification.request(t)); got.status != 401 {
		t.Errorf("a notification without a credential: %d", got.status)
	}
	got := do(t, h, post{method: "tools/list", headers: map[string]string{"Origin": "https://app.example.com"}}.request(t))
	if got.status != 401 || !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("a page cannot read the challenge: %d %v", got.status, got.header)
	}
}

// The first scheme that knows the credential, or fails at it, decides.
func TestSchemesSideBySide(t *testing.T) {
	keys := &tokens{prefix: "key-", callers: map[string]thaw.Principal{"key-robot": person("robot")}}
	everything := &tokens{callers: map[string]thaw.Principal{"alice-token": person("alice"), "key-forged": person("mallory")}}
	o := identified()
	o.Auth = []auth.Scheme{keys, everything}
	var caller string
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		caller = thaw.CallInfoFrom(ctx).Principal.Subject
		return 1, nil
	}, nil)}}, o)
	for token, want := range map[string]string{"key-robot": "robot", "alice-token": "alice", "key-forged": "", "nobody": "", "": ""} {
		caller = ""
		got := do(t, h, callT().as(token).request(t))
		if caller != want || (got.status == 200) != (want != "") {
			t.Errorf("%q: %d, caller %q, want %q", token, got.status, caller, want)
		}
	}
}

// A handler knows its caller and cannot change who that is for others.
func TestCallInfoPrincipal(t *testing.T) {
	known := thaw.Principal{Scheme: "jwt", Issuer: "https://idp.example.com", Subject: "alice", Tenant: "acme", Client: "app",
		Scopes: []string{"a", "b"}, Claims: map[string]any{"name": "Alice"}}
	o := identified()
	o.Auth = []auth.Scheme{schemeFunc(func(*http.Request) (thaw.Principal, bool, error) { return known, true, nil })}
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		p := thaw.CallInfoFrom(ctx).Principal
		said := fmt.Sprint(p)
		p.Scopes[0], p.Claims["name"] = "admin", "Mallory"
		if err := thaw.RequireScopes(ctx, "admin"); err == nil {
			return nil, errors.New("it has the scope now")
		}
		return said, nil
	}, nil)}}, o)
	for range 2 {
		got := do(t, h, callT().request(t))
		if want := "{jwt https://idp.example.com alice acme app [a b] map[name:Alice]}"; !strings.Contains(got.raw, want) {
			t.Errorf("got %s", got.raw)
		}
	}
}

// Strangers cannot fill the log, and no credential gets into it, whatever a scheme says.
func TestRefusalsInTheLog(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	o := identified()
	o.Now = func() time.Time { return now }
	o.Auth = []auth.Scheme{schemeFunc(func(r *http.Request) (thaw.Principal, bool, error) {
		switch header := r.Header.Get("Authorization"); {
		case strings.Contains(header, "panic"):
			panic("cannot read " + header)
		case strings.Contains(header, "later"):
			return thaw.Principal{}, false, fmt.Errorf("%w: %s", auth.ErrUnavailable, header)
		default:
			return thaw.Principal{}, false, errors.New("no such token: " + strings.TrimPrefix(header, "Bearer ") + strings.Repeat(" long", 1000))
		}
	})}
	h, log := newHandler(t, testServer(new(int)), o)
	for range 50 {
		for _, token := range []string{"secret-token-1", "secret-later", "secret-panic"} {
			if got := do(t, h, post{method: "tools/list"}.as(token).request(t)); strings.Contains(got.raw, "secret") {
				t.Errorf("answer %s", got.raw)
			}
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || strings.Contains(text, "secret") || !strings.Contains(text, "no such token: (credential)") || len(text) > 2000 {
		t.Errorf("log %s", text)
	}
	now = now.Add(time.Second)
	do(t, h, post{method: "tools/list"}.as("secret-token-1").request(t))
	do(t, h, post{method: "tools/list"}.as("secret-panic").request(t))
	text := log.String()
	if strings.Count(text, "\n") != 4 || !strings.Contains(text, "suppressed=49") || !strings.Contains(text, "suppressed=99") ||
		!strings.Contains(text, "identity_test.go") || strings.Contains(text, "secret") {
		t.Errorf("log %s", text)
	}
}

// F-18: the limit of a tool is each caller's own, whatever client it uses.
func TestRateLimitByCaller(t *testing.T) {
	o := identified()
	other := person("alice")
	other.Client = "another client"
	elsewhere := person("alice")
	elsewhere.Tenant = "acme"
	o.Auth = []auth.Scheme{&tokens{callers: map[string]thaw.Principal{"alice": person("alice"), "alice-2": other, "acme-alice": elsewhere, "bob": person("bob")}}}
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(context.Context) (any, error) { return 1, nil },
		&thaw.ToolOptions{Rate: &thaw.Rate{PerMinute: 1}})}}, o)
	for _, c := range []struct {
		token  string
		status int
	}{{"alice", 200}, {"alice", 429}, {"alice-2", 429}, {"bob", 200}, {"acme-alice", 200}, {"bob", 429}} {
		if got := do(t, h, callT().as(c.token).request(t)); got.status != c.status {
			t.Errorf("%s: %d, want %d", c.token, got.status, c.status)
		}
	}
}

// The binary's own command is no caller from outside: it needs no credential and no scope.
// Nothing that comes over HTTP can be it.
func TestOperator(t *testing.T) {
	var caller thaw.Principal
	o := identified()
	o.Auth = append(o.Auth, schemeFunc(func(r *http.Request) (thaw.Principal, bool, error) {
		return *operator, r.Header.Get("X-Operator") != "", nil
	}))
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		caller = thaw.CallInfoFrom(ctx).Principal
		return 1, thaw.RequireScopes(ctx, "files:write")
	}, &thaw.ToolOptions{Scopes: []string{"files:read"}})}}, o)
	if _, err := h.callTool(t.Context(), "t", []byte("{}"), nil); err != nil || caller.Scheme != "local" || caller.Subject == "" {
		t.Errorf("%v, caller %+v", err, caller)
	}
	p := callT()
	p.headers = map[string]string{"X-Operator": "yes"}
	if got := do(t, h, p.request(t)); got.status != 403 {
		t.Errorf("a caller that looks like the operator: %d %s", got.status, got.raw)
	}
}

// C-06, B-67 of the case list: what takes a credential to get is for no shared cache.
func TestIdentifiedAnswersArePrivate(t *testing.T) {
	for name, o := range map[string]Options{"private": identified(), "public": {Host: offLoopback}} {
		s := testServer(new(int))
		s.PublicLists = true
		s.Resources = append(s.Resources, thaw.NewResource("docs://public", "public", func(context.Context) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResource("", "", "x")}, nil
		}, &thaw.ResourceOptions{Public: true}))
		h, _ := newHandler(t, s, o)
		for _, p := range []post{
			{method: "server/discover"}, {method: "tools/list"}, {method: "prompts/list"}, {method: "resources/list"}, {method: "resources/templates/list"},
			{method: "resources/read", params: map[string]any{"uri": "docs://public"}},
		} {
			if got := do(t, h, p.as("guest-token").request(t)); got.result(t)["cacheScope"] != name {
				t.Errorf("%s: %s, want %s", p.method, got.raw, name)
			}
		}
	}
}

// New takes no scheme that it could not ask.
func TestNilScheme(t *testing.T) {
	if _, err := New(testServer(new(int)), &Options{Auth: []auth.Scheme{people(), nil}}); err == nil || !strings.Contains(err.Error(), "auth scheme 1 is nil") {
		t.Error(err)
	}
}

func BenchmarkCredentials(b *testing.B) {
	h, err := New(testServer(new(int)), &Options{Host: offLoopback, Auth: []auth.Scheme{people()}})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer alice-token")
	b.ReportAllocs()
	for b.Loop() {
		q := request{h: h, r: r}
		if f := q.checkCredentials(); f != nil {
			b.Fatal(f)
		}
	}
}

// a call that asks goes on for the caller that began it, with the scopes that it
// has now.
func TestIdentityOverRounds(t *testing.T) {
	var done []string
	o := identified()
	o.StateKeys = keys(&testKey{secret: "k"})
	known := people()
	elsewhere := person("alice", "files:read")
	elsewhere.Client = "another client"
	known.callers["alice-elsewhere"] = elsewhere
	known.callers["alice-narrow"] = person("alice", "files:write")
	known.callers["alice-wide"] = person("alice", "files:read", "mail:send")
	o.Auth = []auth.Scheme{known}
	h, _ := newHandler(t, transferServer(&done, &thaw.ToolOptions{Scopes: []string{"files:read"}}), o)
	first := transferCall(`{"to":"A"}`)
	state := stateOf(t, do(t, h, first.as("alice-token").request(t)))
	for _, c := range []struct {
		token  string
		status int
		reason string
	}{
		{"", 401, "unauthorized"}, {"mallory", 401, "unauthorized"}, {"guest-token", 403, "insufficient_scope"}, {"alice-narrow", 403, "insufficient_scope"},
		{"admin-token", 403, "insufficient_scope"}, {"alice-elsewhere", 200, "requestState"},
	} {
		if got := do(t, h, retry(first, state, yes).as(c.token).request(t)); got.status != c.status || got.reason() != c.reason || len(done) > 0 {
			t.Errorf("%q goes on: %d %s, done %q", c.token, got.status, got.raw, done)
		}
	}
	if got := do(t, h, retry(first, state, yes).as("alice-wide").request(t)); got.status != 200 || len(done) != 1 {
		t.Errorf("with other scopes: %d %s, done %q", got.status, got.raw, done)
	}
}
