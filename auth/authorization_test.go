package auth

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// B-54: one credential, the scheme in any spelling, and never a token from the query.
func TestAuthorization(t *testing.T) {
	var log testLog
	p := &provider{jwks: usualKeys()}
	s := newTestJWT(t, p, func(o *JWTOptions) { o.Logger = log.logger() })
	jwt1, jwt2 := goodToken(t, nil), goodToken(t, map[string]any{"sub": "bob"})
	tests := []struct {
		name  string
		lines []string
		ok    bool
		err   error // nil and not ok: nobody, which the server answers with 401
	}{
		{"usual", []string{"Bearer " + jwt1}, true, nil},
		{"lower case", []string{"bearer " + jwt1}, true, nil},
		{"upper case", []string{"BEARER " + jwt1}, true, nil},
		{"several spaces", []string{"Bearer   " + jwt1}, true, nil},
		{"trailing space", []string{"Bearer " + jwt1 + " "}, true, nil},
		{"white space around", []string{" \tBearer " + jwt1 + "\t "}, true, nil},
		{"no token", []string{"Bearer"}, false, ErrMalformed},
		{"no token but a space", []string{"Bearer "}, false, ErrMalformed},
		{"no scheme", []string{jwt1}, false, nil},
		{"other scheme", []string{"Basic dXNlcjpw"}, false, nil},
		{"DPoP", []string{"DPoP " + jwt1}, false, nil},
		{"empty", []string{""}, false, nil},
		{"tab for space", []string{"Bearer\t" + jwt1}, false, nil},
		{"missing", nil, false, nil},
		{"two in one line", []string{"Bearer " + jwt1 + ", Bearer " + jwt2}, false, ErrMalformed},
		{"two joined by a gateway", []string{"Bearer " + jwt1 + ",Bearer " + jwt2}, false, ErrMalformed},
		{"two lines", []string{"Bearer " + jwt1, "Bearer " + jwt2}, false, ErrMalformed},
		{"two equal lines", []string{"Bearer " + jwt1, "Bearer " + jwt1}, false, ErrMalformed},
		{"two lines, one of another scheme", []string{"Basic dXNlcjpw", "Bearer " + jwt1}, false, ErrMalformed},
		{"two tokens", []string{"Bearer " + jwt1 + " " + jwt2}, false, ErrMalformed},
		{"quoted", []string{`Bearer "` + jwt1 + `"`}, false, ErrMalformed},
		{"padding", []string{"Bearer " + jwt1 + "="}, false, ErrMalformed},
		{"NUL", []string{"Bearer " + jwt1 + "\x00"}, false, ErrMalformed},
		{"beyond ASCII", []string{"Bearer " + jwt1 + "\u00e9"}, false, ErrMalformed},
		{"newline in the signature", []string{"Bearer " + jwt1[:len(jwt1)-4] + "\n" + jwt1[len(jwt1)-4:]}, false, ErrMalformed},
		{"longer than 8 KiB", []string{"Bearer " + strings.Repeat("a", maxToken+1)}, false, ErrMalformed},
		{"huge", []string{"Bearer " + strings.Repeat("a", 1<<20)}, false, ErrMalformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := requestWith(t, test.lines...)
			r.URL.RawQuery = "access_token=" + jwt2
			r.Body = unread{t}
			who, ok, err := s.Authenticate(r)
			if ok != test.ok || !errors.Is(err, test.err) {
				t.Fatalf("Authenticate = %t, %v; want %t, %v", ok, err, test.ok, test.err)
			}
			if ok && who.Subject != "alice" {
				t.Errorf("subject %q", who.Subject)
			}
			if err != nil && leaked(err.Error(), strings.Join(test.lines, "")) != "" {
				t.Errorf("error %q repeats the token", err)
			}
		})
	}
	t.Run("HTTP/2 spelling", func(t *testing.T) {
		r := requestWith(t)
		r.Header.Set("authorization", "Bearer "+jwt1)
		if _, ok, err := s.Authenticate(r); !ok || err != nil {
			t.Errorf("Authenticate = %t, %v", ok, err)
		}
	})
	if part := leaked(log.String(), jwt1) + leaked(log.String(), jwt2); part != "" {
		t.Errorf("the log has %q of a token", part)
	}
}

// The prefix decides the scheme, whatever the order in which they are asked.
func TestPrefixDecides(t *testing.T) {
	key, line := must2(NewAPIKey("ci", nil))
	keys := newTestKeys(t, line, nil)
	tokens := newTestJWT(t, &provider{jwks: usualKeys()}, nil)
	if _, ok, err := tokens.Authenticate(requestWith(t, "Bearer "+key)); ok || err != nil {
		t.Errorf("JWT of an API key = %t, %v", ok, err)
	}
	if _, ok, err := keys.Authenticate(requestWith(t, "Bearer "+goodToken(t, nil))); ok || err != nil {
		t.Errorf("APIKeys of a JWT = %t, %v", ok, err)
	}
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body was read")
	return 0, io.EOF
}

func (unread) Close() error { return nil }

var oneBearer = regexp.MustCompile(`^[ \t]*(?i:bearer) +([A-Za-z0-9._-]+)[ \t]*$`)

// FuzzAuthorization: the parser takes what the expression takes, and no more.
func FuzzAuthorization(f *testing.F) {
	for _, line := range []string{"", "Bearer", "Bearer a.b.c", "bEARER  thaw_x ", "Bearer a, Bearer b", "Basic x", "Bearer\ta", "Bearer a\nb", "\tBearer -._ \t", "Bearer \ta"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		token, ok, err := bearer(http.Header{"Authorization": {line}})
		match := oneBearer.FindStringSubmatch(line)
		if match != nil && len(match[1]) > maxToken {
			match = nil
		}
		if ok != (match != nil) || ok && (err != nil || token != match[1]) {
			t.Errorf("bearer(%q) = %q, %t, %v", line, token, ok, err)
		}
		if !ok && token != "" || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("bearer(%q) = %q, %v", line, token, err)
		}
		if _, ok, err := bearer(http.Header{"Authorization": {line, line}}); ok || !errors.Is(err, ErrMalformed) {
			t.Errorf("two lines: %t, %v", ok, err)
		}
	})
}
