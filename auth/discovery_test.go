package auth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestHasAll(t *testing.T) {
	wider := func(granted, required string) bool { return strings.HasPrefix(required, granted+":") }
	tests := []struct {
		name              string
		granted, required []string
		implies           func(granted, required string) bool
		missing           []string
	}{
		{"nothing required", nil, nil, nil, nil},
		{"all granted", []string{"a", "b"}, []string{"b", "a"}, nil, nil},
		{"none granted", nil, []string{"a", "b"}, nil, []string{"a", "b"}},
		{"in their order", []string{"b"}, []string{"c", "b", "a"}, nil, []string{"c", "a"}},
		{"letters count", []string{"A"}, []string{"a"}, nil, []string{"a"}},
		{"no part of a name", []string{"files"}, []string{"files:read"}, nil, []string{"files:read"}},
		{"a wider one", []string{"files"}, []string{"files:read", "files"}, wider, nil},
		{"not the other way round", []string{"files:read"}, []string{"files"}, wider, []string{"files"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if missing := HasAll(test.granted, test.required, test.implies); !slices.Equal(missing, test.missing) || (missing == nil) != (test.missing == nil) {
				t.Errorf("HasAll = %q, want %q", missing, test.missing)
			}
		})
	}
}

// B-57.
func TestChallenge(t *testing.T) {
	tests := []struct {
		name string
		c    Challenge
		want string
	}{
		{"bare", Challenge{}, `Bearer`},
		{"no token", Challenge{ResourceMetadata: "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"},
			`Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`},
		{"bad token", Challenge{Error: "invalid_token", Description: "The access token is not valid here", ResourceMetadata: "https://m/x"},
			`Bearer error="invalid_token", error_description="The access token is not valid here", resource_metadata="https://m/x"`},
		{"scopes", Challenge{Error: "insufficient_scope", Scopes: []string{"files:read", "files:write"}},
			`Bearer error="insufficient_scope", scope="files:read files:write"`},
		{"quotes", Challenge{Description: `say "no" \ or`}, `Bearer error_description="say \"no\" \\ or"`},
		{"new lines", Challenge{Error: "a\r\nSet-Cookie: x=1", Scopes: []string{"b\nc", "d\x00\x7f"}}, `Bearer error="a??Set-Cookie: x=1", scope="b?c d??"`},
		{"beyond ASCII", Challenge{Description: "f\u00fcr \U0001F600 \xff"}, `Bearer error_description="f?r ? ?"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.c.String(); got != test.want {
				t.Errorf("String = %s\nwant     %s", got, test.want)
			}
		})
	}
}

// FuzzChallenge: whatever the fields hold, a client reads one challenge with these parameters.
func FuzzChallenge(f *testing.F) {
	f.Add("invalid_token", "d", "a b", "https://m/x")
	f.Add("\r\n", `"`, `\`, `", Basic realm="`)
	f.Fuzz(func(t *testing.T, code, description, scope, metadata string) {
		value := Challenge{Error: code, Description: description, Scopes: []string{scope}, ResourceMetadata: metadata}.String()
		server := httptest.NewRecorder()
		server.Header().Set("WWW-Authenticate", value)
		if got := server.Result().Header.Get("WWW-Authenticate"); got != value {
			t.Fatalf("header %q became %q", value, got)
		}
		rest, ok := strings.CutPrefix(value, "Bearer")
		if !ok {
			t.Fatalf("value %q", value)
		}
		for _, parameter := range []struct{ name, value string }{{"error", code}, {"error_description", description}, {"scope", scope}, {"resource_metadata", metadata}} {
			if parameter.value == "" {
				continue
			}
			rest = strings.TrimPrefix(rest, ",")
			if rest, ok = strings.CutPrefix(rest, " "+parameter.name+`="`); !ok {
				t.Fatalf("value %q lacks %s at %q", value, parameter.name, rest)
			}
			for rest != "" && rest[0] != '"' {
				if rest[0] == '\\' {
					rest = rest[1:]
				}
				if rest[0] < ' ' || rest[0] > '~' {
					t.Fatalf("value %q has the byte %#x", value, rest[0])
				}
				rest = rest[1:]
			}
			if rest == "" {
				t.Fatalf("value %q ends inside quotes", value)
			}
			rest = rest[1:]
		}
		if rest != "" {
			t.Errorf("value %q goes on with %q", value, rest)
		}
	})
}

// RFC 9728.
func TestMetadata(t *testing.T) {
	good := Metadata{Resource: testAudience, AuthorizationServers: []string{testIssuer}}
	tests := []struct {
		name   string
		change func(*Metadata)
		want   string
		says   string
	}{
		{"least", func(*Metadata) {},
			`{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://idp.example.com"],"bearer_methods_supported":["header"]}`, ""},
		{"most", func(m *Metadata) {
			m.ScopesSupported, m.BearerMethodsSupported = []string{"files:read"}, []string{"header"}
			m.ResourceName, m.ResourceDocumentation = `Files "&" more`, "https://example.com/docs"
		}, `{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://idp.example.com"],"scopes_supported":["files:read"],` +
			`"bearer_methods_supported":["header"],"resource_name":"Files \"&\" more","resource_documentation":"https://example.com/docs"}`, ""},
		{"loopback", func(m *Metadata) {
			m.Resource, m.AuthorizationServers = "http://localhost:8080/mcp", []string{"http://127.0.0.1:9"}
		}, `{"resource":"http://localhost:8080/mcp","authorization_servers":["http://127.0.0.1:9"],"bearer_methods_supported":["header"]}`, ""},
		{"no resource", func(m *Metadata) { m.Resource = "" }, "", "Resource is no absolute URL"},
		{"http", func(m *Metadata) { m.Resource = "http://mcp.example.com/mcp" }, "", "Resource must be https"},
		{"fragment", func(m *Metadata) { m.Resource += "#x" }, "", "fragment"},
		{"query", func(m *Metadata) { m.Resource += "?x" }, "", "query"},
		{"upper-case host", func(m *Metadata) { m.Resource = "https://MCP.example.com/mcp" }, "", "upper-case"},
		{"upper-case scheme", func(m *Metadata) { m.Resource = "HTTPS://mcp.example.com/mcp" }, "", "upper-case"},
		{"no authorization server", func(m *Metadata) { m.AuthorizationServers = nil }, "", "AuthorizationServers is empty"},
		{"authorization server without TLS", func(m *Metadata) { m.AuthorizationServers = []string{testIssuer, "http://idp.example.com"} }, "", "AuthorizationServers must be https"},
		{"offline_access", func(m *Metadata) { m.ScopesSupported = []string{"offline_access"} }, "", "offline_access"},
		{"tokens in the query", func(m *Metadata) { m.BearerMethodsSupported = []string{"header", "query"} }, "", "BearerMethodsSupported"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := good
			test.change(&m)
			got, err := m.AppendJSON([]byte("x"))
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) || string(got) != "x" {
					t.Errorf("AppendJSON = %s, %v; want an error with %q", got, err, test.says)
				}
				return
			}
			if err != nil || string(got) != "x"+test.want {
				t.Errorf("AppendJSON = %s, %v\nwant x%s", got, err, test.want)
			}
			if got, err := m.MarshalJSON(); err != nil || string(got) != test.want || !json.Valid(got) {
				t.Errorf("MarshalJSON = %s, %v", got, err)
			}
		})
	}
}

