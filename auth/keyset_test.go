package auth

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// Which keys of a JWKS may verify a token: the token is good but for its key.
func TestKeySelection(t *testing.T) {
	rs := rsaKey().Public()
	long := *rsaKey()
	long.N = new(big.Int).SetBit(big.NewInt(1), maxRSA, 1)
	tests := []struct {
		name string
		jwks string
		kid  any
		err  error
	}{
		{"plain", jwksOf(jwk("k1", rs, nil)), "k1", nil},
		{"use absent", jwksOf(jwk("k1", rs, map[string]any{"use": nil})), "k1", nil},
		{"use enc", jwksOf(jwk("k1", rs, map[string]any{"use": "enc"})), "k1", errKey},
		{"use in other letters", jwksOf(jwk("k1", rs, map[string]any{"use": "SIG"})), "k1", errKey},
		{"for verifying", jwksOf(jwk("k1", rs, map[string]any{"key_ops": []any{"verify"}})), "k1", nil},
		{"for encrypting", jwksOf(jwk("k1", rs, map[string]any{"key_ops": []any{"encrypt"}})), "k1", errKey},
		{"for nothing", jwksOf(jwk("k1", rs, map[string]any{"key_ops": []any{}})), "k1", errKey},
		{"alg given", jwksOf(jwk("k1", rs, map[string]any{"alg": "RS256"})), "k1", nil},
		{"alg of another", jwksOf(jwk("k1", rs, map[string]any{"alg": "PS256"})), "k1", errKey},
		{"alg for encryption", jwksOf(jwk("k1", rs, map[string]any{"alg": "RSA-OAEP"})), "k1", errKey},
		{"a key beside that nobody knows", jwksOf(jwk("x", rs, map[string]any{"kty": "AKP", "crv": "ML-DSA-44"}), jwk("k1", rs, nil)), "k1", nil},
		{"broken keys beside", `{"keys":[7,null,[],{},{"kty":"RSA"},{"kty":"RSA","kid":1},{"kty":"oct","k":"c2VjcmV0","kid":"k1"},` + jwksOf(jwk("k1", rs, nil))[len(`{"keys":[`):], "k1", nil},
		{"one id for two kinds", jwksOf(jwk("k1", p256Key().Public(), nil), jwk("k1", rs, nil)), "k1", nil},
		{"one id for two keys of a kind", jwksOf(jwk("k1", evilKey().Public(), nil), jwk("k1", rs, nil)), "k1", nil},
		{"a secret under the id", `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"k1"}]}`, "k1", errKey},
		{"id in other letters", jwksOf(jwk("K1", rs, nil)), "k1", errKey},
		{"key without id", jwksOf(jwk("", rs, map[string]any{"kid": nil})), "k1", errKey},
		{"certificates are not read", jwksOf(jwk("k1", rs, map[string]any{"x5c": []any{"broken"}, "x5u": "https://evil.example/cert", "x5t": "x"})), "k1", nil},
		{"private half ignored", jwksOf(jwk("k1", rs, map[string]any{"d": "AQAB"})), "k1", nil},
		{"member names in other letters", strings.ReplaceAll(jwksOf(jwk("k1", rs, nil)), `"kty"`, `"KTY"`), "k1", errKey},
		{"huge RSA key", jwksOf(jwk("k1", long.Public(), nil)), "k1", errKey},
		{"huge exponent", jwksOf(jwk("k1", rs, map[string]any{"e": "AQAAAAAAAAAB"})), "k1", errKey},
		{"exponent 1", jwksOf(jwk("k1", rs, map[string]any{"e": "AQ"})), "k1", errKey},

		{"no kid, one key", jwksOf(jwk("k1", rs, nil)), absent, nil},
		{"empty kid, one key", jwksOf(jwk("k1", rs, nil)), "", nil},
		{"no kid, one key without id", jwksOf(jwk("", rs, map[string]any{"kid": nil})), absent, nil},
		{"no kid, two keys", jwksOf(jwk("k1", rs, nil), jwk("k2", evilKey().Public(), nil)), absent, errKey},
		{"no kid, two keys of one id", jwksOf(jwk("k1", rs, nil), jwk("k1", evilKey().Public(), nil)), absent, errKey},
		{"no kid, two keys, one of them for encryption", jwksOf(jwk("k1", rs, nil), jwk("k2", evilKey().Public(), map[string]any{"use": "enc"})), absent, nil},
		{"no kid, two keys, one of them for another algorithm", jwksOf(jwk("k1", rs, map[string]any{"alg": "RS256"}), jwk("k2", evilKey().Public(), map[string]any{"alg": "RS512"})), absent, nil},
		{"no kid, no key", `{"keys":[]}`, absent, errKey},
		{"no kid, no key that fits", jwksOf(jwk("e1", p256Key().Public(), nil)), absent, errKey},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := &provider{jwks: test.jwks}
			s := newTestJWT(t, p, nil)
			token := sign(t, jwt.SigningMethodRS256, rsaKey(), goodHeader(map[string]any{"kid": test.kid}), goodClaims(nil))
			if _, err := authenticate(t, s, token); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			for _, url := range p.fetched {
				if url != testJWKS {
					t.Errorf("a request went to %s", url)
				}
			}
		})
	}
}

