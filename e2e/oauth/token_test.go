package oauth

import (
	"testing"
	"time"
)

// an expired token is refused, and the client gets a fresh one. A question that was open
// meanwhile is still the same caller's.
func TestExpiry(t *testing.T) {
	p := startProvider(t, time.Second)
	endpoint := p.serve(t)
	for _, tt := range []struct {
		name    string
		refresh bool
		fresh   []string // how the client gets it
	}{
		{"refreshed", true, []string{"POST AS/token refresh_token 200"}},
		{"logged in again", false, []string{"consent alice", "POST AS/token authorization_code 200"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := p.logIn(t, settings{Endpoint: endpoint, User: "alice", Refresh: tt.refresh})
			state := c.ask(t)
			r := c.whoami(t)
			r.succeeded(t)
			r.took(t, "POST /mcp 200")
			before := r.Result.StructuredContent
			r = c.untilRefused(t)
			r.succeeded(t)
			r.took(t, append(append([]string{"POST /mcp 401"}, tt.fresh...), "POST /mcp 200")...)
			r.challenged(t, `Bearer error="invalid_token", scope="files:read", resource_metadata="`+origin(t, endpoint)+`/.well-known/oauth-protected-resource/mcp"`)
			if after := r.Result.StructuredContent; after.Subject != before.Subject || after.Client != before.Client {
				t.Errorf("the caller was %+v and is %+v", before, after)
			}
			c.answer(t, state, "Alice").said(t, "Hello, Alice")
		})
	}
}

// untilRefused asks again and again until the token is too old, which it is some time after
// its end: clocks may differ by 30 s.
func (c *client) untilRefused(t *testing.T) *reply {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		select {
		case <-tick.C:
			if r := c.whoami(t); len(r.Challenges) > 0 {
				return r
			}
		case <-deadline:
			t.Fatalf("a token for a second is good after %v", patience)
		}
	}
}

// a new key of the provider is known when the first token comes that it signed, and nobody
// has to log in again because of it.
func TestRotation(t *testing.T) {
	p := startProvider(t, time.Hour)
	endpoint := p.serve(t)
	alice := p.logIn(t, settings{Endpoint: endpoint, User: "alice"})
	before := alice.whoami(t)
	before.succeeded(t)
	p.rotate(t)
	bob := p.logIn(t, settings{Endpoint: endpoint, User: "bob"})
	for _, tt := range []struct {
		user string
		c    *client
		old  bool // the key
	}{
		{"bob", bob, false},
		{"alice", alice, true},
	} {
		r := tt.c.whoami(t)
		r.succeeded(t)
		r.took(t, "POST /mcp 200")
		if r.Result.StructuredContent.Subject != tt.user || (r.Key == before.Key) != tt.old {
			t.Errorf("%s: the caller is %+v, by key %s; the first key is %s", tt.user, r.Result.StructuredContent, r.Key, before.Key)
		}
	}
}
