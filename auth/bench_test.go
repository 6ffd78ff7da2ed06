package auth

import (
	"fmt"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// BenchmarkJWT is a whole Authenticate of a token of usual size: seen before, and never seen.
func BenchmarkJWT(b *testing.B) {
	claims := goodClaims(map[string]any{
		"aud": []any{testAudience, testIssuer + "/userinfo"}, "nbf": epoch.Unix(), "jti": "0b6d2c1f-1f0a-4d1a-9a53-1b2f9f6c0d11",
		"scope": "openid profile files:read files:write", "client_id": "https://client.example/cimd.json", "org": "acme", "roles": []any{"a", "b", "c"},
	})
	for _, signer := range []struct {
		alg, kid string
		key      any
	}{{"RS256", "k1", rsaKey()}, {"ES256", "e1", p256Key()}, {"EdDSA", "d1", ed25519Key()}} {
		token := sign(b, jwt.GetSigningMethod(signer.alg), signer.key, goodHeader(map[string]any{"alg": signer.alg, "kid": signer.kid}), claims)
		for _, seen := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/seen=%t", signer.alg, seen), func(b *testing.B) {
				s := newTestJWT(b, &provider{jwks: usualKeys()}, nil).(*jwtScheme)
				r := requestWith(b, "Bearer "+token)
				if _, ok, err := s.Authenticate(r); !ok {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if !seen {
						clear(s.keys.keys.byID[signer.kid][0].verified.until)
					}
					if _, ok, err := s.Authenticate(r); !ok {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkAPIKey(b *testing.B) {
	key, line := must2(NewAPIKey("ci", []string{"files:read"}))
	s := newTestKeys(b, line, nil)
	r := requestWith(b, "Bearer "+key)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, err := s.Authenticate(r); !ok {
			b.Fatal(err)
		}
	}
}
