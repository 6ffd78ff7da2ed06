package auth

import (
	"strings"
	"testing"
)

func TestJWTOptions(t *testing.T) {
	good := JWTOptions{Issuer: testIssuer, Audiences: []string{testAudience}, JWKSURL: testJWKS}
	tests := []struct {
		name   string
		change func(*JWTOptions)
		says   string // "" if it is good
	}{
		{"good", func(*JWTOptions) {}, ""},
		{"loopback", func(o *JWTOptions) { o.JWKSURL = "http://127.0.0.1:8080/jwks" }, ""},
		{"loopback by name", func(o *JWTOptions) { o.JWKSURL = "http://localhost/jwks" }, ""},
		{"IPv6 loopback", func(o *JWTOptions) { o.JWKSURL = "http://[::1]:1/jwks" }, ""},
		{"no issuer", func(o *JWTOptions) { o.Issuer = "" }, "Issuer"},
		{"issuer with a space", func(o *JWTOptions) { o.Issuer = testIssuer + " " }, "Issuer"},
		{"no audience", func(o *JWTOptions) { o.Audiences = nil }, "Audiences"},
		{"empty audience", func(o *JWTOptions) { o.Audiences = []string{testAudience, ""} }, "Audiences"},
		{"audience with a space", func(o *JWTOptions) { o.Audiences = []string{"a b"} }, "Audiences"},
		{"no URL", func(o *JWTOptions) { o.JWKSURL = "" }, "JWKSURL is no absolute URL"},
		{"relative URL", func(o *JWTOptions) { o.JWKSURL = "/jwks" }, "JWKSURL is no absolute URL"},
		{"http", func(o *JWTOptions) { o.JWKSURL = "http://idp.example.com/jwks" }, "JWKSURL must be https"},
		{"loopback in front", func(o *JWTOptions) { o.JWKSURL = "http://localhost.evil.example/jwks" }, "JWKSURL must be https"},
		{"file", func(o *JWTOptions) { o.JWKSURL = "file://localhost/etc/passwd" }, "JWKSURL must be https"},
		{"credentials in the URL", func(o *JWTOptions) { o.JWKSURL = "https://user:hunter2@idp.example.com/jwks" }, "JWKSURL has credentials"},
		{"fragment", func(o *JWTOptions) { o.JWKSURL = testJWKS + "#k" }, "fragment"},
		{"none", func(o *JWTOptions) { o.Algorithms = []string{"RS256", "none"} }, `Algorithms has "none"; allowed are ES256, ES384`},
		{"symmetric", func(o *JWTOptions) { o.Algorithms = []string{"HS256"} }, `Algorithms has "HS256"`},
		{"algorithm in other letters", func(o *JWTOptions) { o.Algorithms = []string{"rs256"} }, `Algorithms has "rs256"`},
		{"no algorithms are the usual ones", func(o *JWTOptions) { o.Algorithms = []string{} }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := good
			test.change(&o)
			s, err := JWT(o)
			if test.says == "" {
				if err != nil || s == nil {
					t.Errorf("JWT = %v, %v", s, err)
				}
				return
			}
			if err == nil || s != nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("JWT = %v, %v; want an error with %q", s, err, test.says)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %q has the password", err)
			}
		})
	}
	t.Run("all at once", func(t *testing.T) {
		_, err := JWT(JWTOptions{Algorithms: []string{"none"}})
		for _, name := range []string{"Issuer", "Audiences", "JWKSURL", "Algorithms"} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v: want %s", err, name)
			}
		}
	})
	t.Run("later edits do nothing", func(t *testing.T) {
		audiences := []string{testAudience}
		s := newTestJWT(t, &provider{jwks: usualKeys()}, func(o *JWTOptions) { o.Audiences = audiences })
		audiences[0] = "https://other.example.com"
		if _, err := authenticate(t, s, goodToken(t, nil)); err != nil {
			t.Error(err)
		}
	})
}
