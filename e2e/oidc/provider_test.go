// Package oidc runs auth against a real OpenID provider: zitadel's, in process, which issues
// access tokens, publishes its keys, rotates them and goes down.
package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	audience = "https://mcp.example.com/mcp"
	// The service user that the provider's storage knows.
	client, secret = "sid1", "verysecret"
)

// key is one of the provider's, as it signs and as it publishes it.
type key struct {
	id      string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

func (k *key) ID() string                                  { return k.id }
func (k *key) SignatureAlgorithm() jose.SignatureAlgorithm { return k.alg }
func (k *key) Key() any                                    { return k.private }

type publicKey struct{ *key }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return k.alg }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return k.private.Public() }

func newKeys(t *testing.T) (rs, es *key) {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key{"k1", jose.RS256, r}, &key{"k2", jose.ES256, e}
}

// rotating is the provider's own storage with keys that change, tokens that are JWTs for our
// audience, and a long life for them.
type rotating struct {
	*storage.Storage

	mu     sync.Mutex
	signs  *key
	listed []*key
}

func (s *rotating) rotate(signs *key, listed ...*key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signs, s.listed = signs, listed
}

func (s *rotating) SigningKey(context.Context) (op.SigningKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signs, nil
}

func (s *rotating) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256}, nil
}

func (s *rotating) KeySet(context.Context) (keys []op.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.listed {
		keys = append(keys, publicKey{k})
	}
	return keys, nil
}

type jwtClient struct{ op.Client }

func (jwtClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

func (s *rotating) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	c, err := s.Storage.ClientCredentials(ctx, id, secret)
	return jwtClient{c}, err
}

func (s *rotating) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	return &oidc.JWTTokenRequest{Subject: id, Audience: []string{audience}, Scopes: scopes}, nil
}

func (s *rotating) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	return rand.Text(), time.Now().Add(48 * time.Hour), nil
}

// provider is a running OpenID provider.
type provider struct {
	*rotating
	op      *op.Provider
	server  *httptest.Server
	issuer  string
	jwksURL string
	fetches atomic.Int64 // of the JWKS
}

func startProvider(t *testing.T, signs *key, listed ...*key) *provider {
	t.Helper()
	p := &provider{server: httptest.NewUnstartedServer(nil)}
	p.issuer = "http://" + p.server.Listener.Addr().String()
	p.rotating = &rotating{Storage: storage.NewStorage(storage.NewUserStore(p.issuer))}
	p.rotate(signs, listed...)
	var err error
	p.op, err = op.NewProvider(&op.Config{}, p.rotating, op.StaticIssuer(p.issuer), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}
	p.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.issuer+r.URL.Path == p.jwksURL {
			p.fetches.Add(1)
		}
		p.op.ServeHTTP(w, r)
	})
	p.server.Start()
	t.Cleanup(p.server.Close)

	var discovered struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	p.get(t, "/.well-known/openid-configuration", &discovered)
	if discovered.Issuer != p.issuer || !strings.HasPrefix(discovered.JWKSURI, p.issuer+"/") {
		t.Fatalf("discovery says %+v", discovered)
	}
	p.jwksURL = discovered.JWKSURI
	return p
}

func (p *provider) get(t *testing.T, path string, into any) {
	t.Helper()
	resp, err := p.server.Client().Get(p.issuer + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
	}
}

// issue asks the token endpoint for an access token.
func (p *provider) issue(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.issuer+"/oauth/token",
		strings.NewReader(url.Values{"grant_type": {"client_credentials"}, "scope": {"files:read"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, secret)
	resp, err := p.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var issued struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&issued); err != nil || issued.AccessToken == "" || issued.TokenType != "Bearer" {
		t.Fatalf("token endpoint: status %d, %+v, %v", resp.StatusCode, issued, err)
	}
	return issued.AccessToken
}
