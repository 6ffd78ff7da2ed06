package auth

import (
	"crypto/ed25519"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw"
)

// FuzzToken: no text passes but the one token that was signed.
func FuzzToken(f *testing.F) {
	good := sign(f, jwt.SigningMethodEdDSA, ed25519Key(), goodHeader(map[string]any{"alg": "EdDSA", "kid": "d1"}), goodClaims(nil))
	for _, text := range []string{
		good, good + ".", good + "A", strings.ToLower(good), "..", "e30.e30.", strings.Replace(good, ".", "..", 1),
		sign(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, map[string]any{"alg": "none"}, goodClaims(nil)),
		sign(f, jwt.SigningMethodHS256, []byte(ed25519Key().Public().(ed25519.PublicKey)), goodHeader(map[string]any{"alg": "HS256", "kid": "d1"}), goodClaims(nil)),
		sign(f, jwt.SigningMethodEdDSA, ed25519Key(), goodHeader(map[string]any{"alg": "EdDSA", "kid": "d1", "crit": []any{"x"}}), goodClaims(nil)),
	} {
		f.Add(text)
	}
	s := newTestJWT(f, &provider{jwks: jwksOf(jwk("d1", ed25519Key().Public(), nil))}, nil).(*jwtScheme)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := s.verify(t.Context(), text)
		if (err == nil) != (text == good) {
			t.Errorf("%q: claims %v, error %v", text, c.members, err)
		}
		if err != nil && leaked(err.Error(), text) != "" {
			t.Errorf("error %q repeats %q", err, text)
		}
	})
}

// FuzzClaims: whatever the claims of a signed token, the answer is a whole principal of theirs or
// a refusal, and it depends on nothing but the exact names.
func FuzzClaims(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `[]`, `{"iss":"https://idp.example.com","sub":"alice","aud":"https://mcp.example.com/mcp","exp":1796043600}`,
		`{"iss":"https://idp.example.com","sub":"a","SUB":"b","aud":["https://mcp.example.com/mcp",7],"exp":1.7961e9,"scope":["a"],"scp":"b"}`,
		`{"iss":"https://idp.example.com","sub":"a","aud":["https://mcp.example.com/mcp"],"exp":1796043600,"scope":"a b","client_id":"c","nbf":0,"iat":1e3}`,
		`{"sub":"a","sub":"b"}`, `{"sub":"\ud800"}`, `{"exp":1e999}`, `{"a":[[[[[[]]]]]]}`,
	} {
		f.Add([]byte(text))
	}
	policy := newPolicy(testIssuer, []string{testAudience}, "", jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(func() time.Time { return epoch }))
	f.Fuzz(func(t *testing.T, text []byte) {
		object, err := checkObject(text)
		if err != nil {
			return
		}
		var reference map[string]json.RawMessage // exact names too, since it is a map
		if err := json.Unmarshal(object, &reference); err != nil {
			t.Fatalf("%q passed the check: %v", text, err)
		}
		c := readClaims(object, false)
		if len(c.members) != len(reference) {
			t.Fatalf("%d members, want %d", len(c.members), len(reference))
		}
		who, err := policy.principal(c)
		if err != nil {
			if !reflect.DeepEqual(who, thaw.Principal{}) {
				t.Errorf("principal %+v with error %v", who, err)
			}
			return
		}
		var sub, iss string
		if json.Unmarshal(reference["sub"], &sub) != nil || json.Unmarshal(reference["iss"], &iss) != nil || who.Subject != sub || sub == "" || who.Issuer != testIssuer || iss != testIssuer {
			t.Errorf("principal %+v of %q", who, text)
		}
		for _, refused := range []string{"cnf", "nonce", "at_hash"} {
			if _, ok := reference[refused]; ok {
				t.Errorf("%q passed with %s", text, refused)
			}
		}
		again := readClaims(object, false).members
		if !maps.EqualFunc(who.Claims, again, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("claims %v, want %v", who.Claims, again)
		}
	})
}