func TestOtherKindsOfKey(t *testing.T) {
	tests := []struct {
		name, alg string
		key       any
		jwk       map[string]any
		err       error
	}{
		{"RSA of 1024 bits", "RS256", weakKey(), jwk("k1", weakKey().Public(), nil), errKey},
		{"elliptic key", "ES256", p256Key(), jwk("k1", p256Key().Public(), nil), nil},
		{"elliptic key on another curve", "ES256", p256Key(), jwk("k1", p384Key().Public(), nil), errKey},
		{"curve of another name", "ES256", p256Key(), jwk("k1", p256Key().Public(), map[string]any{"crv": "P-384"}), errKey},
		{"point off the curve", "ES256", p256Key(), jwk("k1", p256Key().Public(), map[string]any{"y": "AQAB"}), errKey},
		{"Ed25519", "EdDSA", ed25519Key(), jwk("k1", ed25519Key().Public(), nil), nil},
		{"Ed25519 by its new name", "EdDSA", ed25519Key(), jwk("k1", ed25519Key().Public(), map[string]any{"alg": "Ed25519"}), nil},
		{"X25519", "EdDSA", ed25519Key(), jwk("k1", ed25519Key().Public(), map[string]any{"crv": "X25519"}), errKey},
		{"half an Ed25519 key", "EdDSA", ed25519Key(), jwk("k1", ed25519Key().Public(), map[string]any{"x": "AQAB"}), errKey},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newTestJWT(t, &provider{jwks: jwksOf(test.jwk)}, nil)
			token := sign(t, jwt.GetSigningMethod(test.alg), test.key, goodHeader(map[string]any{"alg": test.alg}), goodClaims(nil))
			if _, err := authenticate(t, s, token); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
		})
	}
}

func FuzzKeySet(f *testing.F) {
	f.Add(usualKeys())
	for _, text := range []string{"", "{}", `{"keys":null}`, `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`, `{"keys":[{"kty":"OKP","crv":"X25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseKeySet([]byte(text))
		if err != nil {
			if s != nil {
				t.Errorf("a set with error %v", err)
			}
			return
		}
		listed := 0
		for _, keys := range s.byID {
			listed += len(keys)
		}
		if listed != len(s.all) {
			t.Errorf("%d keys by id, %d in all", listed, len(s.all))
		}
		for _, k := range s.all {
			for alg, method := range methods {
				if k.fits(alg) && method.Verify("signed", []byte("signature"), k.public) == nil {
					t.Errorf("a key of %q verifies anything", text)
				}
			}
		}
	})
}
