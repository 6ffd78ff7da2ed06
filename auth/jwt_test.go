package auth

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw"
)

// Over a real TLS connection, each kind of key verifies its algorithms.
func TestJWTOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(jwksOf(jwk("k1", rsaKey().Public(), nil), jwk("e1", p256Key().Public(), nil), jwk("e3", p384Key().Public(), nil), jwk("d1", ed25519Key().Public(), nil))))
	}))
	defer server.Close()
	s := newTestJWT(t, nil, func(o *JWTOptions) {
		o.JWKSURL, o.Client = server.URL, server.Client()
		o.Algorithms = algorithmNames()
	})
	for _, test := range []struct {
		alg, kid string
		key      any
		fails    error
	}{
		{"RS256", "k1", rsaKey(), nil},
		{"RS384", "k1", rsaKey(), nil},
		{"RS512", "k1", rsaKey(), nil},
		{"PS256", "k1", rsaKey(), nil},
		{"PS384", "k1", rsaKey(), nil},
		{"PS512", "k1", rsaKey(), nil},
		{"ES256", "e1", p256Key(), nil},
		{"ES384", "e3", p384Key(), nil},
		{"EdDSA", "d1", ed25519Key(), nil},
		{"RS256", "e1", rsaKey(), errKey},
		{"ES256", "k1", p256Key(), errKey},
		{"ES384", "e1", p384Key(), errKey},
		{"EdDSA", "k1", ed25519Key(), errKey},
		{"RS256", "k1", evilKey(), errSignature},
	} {
		t.Run(fmt.Sprint(test.alg, " by ", test.kid), func(t *testing.T) {
			token := sign(t, jwt.GetSigningMethod(test.alg), test.key, goodHeader(map[string]any{"alg": test.alg, "kid": test.kid}), goodClaims(nil))
			if _, err := authenticate(t, s, token); !errors.Is(err, test.fails) {
				t.Errorf("error %v, want %v", err, test.fails)
			}
		})
	}
}

// B-51: the audience is a string or a list, and compared byte by byte.
func TestAudience(t *testing.T) {
	s := newTestJWT(t, &provider{jwks: usualKeys()}, nil)
	for _, test := range []struct {
		aud any
		ok  bool
	}{
		{testAudience, true},
		{[]any{testAudience}, true},
		{[]any{testAudience, "https://idp.example.com/userinfo"}, true},
		{[]any{"https://other.example.com"}, false},
		{[]any{}, false},
		{"", false},
		{absent, false},
		{nil, false},
		{7, false},
		{[]any{testAudience, 7}, false},
		{testAudience + "/", false},
		{"HTTPS://MCP.EXAMPLE.COM/mcp", false},
		{[]any{""}, false},
		{[]any{[]any{testAudience}}, false},
		{map[string]any{"0": testAudience}, false},
		{true, false},
		{"[" + testAudience + "]", false},
		{testAudience + " " + testAudience, false},
	} {
		t.Run(fmt.Sprint(test.aud), func(t *testing.T) {
			if _, err := authenticate(t, s, goodToken(t, map[string]any{"aud": test.aud})); (err == nil) != test.ok || errors.Is(err, ErrUnavailable) {
				t.Errorf("error %v, want ok %t", err, test.ok)
			}
		})
	}
}

