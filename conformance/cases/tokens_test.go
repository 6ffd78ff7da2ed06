package cases

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
)

// The authorization server of the cases. Its tokens are put together by hand: what makes
// good ones would refuse to make the bad ones.
const (
	issuer   = "https://idp.example.com"
	audience = "https://mcp.example.com/mcp"
	// otherIssuer is trusted by few servers. NAME@other-issuer are its users.
	otherIssuer = "https://other-issuer.example.com"
)

// signer is an RSA key; the cases call the issuer's k1.
type signer struct {
	id  string
	key *rsa.PrivateKey
}

func newSigner(id string) *signer {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return &signer{id, key}
}

var (
	k1       = sync.OnceValue(func() *signer { return newSigner("k1") })
	k2       = sync.OnceValue(func() *signer { return newSigner("k2") })
	stranger = sync.OnceValue(func() *signer { return newSigner("k1") }) // which calls its key the same
)

// jwk is the public key as a key set has it.
func (s *signer) jwk() map[string]any {
	return map[string]any{"kty": "RSA", "kid": s.id, "use": "sig", "alg": "RS256",
		"n": base64.RawURLEncoding.EncodeToString(s.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(s.key.E)).Bytes())}
}

// pem is the public key as the text that an HMAC can be made with.
func (s *signer) pem() []byte {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func (s *signer) sign(text []byte) []byte {
	digest := sha256.Sum256(text)
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	return signature
}

// hmacWith signs as HS256 does.
func hmacWith(key []byte) func([]byte) []byte {
	return func(text []byte) []byte {
		m := hmac.New(sha256.New, key)
		m.Write(text)
		return m.Sum(nil)
	}
}

func unsigned([]byte) []byte { return nil }

// token is a JWS of a header and claims, both JSON.
func jws(header, claims []byte, sign func([]byte) []byte) string {
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(text)))
}

const goodHeader = `{"alg":"RS256","typ":"at+jwt","kid":"k1"}`

// claimsOf are the claims of a good token of a user but for aud, as an object's members.
func claimsOf(user string) string {
	now := time.Now().Unix()
	iss, subject := issuer, user
	if name, elsewhere := strings.CutSuffix(user, "@other-issuer"); elsewhere {
		iss, subject = otherIssuer, name
	}
	return fmt.Sprintf(`"iss":%q,"sub":%q,"client_id":"cases","scope":%q,"iat":%d,"exp":%d`, iss, subject, scopesOf[user], now, now+3600)
}

// scopesOf are the users. Nobody else has tokens.
var scopesOf = map[string]string{"alice": "files:read files:write", "admin": "admin files:read", "guest": "", "bob": "", "alice@other-issuer": ""}

var goodTokens = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for user := range scopesOf {
		all[user] = jws([]byte(goodHeader), []byte(`{`+claimsOf(user)+`,"aud":"`+audience+`"}`), k1().sign)
	}
	return all
})

// goodToken is a token of a user that an identifying server takes.
func goodToken(user string) string {
	token, ok := goodTokens()[user]
	if !ok {
		panic("nobody is called " + user)
	}
	return token
}

// keySet publishes keys on loopback and makes the scheme of the tokens of an issuer that
// they verify. No request may leave for anywhere else.
func keySet(t *testing.T, issuer string, keys ...*signer) auth.Scheme {
	t.Helper()
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	for _, k := range keys {
		set.Keys = append(set.Keys, k.jwk())
	}
	body, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	scheme, err := auth.JWT(auth.JWTOptions{
		Issuer: issuer, Audiences: []string{audience}, JWKSURL: server.URL,
		Client: &http.Client{Transport: onlyTo{t, strings.TrimPrefix(server.URL, "http://")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// fromElsewhere is a scheme of another issuer's tokens: it has no opinion on others.
type fromElsewhere struct{ auth.Scheme }

// Authenticate implements auth.Scheme.
func (f fromElsewhere) Authenticate(r *http.Request) (thaw.Principal, bool, error) {
	if _, claims, ok := strings.Cut(r.Header.Get("Authorization"), "."); ok {
		claims, _, _ = strings.Cut(claims, ".")
		if text, err := base64.RawURLEncoding.DecodeString(claims); err == nil && unquoted(at(text, "iss")) == otherIssuer {
			return f.Scheme.Authenticate(r)
		}
	}
	return thaw.Principal{}, false, nil
}

// onlyTo is a transport to one host.
type onlyTo struct {
	t    *testing.T
	host string
}

func (o onlyTo) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != o.host {
		o.t.Errorf("a request leaves for %s", r.URL.Host)
		return nil, fmt.Errorf("no way to %s", r.URL.Host)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// credentials are what an exchange may have sent and nobody may repeat.
func (x *exchange) credentials() []string {
	var all []string
	for _, token := range goodTokens() {
		all = append(all, token)
	}
	for _, h := range x.headers {
		if !strings.EqualFold(h.name, "Authorization") {
			continue
		}
		for part := range strings.FieldsSeq(strings.ReplaceAll(h.value, ",", " ")) {
			if len(part) > len("Bearer") {
				all = append(all, part)
			}
		}
	}
	return all
}