// A-04; RFC 9728, 3.1; B-57.
func TestWellKnownPath(t *testing.T) {
	tests := []struct {
		url, path string
		ok        bool
	}{
		{"https://mcp.example.com/prod/mcp", "/.well-known/oauth-protected-resource/prod/mcp", true},
		{"https://mcp.example.com", "/.well-known/oauth-protected-resource", true},
		{"https://mcp.example.com/", "/.well-known/oauth-protected-resource", true},
		{"https://mcp.example.com/mcp/", "/.well-known/oauth-protected-resource/mcp/", true},
		{"https://mcp.example.com/a%2Fb", "/.well-known/oauth-protected-resource/a%2Fb", true},
		{"http://localhost:8080/mcp", "/.well-known/oauth-protected-resource/mcp", true},
		{"http://mcp.example.com/mcp", "", false},
		{"/mcp", "", false},
		{"mcp.example.com/mcp", "", false},
		{"https:///mcp", "", false},
		{"https://mcp.example.com/mcp?x=1", "", false},
		{"https://mcp.example.com/mcp#x", "", false},
		{"https://user@mcp.example.com/mcp", "", false},
		{"https://mcp.example.com/%zz", "", false},
		{"", "", false},
	}
	for _, test := range tests {
		t.Run(test.url, func(t *testing.T) {
			path, err := WellKnownPath(test.url)
			if path != test.path || (err == nil) != test.ok {
				t.Fatalf("WellKnownPath = %q, %v; want %q", path, err, test.path)
			}
			if test.ok {
				if r := httptest.NewRequest(http.MethodGet, path, nil); r.URL.EscapedPath() != path {
					t.Errorf("a request for %q has the path %q", path, r.URL.EscapedPath())
				}
			}
		})
	}
}