// B-52: no way round the signature; keys come from the configured JWKS alone.
func TestSignature(t *testing.T) {
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(rsaKey().Public()))})
	hs256 := func(header map[string]any, secret []byte) string {
		return sign(t, jwt.SigningMethodHS256, secret, goodHeader(header), goodClaims(nil))
	}
	rs256 := func(key any, header, claims any) string {
		return sign(t, jwt.SigningMethodRS256, key, header, claims)
	}
	unsigned := func(header any) string {
		return sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, header, goodClaims(nil))
	}
	good := goodToken(t, nil)
	cut := strings.LastIndexByte(good, '.') + 1
	tests := []struct {
		name  string
		token string
		err   error
	}{
		{"alg none", unsigned(map[string]any{"alg": "none"}), errAlgorithm},
		{"alg NoNe", unsigned(map[string]any{"alg": "NoNe"}), errAlgorithm},
		{"alg NONE", unsigned(map[string]any{"alg": "NONE", "kid": "k1"}), errAlgorithm},
		{"alg none with a space", unsigned(map[string]any{"alg": "none "}), errAlgorithm},
		{"alg empty", unsigned(map[string]any{"alg": ""}), errAlgorithm},
		{"alg null", unsigned(map[string]any{"alg": nil}), ErrMalformed},
		{"no alg", unsigned(map[string]any{}), errAlgorithm},
		{"alg a list", rs256(rsaKey(), map[string]any{"alg": []any{"RS256"}, "kid": "k1"}, goodClaims(nil)), ErrMalformed},
		{"alg in other letters", rs256(rsaKey(), map[string]any{"ALG": "RS256", "kid": "k1"}, goodClaims(nil)), errAlgorithm},
		{"alg rs256", rs256(rsaKey(), goodHeader(map[string]any{"alg": "rs256"}), goodClaims(nil)), errAlgorithm},
		{"alg not configured", sign(t, jwt.SigningMethodRS512, rsaKey(), goodHeader(map[string]any{"alg": "RS512"}), goodClaims(nil)), errAlgorithm},
		{"two algs", rs256(rsaKey(), `{"alg":"RS256","alg":"none","kid":"k1"}`, goodClaims(nil)), ErrMalformed},
		{"HMAC with the public key", hs256(map[string]any{"alg": "HS256"}, publicPEM), errAlgorithm},
		{"HMAC with the modulus", hs256(map[string]any{"alg": "HS256"}, rsaKey().N.Bytes()), errAlgorithm},
		{"HMAC with an empty key", hs256(map[string]any{"alg": "HS256"}, []byte{}), errAlgorithm},
		{"HMAC that calls itself RS256", hs256(nil, publicPEM), errSignature},
		{"jwk", rs256(evilKey(), goodHeader(map[string]any{"jwk": jwk("k1", evilKey().Public(), nil)}), goodClaims(nil)), errSignature},
		{"jku", rs256(evilKey(), goodHeader(map[string]any{"jku": "https://evil.example/jwks"}), goodClaims(nil)), errSignature},
		{"x5u", rs256(evilKey(), goodHeader(map[string]any{"x5u": "https://evil.example/cert"}), goodClaims(nil)), errSignature},
		{"x5c", rs256(evilKey(), goodHeader(map[string]any{"x5c": []any{"MIIB"}}), goodClaims(nil)), errSignature},
		{"jku beside a good signature", rs256(rsaKey(), goodHeader(map[string]any{"jku": "https://evil.example/jwks", "jwk": 1, "x5u": nil}), goodClaims(nil)), nil},
		{"unknown crit", rs256(rsaKey(), goodHeader(map[string]any{"crit": []any{"exp2"}, "exp2": 1}), goodClaims(nil)), errCritical},
		{"known crit", rs256(rsaKey(), goodHeader(map[string]any{"crit": []any{"alg"}}), goodClaims(nil)), errCritical},
		{"empty crit", rs256(rsaKey(), goodHeader(map[string]any{"crit": []any{}}), goodClaims(nil)), errCritical},
		{"unencoded payload", rs256(rsaKey(), goodHeader(map[string]any{"b64": false, "crit": []any{"b64"}}), goodClaims(nil)), errCritical},
		{"no kid, several kinds of key", rs256(rsaKey(), goodHeader(map[string]any{"kid": absent}), goodClaims(nil)), nil},
		{"no exp", goodToken(t, map[string]any{"exp": absent}), jwt.ErrTokenRequiredClaimMissing},
		{"kid of another's path", rs256(evilKey(), goodHeader(map[string]any{"kid": "../../../../etc/passwd"}), goodClaims(nil)), errKey},
		{"kid of SQL", rs256(evilKey(), goodHeader(map[string]any{"kid": "k1' OR '1'='1"}), goodClaims(nil)), errKey},
		{"kid with NUL", rs256(rsaKey(), goodHeader(map[string]any{"kid": "k1\x00"}), goodClaims(nil)), errKey},
		{"kid of 4 kB", rs256(rsaKey(), goodHeader(map[string]any{"kid": strings.Repeat("k", 4_000)}), goodClaims(nil)), errKey},
		{"kid of 10 kB", rs256(rsaKey(), goodHeader(map[string]any{"kid": strings.Repeat("k", 10_000)}), goodClaims(nil)), ErrMalformed},
		{"kid in other letters", rs256(rsaKey(), goodHeader(map[string]any{"kid": "K1"}), goodClaims(nil)), errKey},
		{"kid null", rs256(rsaKey(), goodHeader(map[string]any{"kid": nil}), goodClaims(nil)), ErrMalformed},
		{"kid a number", rs256(rsaKey(), goodHeader(map[string]any{"kid": 1}), goodClaims(nil)), ErrMalformed},
		{"no signature", good[:cut], errSignature},
		{"signature of another token", good[:cut] + goodToken(t, map[string]any{"sub": "bob"})[len(goodToken(t, map[string]any{"sub": "bob"}))-342:], errSignature},
		{"half a signature", good[:cut+100], errSignature},
		{"claims changed", strings.Replace(good, ".", ".e30", 1), ErrMalformed},
		{"two parts", good[:cut-1], ErrMalformed},
		{"four parts", good + ".e30", ErrMalformed},
		{"five parts, as encryption has", "eyJhbGciOiJkaXIifQ.a.b.c.d", ErrMalformed},
		{"empty parts", "..", ErrMalformed},
		{"header no JSON", "e3." + good[strings.IndexByte(good, '.')+1:], ErrMalformed},
		{"header a list", rs256(rsaKey(), `["RS256"]`, goodClaims(nil)), ErrMalformed},
		{"header with text behind", rs256(rsaKey(), `{"alg":"RS256","kid":"k1"}{}`, goodClaims(nil)), ErrMalformed},
		{"header nested deeply", rs256(rsaKey(), `{"alg":"RS256","kid":"k1","x":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`}`, goodClaims(nil)), ErrMalformed},
	}
	// The last character of an RSA-2048 signature has bits to spare; another spelling of the
	// same bytes is another token.
	respelled := good[:len(good)-1] + string(base64Neighbour(good[len(good)-1]))
	tests = append(tests, struct {
		name  string
		token string
		err   error
	}{"signature in another spelling", respelled, ErrMalformed})

	p := &provider{jwks: usualKeys()}
	s := newTestJWT(t, p, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := authenticate(t, s, test.token); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
		})
	}
	p.set(func(p *provider) {
		for _, url := range p.fetched {
			if url != testJWKS {
				t.Errorf("a request went to %s", url)
			}
		}
	})
}

// base64Neighbour is the next character of the alphabet: in the last place it differs in bits
// that mean nothing.
func base64Neighbour(c byte) byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return alphabet[strings.IndexByte(alphabet, c)|1]
}

// Tokens of another purpose, and claims that other readers take for something else.
func TestClaims(t *testing.T) {
	now := epoch.Unix()
	tests := []struct {
		name   string
		header map[string]any
		claims any // a map laid over the good claims, or the whole text
		err    error
	}{
		{"good", nil, nil, nil},
		{"typ absent", map[string]any{"typ": absent}, nil, nil},
		{"typ JWT", map[string]any{"typ": "JWT"}, nil, nil},
		{"typ jwt", map[string]any{"typ": "jwt"}, nil, nil},
		{"typ application/at+jwt", map[string]any{"typ": "application/at+jwt"}, nil, nil},
		{"typ logout+jwt", map[string]any{"typ": "logout+jwt"}, nil, errType},
		{"typ secevent+jwt", map[string]any{"typ": "secevent+jwt"}, nil, errType},
		{"typ dpop+jwt", map[string]any{"typ": "dpop+jwt"}, nil, errType},
		{"typ application/jwt", map[string]any{"typ": "application/jwt"}, nil, errType},
		{"typ empty", map[string]any{"typ": ""}, nil, errType},
		{"typ null", map[string]any{"typ": nil}, nil, ErrMalformed},
		{"typ a list", map[string]any{"typ": []any{"JWT"}}, nil, ErrMalformed},

		{"bound to a key", nil, map[string]any{"cnf": map[string]any{"jkt": "x"}}, errBound},
		{"bound to nothing", nil, map[string]any{"cnf": nil}, errBound},
		{"ID token by nonce", nil, map[string]any{"nonce": "n"}, errNoAccess},
		{"ID token by at_hash", nil, map[string]any{"at_hash": "h"}, errNoAccess},
		{"ID token by token_use", nil, map[string]any{"token_use": "id"}, errNoAccess},
		{"token_use access", nil, map[string]any{"token_use": "access"}, nil},
		{"token_use a list", nil, map[string]any{"token_use": []any{"access"}}, errNoAccess},
		{"ID token by typ", nil, map[string]any{"typ": "ID"}, errNoAccess},
		{"refresh token", nil, map[string]any{"typ": "Refresh"}, errNoAccess},
		{"offline token", nil, map[string]any{"typ": "Offline"}, errNoAccess},
		{"typ claim Bearer", nil, map[string]any{"typ": "Bearer"}, nil},
		{"typ claim null", nil, map[string]any{"typ": nil}, errNoAccess},

		{"no sub", nil, map[string]any{"sub": absent}, errNoSubject},
		{"empty sub", nil, map[string]any{"sub": ""}, errNoSubject},
		{"sub null", nil, map[string]any{"sub": nil}, wrongType("sub")},
		{"sub a number", nil, map[string]any{"sub": 7}, wrongType("sub")},
		{"sub in other letters", nil, map[string]any{"sub": absent, "SUB": "alice", "Sub": "alice"}, errNoSubject},

		{"issuer absent", nil, map[string]any{"iss": absent}, jwt.ErrTokenRequiredClaimMissing},
		{"issuer with a slash", nil, map[string]any{"iss": testIssuer + "/"}, jwt.ErrTokenInvalidIssuer},
		{"issuer in other letters", nil, map[string]any{"iss": "https://IDP.example.com"}, jwt.ErrTokenInvalidIssuer},
		{"issuer of another", nil, map[string]any{"iss": "https://evil.example"}, jwt.ErrTokenInvalidIssuer},
		{"issuer a list", nil, map[string]any{"iss": []any{testIssuer}}, wrongType("iss")},
		{"issuer in another name", nil, map[string]any{"iss": absent, "ISS": testIssuer}, jwt.ErrTokenRequiredClaimMissing},

		{"expired within the leeway", nil, map[string]any{"exp": now - 29}, nil},
		{"expired", nil, map[string]any{"exp": now - 30}, jwt.ErrTokenExpired},
		{"exp 0", nil, map[string]any{"exp": 0}, jwt.ErrTokenExpired},
		{"exp negative", nil, map[string]any{"exp": -1}, refusal("the claim exp is no time")},
		{"exp with a fraction", nil, map[string]any{"exp": json.Number("1796040001.5")}, nil},
		{"exp in powers", nil, map[string]any{"exp": json.Number("1.7961e9")}, nil},
		{"exp beyond all time", nil, map[string]any{"exp": json.Number("1e300")}, refusal("the claim exp is no time")},
		{"exp beyond all numbers", nil, map[string]any{"exp": json.Number("1e999")}, refusal("the claim exp is no time")},
		{"exp a string", nil, map[string]any{"exp": "1796043600"}, wrongType("exp")},
		{"exp null", nil, map[string]any{"exp": nil}, wrongType("exp")},
		{"exp a list", nil, map[string]any{"exp": []any{now + 60}}, wrongType("exp")},
		{"exp in other letters", nil, map[string]any{"exp": absent, "EXP": now + 60}, jwt.ErrTokenRequiredClaimMissing},
		{"not yet within the leeway", nil, map[string]any{"nbf": now + 30}, nil},
		{"not yet", nil, map[string]any{"nbf": now + 31}, jwt.ErrTokenNotValidYet},
		{"nbf a string", nil, map[string]any{"nbf": "0"}, wrongType("nbf")},
		{"iat a string", nil, map[string]any{"iat": "0"}, wrongType("iat")},

		{"jti a number", nil, map[string]any{"jti": 7}, wrongType("jti")},
		{"scope a number", nil, map[string]any{"scope": 7}, wrongType("scope")},
		{"scope null", nil, map[string]any{"scope": nil}, wrongType("scope")},
		{"scope a mixed list", nil, map[string]any{"scope": []any{"a", 1}}, wrongType("scope")},
		{"scp an object", nil, map[string]any{"scp": map[string]any{}}, wrongType("scp")},
		{"client_id a number", nil, map[string]any{"client_id": 7}, wrongType("client_id")},

		{"duplicate sub", nil, `{"iss":"` + testIssuer + `","aud":"` + testAudience + `","exp":1796043600,"sub":"mallory","sub":"alice"}`, ErrMalformed},
		{"duplicate sub by escape", nil, `{"iss":"` + testIssuer + `","aud":"` + testAudience + `","exp":1796043600,"sub":"mallory","\u0073ub":"alice"}`, ErrMalformed},
		{"duplicate deep inside", nil, `{"iss":"` + testIssuer + `","aud":"` + testAudience + `","exp":1796043600,"sub":"alice","x":{"a":1,"a":2}}`, ErrMalformed},
		{"invalid UTF-8", nil, `{"iss":"` + testIssuer + `","aud":"` + testAudience + `","exp":1796043600,"sub":"alice` + "\xff" + `"}`, ErrMalformed},
		{"lone surrogate", nil, `{"iss":"` + testIssuer + `","aud":"` + testAudience + `","exp":1796043600,"sub":"alice\ud800"}`, ErrMalformed},
		{"text behind", nil, `{"sub":"alice"} {}`, ErrMalformed},
		{"a list", nil, `[{"sub":"alice"}]`, ErrMalformed},
		{"null", nil, `null`, ErrMalformed},
		{"nothing", nil, ``, ErrMalformed},
		{"nested deeply", nil, map[string]any{"x": json.RawMessage(strings.Repeat("[", 500) + strings.Repeat("]", 500))}, ErrMalformed},
		{"nested within bounds", nil, map[string]any{"x": json.RawMessage(strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1))}, nil},
	}
	s := newTestJWT(t, &provider{jwks: usualKeys()}, nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			claims := test.claims
			if over, ok := claims.(map[string]any); ok || claims == nil {
				claims = goodClaims(over)
			}
			token := sign(t, jwt.SigningMethodRS256, rsaKey(), goodHeader(test.header), claims)
			for _, when := range []string{"first", "again"} { // a token whose signature is remembered is judged all the same
				if _, err := authenticate(t, s, token); !errors.Is(err, test.err) {
					t.Errorf("%s: error %v, want %v", when, err, test.err)
				}
			}
		})
	}
}

func TestPrincipalOfJWT(t *testing.T) {
	tests := []struct {
		name   string
		tenant string
		claims map[string]any
		want   thaw.Principal // Scheme, Issuer and Claims filled in
		err    error
	}{
		{"plain", "", nil, thaw.Principal{Subject: "alice"}, nil},
		{"scope", "", map[string]any{"scope": "files:read  files:write "}, thaw.Principal{Subject: "alice", Scopes: []string{"files:read", "files:write"}}, nil},
		{"scope splits at spaces alone", "", map[string]any{"scope": "a\tb\u00a0c"}, thaw.Principal{Subject: "alice", Scopes: []string{"a\tb\u00a0c"}}, nil},
		{"scope as a list", "", map[string]any{"scope": []any{"a", "b c"}}, thaw.Principal{Subject: "alice", Scopes: []string{"a", "b c"}}, nil},
		{"scp", "", map[string]any{"scp": []any{"a", "b"}}, thaw.Principal{Subject: "alice", Scopes: []string{"a", "b"}}, nil},
		{"scope before scp", "", map[string]any{"scope": "", "scp": "admin"}, thaw.Principal{Subject: "alice", Scopes: []string{}}, nil},
		{"brackets are no list here", "", map[string]any{"scope": "[a b]"}, thaw.Principal{Subject: "alice", Scopes: []string{"[a", "b]"}}, nil},
		{"client_id first", "", map[string]any{"client_id": "c", "azp": "z", "appid": 1, "cid": 2}, thaw.Principal{Subject: "alice", Client: "c"}, nil},
		{"azp", "", map[string]any{"azp": "z", "appid": "a"}, thaw.Principal{Subject: "alice", Client: "z"}, nil},
		{"appid", "", map[string]any{"client_id": "", "appid": "a", "cid": "i"}, thaw.Principal{Subject: "alice", Client: "a"}, nil},
		{"cid", "", map[string]any{"cid": "i"}, thaw.Principal{Subject: "alice", Client: "i"}, nil},
		{"tenant", "https://example.com/org", map[string]any{"https://example.com/org": "acme"}, thaw.Principal{Subject: "alice", Tenant: "acme"}, nil},
		{"tenant missing", "org", nil, thaw.Principal{}, errNoTenant},
		{"tenant empty", "org", map[string]any{"org": ""}, thaw.Principal{}, errNoTenant},
		{"tenant a number", "org", map[string]any{"org": 7}, thaw.Principal{}, wrongType("org")},
		{"tenant in other letters", "org", map[string]any{"ORG": "acme"}, thaw.Principal{}, errNoTenant},
		{"numbers keep their digits", "", map[string]any{"n": json.Number("9007199254740993"), "o": map[string]any{"a": []any{true, nil, "x", json.Number("1.50")}}}, thaw.Principal{Subject: "alice"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newTestJWT(t, &provider{jwks: usualKeys()}, func(o *JWTOptions) { o.TenantClaim = test.tenant })
			got, err := authenticate(t, s, goodToken(t, test.claims))
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if test.err != nil {
				return
			}
			test.want.Scheme, test.want.Issuer = "jwt", testIssuer
			test.want.Claims = goodClaims(test.claims)
			for name, value := range test.want.Claims {
				if n, ok := value.(int64); ok {
					test.want.Claims[name] = json.Number(fmt.Sprint(n))
				}
				if n, ok := value.(int); ok {
					test.want.Claims[name] = json.Number(fmt.Sprint(n))
				}
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("principal %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// What one request does to its principal, the next does not see.
func TestPrincipalsAreSeparate(t *testing.T) {
	s := newTestJWT(t, &provider{jwks: usualKeys()}, nil)
	token := goodToken(t, map[string]any{"scope": "a", "roles": []any{"r"}})
	first, err := authenticate(t, s, token)
	if err != nil {
		t.Fatal(err)
	}
	first.Scopes[0] = "admin"
	first.Claims["sub"] = "mallory"
	first.Claims["roles"].([]any)[0] = "admin"
	second, err := authenticate(t, s, token)
	if err != nil || second.Scopes[0] != "a" || second.Claims["sub"] != "alice" || second.Claims["roles"].([]any)[0] != "r" {
		t.Errorf("principal %+v, %v", second, err)
	}
}

// A remembered signature does not outlive the token's times.
func TestRememberedTokenExpires(t *testing.T) {
	now := epoch
	s := newTestJWT(t, &provider{jwks: usualKeys()}, func(o *JWTOptions) { o.Now = func() time.Time { return now } })
	token := goodToken(t, map[string]any{"exp": epoch.Add(10 * time.Second).Unix()})
	for _, step := range []struct {
		after time.Duration
		err   error
	}{{0, nil}, {39 * time.Second, nil}, {40 * time.Second, jwt.ErrTokenExpired}} {
		now = epoch.Add(step.after)
		if _, err := authenticate(t, s, token); !errors.Is(err, step.err) {
			t.Errorf("after %v: error %v, want %v", step.after, err, step.err)
		}
	}
}
