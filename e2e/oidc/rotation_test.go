package oidc

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
)

// clock runs with the real one, and can be put ahead of it.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// newScheme is a fresh process, which has fetched nothing yet.
func newScheme(t *testing.T, p *provider, c *clock) auth.Scheme {
	t.Helper()
	s, err := auth.JWT(auth.JWTOptions{
		Issuer: p.issuer, Audiences: []string{audience}, JWKSURL: p.jwksURL,
		Now: c.now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func authenticate(s auth.Scheme, token string) (thaw.Principal, error) {
	r := httptest.NewRequest(http.MethodPost, audience, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	who, ok, err := s.Authenticate(r)
	if err == nil && !ok {
		err = errors.New("the token was taken for no token")
	}
	return who, err
}

func TestTokensOfAProvider(t *testing.T) {
	k1, k2 := newKeys(t)
	p := startProvider(t, k1, k1, k2)
	var c clock
	s := newScheme(t, p, &c)
	for _, signs := range []*key{k1, k2} {
		t.Run(string(signs.alg), func(t *testing.T) {
			p.rotate(signs, k1, k2)
			who, err := authenticate(s, p.issue(t))
			if err != nil {
				t.Fatal(err)
			}
			if who.Scheme != "jwt" || who.Issuer != p.issuer || who.Subject != client || who.Client != client {
				t.Errorf("principal %+v", who)
			}
		})
	}
	t.Run("for another audience", func(t *testing.T) {
		other, err := auth.JWT(auth.JWTOptions{Issuer: p.issuer, Audiences: []string{audience + "/other"}, JWKSURL: p.jwksURL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := authenticate(other, p.issue(t)); err == nil || errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("ID token", func(t *testing.T) {
		token, err := op.CreateIDToken(t.Context(), p.issuer, idRequest{}, time.Hour, p.issue(t), "", p.rotating, idClient(t, p))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := authenticate(s, token); err == nil || !strings.Contains(err.Error(), "not an access token") {
			t.Errorf("error %v", err)
		}
	})
}

// idRequest is a login, to our audience so that nothing but its purpose is wrong with its token.
type idRequest struct{}

func (idRequest) GetAMR() []string       { return nil }
func (idRequest) GetAudience() []string  { return []string{audience} }
func (idRequest) GetAuthTime() time.Time { return time.Now() }
func (idRequest) GetClientID() string    { return client }
func (idRequest) GetScopes() []string    { return []string{oidc.ScopeOpenID} }
func (idRequest) GetSubject() string     { return "id1" }

func idClient(t *testing.T, p *provider) op.Client {
	t.Helper()
	c, err := p.ClientCredentials(t.Context(), client, secret)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// After a rotation no request fails: the first token of the new key brings it in, and the old
// key is good for as long as it is listed.
func TestRotation(t *testing.T) {
	k1, k2 := newKeys(t)
	p := startProvider(t, k1, k1)
	var c clock
	s := newScheme(t, p, &c)
	old := p.issue(t)
	if _, err := authenticate(s, old); err != nil {
		t.Fatal(err)
	}

	p.rotate(k2, k1, k2)
	token := p.issue(t)
	var wg sync.WaitGroup
	for range 10 {
		for _, token := range []string{old, token} {
			wg.Go(func() {
				if _, err := authenticate(s, token); err != nil {
					t.Errorf("after the rotation: %v", err)
				}
			})
		}
	}
	wg.Wait()
	if n := p.fetches.Load(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}

	p.rotate(k2, k2)
	if _, err := authenticate(s, old); err != nil {
		t.Errorf("old key before the next fetch: %v", err)
	}
	c.advance(15 * time.Minute)
	if _, err := authenticate(s, token); err != nil {
		t.Errorf("new key: %v", err)
	}
	if _, err := authenticate(s, old); err == nil || errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("old key after it was withdrawn: error %v", err)
	}
}

// A provider that is down logs nobody out whose key is known, and is no refusal to others.
func TestProviderDown(t *testing.T) {
	k1, _ := newKeys(t)
	p := startProvider(t, k1, k1)
	var c clock
	warm := newScheme(t, p, &c)
	tokens := []string{p.issue(t), p.issue(t)}
	if slices.Equal(tokens[:1], tokens[1:]) {
		t.Fatal("the provider issues one token for ever")
	}
	if _, err := authenticate(warm, tokens[0]); err != nil {
		t.Fatal(err)
	}
	p.server.Close()
	for range 3 {
		for _, token := range tokens {
			if _, err := authenticate(warm, token); err != nil {
				t.Errorf("warm process, %v later: %v", time.Duration(c.ahead.Load()), err)
			}
		}
		if _, err := authenticate(newScheme(t, p, &c), tokens[0]); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("fresh process: error %v, want ErrUnavailable", err)
		}
		c.advance(11 * time.Hour)
	}
	if _, err := authenticate(warm, tokens[0]); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("warm process after more than a day: error %v, want ErrUnavailable", err)
	}
}
