package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw"
)

const (
	testIssuer   = "https://idp.example.com"
	testAudience = "https://mcp.example.com/mcp"
	testJWKS     = "https://idp.example.com/jwks"
)

// epoch is the time of tests with a clock of their own.
var epoch = time.Unix(1_796_040_000, 0)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The keys of the tests: those of the provider, and one of an attacker's.
var (
	rsaKey     = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	evilKey    = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	weakKey    = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 1024)) })
	p256Key    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384Key    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	ed25519Key = sync.OnceValue(func() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) })
)

// jwk is a key as a provider publishes it, with the members of more laid over it; a nil
// value leaves a member out.
func jwk(kid string, public crypto.PublicKey, more map[string]any) map[string]any {
	b64 := base64.RawURLEncoding.EncodeToString
	j := map[string]any{"kid": kid, "use": "sig"}
	switch k := public.(type) {
	case *rsa.PublicKey:
		j["kty"], j["n"], j["e"] = "RSA", b64(k.N.Bytes()), b64(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		point := must(k.Bytes())
		half := len(point) / 2
		j["kty"], j["crv"], j["x"], j["y"] = "EC", k.Curve.Params().Name, b64(point[1:1+half]), b64(point[1+half:])
	case ed25519.PublicKey:
		j["kty"], j["crv"], j["x"] = "OKP", "Ed25519", b64(k)
	}
	for name, value := range more {
		if j[name] = value; value == nil {
			delete(j, name)
		}
	}
	return j
}

func jwksOf(keys ...map[string]any) string {
	return string(must(json.Marshal(map[string]any{"keys": keys})))
}

// usualKeys has one key of each kind.
func usualKeys() string {
	return jwksOf(jwk("k1", rsaKey().Public(), nil), jwk("e1", p256Key().Public(), nil), jwk("d1", ed25519Key().Public(), nil))
}

// provider is an identity provider as http.RoundTripper: it answers at testJWKS and nowhere else.
type provider struct {
	mu      sync.Mutex
	jwks    string
	header  http.Header
	status  int           // 0: 200
	fault   error         // instead of an answer
	delay   time.Duration // before the answer
	fetched []string      // URLs asked for
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched = append(p.fetched, r.URL.String())
	body, header, status, fault, delay := p.jwks, p.header, p.status, p.fault, p.delay
	if delay > 0 {
		p.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			fault = r.Context().Err()
		}
		p.mu.Lock()
	}
	if fault != nil {
		return nil, fault
	}
	if r.URL.String() != testJWKS {
		return nil, errors.New("no such host")
	}
	if status == 0 {
		status = http.StatusOK
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// set changes the provider.
func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// fetches is how often the provider has been asked.
func (p *provider) fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.fetched)
}

// newTestJWT is a scheme that asks p and takes epoch for now, unless change says otherwise.
func newTestJWT(t testing.TB, p *provider, change func(*JWTOptions)) Scheme {
	t.Helper()
	o := JWTOptions{
		Issuer: testIssuer, Audiences: []string{testAudience}, JWKSURL: testJWKS,
		Client: &http.Client{Transport: p}, Now: func() time.Time { return epoch }, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	s, err := JWT(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// goodClaims are those of a token that passes at epoch, with the members of more laid over them;
// the value absent leaves one out.
func goodClaims(more map[string]any) map[string]any {
	c := map[string]any{"iss": testIssuer, "sub": "alice", "aud": testAudience, "iat": epoch.Unix(), "exp": epoch.Add(time.Hour).Unix()}
	maps.Copy(c, more)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == absent })
	return c
}

const absent = "$ABSENT"

func goodHeader(more map[string]any) map[string]any {
	h := map[string]any{"alg": "RS256", "kid": "k1", "typ": "at+jwt"}
	maps.Copy(h, more)
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == absent })
	return h
}

// sign makes a token. Header and claims are JSON as strings, or anything to encode as JSON.
func sign(t testing.TB, method jwt.SigningMethod, key any, header, claims any) string {
	t.Helper()
	part := func(v any) string {
		text, ok := v.(string)
		if !ok {
			text = string(must(json.Marshal(v)))
		}
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	signed := part(header) + "." + part(claims)
	signature, err := method.Sign(signed, key)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// goodToken is signed by the provider's RSA key, with more claims.
func goodToken(t testing.TB, more map[string]any) string {
	t.Helper()
	return sign(t, jwt.SigningMethodRS256, rsaKey(), goodHeader(nil), goodClaims(more))
}

func requestWith(t testing.TB, lines ...string) *http.Request {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, testAudience, http.NoBody))
	for _, line := range lines {
		r.Header.Add("Authorization", line)
	}
	return r
}

func authenticate(t testing.TB, s Scheme, token string) (thaw.Principal, error) {
	t.Helper()
	p, ok, err := s.Authenticate(requestWith(t, "Bearer "+token))
	if ok != (err == nil) {
		t.Errorf("ok %t with error %v", ok, err)
	}
	if err != nil {
		if p.Scheme != "" || p.Subject != "" || p.Claims != nil {
			t.Errorf("principal %+v with error %v", p, err)
		}
		if part := leaked(err.Error(), token); part != "" {
			t.Errorf("error %q repeats %q of the token", err, part)
		}
	}
	return p, err
}

// leaked returns a part of the token that text repeats.
func leaked(text, token string) string {
	const long = 12
	for i := 0; i+long <= len(token); i++ {
		if strings.Contains(text, token[i:i+long]) {
			return token[i : i+long]
		}
	}
	return ""
}

// testLog is a log that tests can read while it is written.
type testLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *testLog) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
