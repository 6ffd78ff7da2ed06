package oauth

import (
	"slices"
	"testing"
	"time"
)

// a client that lacks a scope is told which, and asks its user for it. It keeps
// those that it has.
func TestStepUp(t *testing.T) {
	p := startProvider(t, time.Hour)
	endpoint := p.serve(t)
	challenge := func(scope string) string {
		return `Bearer error="insufficient_scope", scope="` + scope + `", resource_metadata="` + origin(t, endpoint) + `/.well-known/oauth-protected-resource/mcp"`
	}
	for _, tt := range []struct {
		name    string
		refresh bool
	}{
		{"without refresh tokens", false},
		{"with refresh tokens", true}, // which the client must not try: they bring no more scopes
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := p.logIn(t, settings{Endpoint: endpoint, User: "alice", Refresh: tt.refresh})
			r := c.whoami(t, "files:write")
			r.succeeded(t)
			r.took(t, "POST /mcp 403", "consent alice", "POST AS/token authorization_code 200", "POST /mcp 200")
			r.challenged(t, challenge("files:write"))
			if got, want := r.Result.StructuredContent.Scopes, []string{"files:read", "files:write"}; !slices.Equal(got, want) {
				t.Errorf("the scopes are %q, want %q", got, want)
			}
			r = c.whoami(t, "files:read", "files:write")
			r.succeeded(t)
			r.took(t, "POST /mcp 200")

			// What the provider does not give stays out of reach.
			r = c.whoami(t, "files:write", "files:admin")
			if r.Error == nil || r.Error.Name != "UnauthorizedError" {
				t.Errorf("the error is %+v", r.Error)
			}
			r.took(t, "POST /mcp 403", "consent alice", "POST AS/token authorization_code 200", "POST /mcp 403")
			r.challenged(t, challenge("files:write files:admin"), challenge("files:write files:admin"))
		})
	}
}
