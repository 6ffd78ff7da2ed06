package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// origin is what a URL of an endpoint begins with.
func origin(t *testing.T, endpoint string) string {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// behind starts a server behind something whose public URL has this path, and which does not
// lead on what lies outside of the path's folder. change is what it does to answers.
func (p *provider) behind(t *testing.T, path string, change func(*http.Response) error) (endpoint string) {
	t.Helper()
	front := httptest.NewUnstartedServer(nil)
	endpoint = "http://" + front.Listener.Addr().String() + path
	target, err := url.Parse(origin(t, p.serve(t, "THAW_ADDR=127.0.0.1:0", "THAW_PUBLIC_URL="+endpoint)))
	if err != nil {
		t.Fatal(err)
	}
	front.Config.Handler = http.StripPrefix(strings.TrimSuffix(path, "/mcp"), &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: change,
	})
	front.Start()
	t.Cleanup(front.Close)
	return endpoint
}

// renamed does what a REST API of API Gateway does to a challenge.
func renamed(r *http.Response) error {
	if values := r.Header["Www-Authenticate"]; values != nil {
		r.Header["X-Amzn-Remapped-Www-Authenticate"] = values
		delete(r.Header, "Www-Authenticate")
	}
	return nil
}

// A client that knows the URL alone finds out where to log in, wherever the server stands
//
func TestLogin(t *testing.T) {
	p := startProvider(t, time.Hour)
	const wellKnown = "/.well-known/oauth-protected-resource"
	laptop := p.serve(t)
	for _, tt := range []struct {
		name           string
		endpoint       string
		path, metadata string
		unseen         bool // the challenge
		settings       settings
	}{
		{"laptop", laptop, "/mcp", wellKnown + "/mcp", false, settings{}},
		{"laptop by its number, version unknown", strings.Replace(laptop, "localhost", "127.0.0.1", 1), "/mcp", wellKnown + "/mcp", false, settings{Negotiates: true}},
		{"behind a stage", p.behind(t, "/prod/mcp", nil), "/prod/mcp", "/prod" + wellKnown + "/prod/mcp", false, settings{Refresh: true}},
		{"challenge renamed", p.behind(t, "/mcp", renamed), "/mcp", wellKnown + "/mcp", true, settings{Refresh: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.settings.Endpoint, tt.settings.User = tt.endpoint, "alice"
			c := p.start(t, tt.settings)
			r := c.connect(t)
			r.succeeded(t)
			r.took(t,
				"POST "+tt.path+" 401",
				"GET "+tt.metadata+" 200",
				"GET AS/.well-known/oauth-authorization-server 200",
				"POST AS/reg 201",
				"login alice",
				"consent alice",
				"POST AS/token authorization_code 200",
				"POST "+tt.path+" 200",
			)
			if tt.unseen {
				r.challenged(t)
			} else {
				r.challenged(t, `Bearer scope="files:read", resource_metadata="`+origin(t, tt.endpoint)+tt.metadata+`"`)
			}

			r = c.whoami(t)
			r.succeeded(t)
			r.took(t, "POST "+tt.path+" 200") // with the token at once
			who := r.Result.StructuredContent
			if who.Client == "" {
				t.Error("the caller's client is not known")
			}
			who.Client = ""
			if want := (caller{Scheme: "jwt", Issuer: p.issuer, Subject: "alice", Scopes: []string{"files:read"}}); !reflect.DeepEqual(who, want) {
				t.Errorf("the caller is %+v, want %+v", who, want)
			}
			c.do(t, command{Call: &call{Name: "ask_name", Arguments: map[string]any{}}}).said(t, "Hello, alice")
		})
	}
}

// a client that gets its tokens for another resource of the same provider gets nowhere
// with them.
func TestTokenForAnotherResource(t *testing.T) {
	p := startProvider(t, time.Hour)
	endpoint := p.serve(t)
	metadata := `resource_metadata="` + origin(t, endpoint) + `/.well-known/oauth-protected-resource/mcp"`
	r := p.start(t, settings{Endpoint: endpoint, User: "alice", Resource: "https://files.example.com/mcp"}).connect(t)
	if r.Error == nil || r.Error.Name != "UnauthorizedError" {
		t.Errorf("the error is %+v", r.Error)
	}
	if n := len(r.Steps); n < 2 || r.Steps[n-2] != "POST AS/token authorization_code 200" || r.Steps[n-1] != "POST /mcp 401" {
		t.Errorf("the steps are %q", r.Steps)
	}
	r.challenged(t, `Bearer scope="files:read", `+metadata, `Bearer error="invalid_token", scope="files:read", `+metadata)
}
