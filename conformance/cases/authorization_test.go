package cases

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
)

var authorization = map[string]verdict{
	"B-51": {production: production{identified: true}, scenes: []scene{{
		says:  []string{"first three: 200", `others: 401 with WWW-Authenticate error="invalid_token"`},
		items: tokenNames(1, 12),
		play:  audiences,
	}}},

	"B-52": {production: production{identified: true}, scenes: []scene{{
		says: []string{
			"all but 'no kid, one key': 401", "no kid, one key: 200 or 401, documented",
			"no request leaves for evil.example", // the transport to the key set asserts it of every token
		},
		items: tokenNames(1, 13),
		play:  waysRoundTheSignature,
	}}},

	"B-54": {production: production{identified: true}, scenes: []scene{{
		says: []string{
			"first five: 200", "others: 401 (400 allowed for two credentials)",
			"token never logged", // asserted of every exchange
		},
		items: []string{
			"Authorization: bearer $JWT", "Authorization: BEARER $JWT", "Authorization: Bearer   $JWT", "authorization: Bearer $JWT",
			"Authorization: Bearer $JWT (trailing space)", "Authorization: Bearer", "Authorization: Bearer ", "Authorization: $JWT",
			"Authorization: Basic dXNlcjpw", "Authorization: Bearer $JWT, Bearer $JWT2", "two Authorization lines (multiValueHeaders)",
			"query ?access_token=$JWT",
		},
		play: spellings,
	}}},
}

// tokenNames are the items that tokens are called by.
func tokenNames(from, to int) (names []string) {
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("token %d", i))
	}
	return names
}

// challenged wants a challenge that leads to the metadata and has an error; "": none, as a
// request without a credential gets.
func challenged(err string) check {
	return func(a *answer) error {
		lines := a.header.Values("WWW-Authenticate")
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "Bearer ") || !strings.Contains(lines[0], `resource_metadata="https://mcp.example.com/`) {
			return fmt.Errorf("WWW-Authenticate is %q", lines)
		}
		if err == "" && strings.Contains(lines[0], "error=") || err != "" && !strings.Contains(lines[0], `error=`+strconv.Quote(err)) {
			return fmt.Errorf("WWW-Authenticate is %q, want error %q", lines, err)
		}
		return nil
	}
}

// calledBy wants one tool to have run for a user with these scopes.
func calledBy(subject, scopes string) check {
	return func(a *answer) error {
		if len(a.ran) != 1 {
			return fmt.Errorf("%d tools ran, want 1", len(a.ran))
		}
		if p := a.ran[0].caller; p.Scheme != "jwt" || p.Issuer != issuer || p.Subject != subject || strings.Join(p.Scopes, " ") != scopes {
			return fmt.Errorf("the caller is %+v", p)
		}
		return nil
	}
}

var (
	asAlice = all(status(200), complete, text("x"), calledBy("alice", "files:read files:write"))
	refused = all(status(401), oneMessage, nothingRan)
)

// withToken is a harmless call with a token in place of anybody's.
func (s *stage) withToken(token string) *exchange {
	return s.withHeaders(header{"Authorization", "Bearer " + token})
}

// withHeaders is a harmless call with these lines in place of a token.
func (s *stage) withHeaders(lines ...header) *exchange {
	x := s.call("echo", `{"text":"x"}`, "")
	kept := x.headers[:0]
	for _, h := range x.headers {
		if h.name != "Authorization" {
			kept = append(kept, h)
		}
	}
	x.headers = append(kept, lines...)
	return x
}

// described are the tokens of a case.
func tokensOf(t *testing.T, s *stage, id string) []token {
	t.Helper()
	for _, c := range s.expansion.d.Cases {
		if c.ID == id {
			return c.Input.Tokens
		}
	}
	t.Fatalf("no case %s", id)
	return nil
}

// audiences has a token for each form of aud.
func audiences(t *testing.T, s *stage) {
	for i, described := range tokensOf(t, s, "B-51") {
		claims := []byte("{" + claimsOf("alice"))
		if !isAbsent(&described.Aud) {
			var err error
			if claims, err = new(encoder).value(append(claims, `,"aud":`...), &described.Aud); err != nil {
				t.Fatal(err)
			}
		}
		holds := all(refused, challenged("invalid_token"))
		if i < 3 {
			holds = asAlice
		}
		t.Run(fmt.Sprintf("token %d", i+1), func(t *testing.T) {
			s.expect(t, s.withToken(jws([]byte(goodHeader), append(claims, '}'), k1().sign)), holds)
		})
	}
}

// waysRoundTheSignature has a token for each header. One of which the case does not say what
// it is signed with is tried with the issuer's own signature and with none.
func waysRoundTheSignature(t *testing.T, s *stage) {
	two := newStage(t, s.expansion, production{identified: true, keys: []*signer{k1(), k2()}})
	for i, described := range tokensOf(t, s, "B-52") {
		t.Run(fmt.Sprintf("token %d", i+1), func(t *testing.T) {
			header, err := headerOf(&described.Header)
			if err != nil {
				t.Fatal(err)
			}
			claims := claimsOf("alice") + `,"aud":"` + audience + `"`
			on, holds := s, all(refused, challenged("invalid_token"))
			signatures := []func([]byte) []byte{k1().sign, unsigned}
			switch described.SignedWith {
			case "":
			case "PEM text of the RSA public key k1":
				signatures = []func([]byte) []byte{hmacWith(k1().pem())}
			case "empty key":
				signatures = []func([]byte) []byte{hmacWith(nil)}
			case "that key", "evil key":
				signatures = []func([]byte) []byte{stranger().sign}
			default:
				t.Fatalf("nobody signs with %q", described.SignedWith)
			}
			switch described.Note {
			case "":
			case "no kid, JWKS has one key": // served: there is only one key that can be meant
				s.expect(t, s.withToken(jws(header, []byte("{"+claims+"}"), k1().sign)), asAlice)
				signatures = []func([]byte) []byte{unsigned, stranger().sign}
			case "no kid, JWKS has two keys":
				on = two
			default:
				t.Fatalf("nobody has said what %q means", described.Note)
			}
			switch described.Claims {
			case "":
			case "no exp":
				claims = claims[:strings.Index(claims, `,"exp":`)] + `,"aud":"` + audience + `"`
			default:
				t.Fatalf("nobody has said what %q means", described.Claims)
			}
			for _, sign := range signatures {
				on.expect(t, on.withToken(jws(header, []byte("{"+claims+"}"), sign)), holds)
			}
		})
	}
}

// headerOf is the header of a token as the case has it, with the attacker's key where it
// says so in words.
func headerOf(n *yaml.Node) ([]byte, error) {
	header, err := new(encoder).value(nil, n)
	if err != nil {
		return nil, err
	}
	key, err := json.Marshal(stranger().jwk())
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(header, []byte(`"jwk":`)); n > 0 && !bytes.Contains(header, []byte(`"attacker's own key"`)) {
		return nil, errors.New("nobody has said which key jwk is")
	}
	return bytes.Replace(header, []byte(`"attacker's own key"`), key, 1), nil
}

// spellings has a good token in every way that it can be sent.
func spellings(t *testing.T, s *stage) {
	alice := goodToken("alice")
	malformed := all(refused, challenged("invalid_token"))
	missing := all(refused, challenged(""))
	two := all(status(401, 400), oneMessage, nothingRan)
	for _, test := range []struct {
		name  string
		lines []header
		query string
		holds check
	}{
		{"bearer", []header{{"Authorization", "bearer " + alice}}, "", asAlice},
		{"BEARER", []header{{"Authorization", "BEARER " + alice}}, "", asAlice},
		{"spaces between", []header{{"Authorization", "Bearer   " + alice}}, "", asAlice},
		{"lower case name", []header{{"authorization", "Bearer " + alice}}, "", asAlice},
		{"trailing space", []header{{"Authorization", "Bearer " + alice + " "}}, "", asAlice},
		{"scheme alone", []header{{"Authorization", "Bearer"}}, "", malformed},
		{"scheme and a space", []header{{"Authorization", "Bearer "}}, "", malformed},
		{"no scheme", []header{{"Authorization", alice}}, "", missing},
		{"another scheme", []header{{"Authorization", "Basic dXNlcjpw"}}, "", missing},
		{"two in a line", []header{{"Authorization", "Bearer " + alice + ", Bearer " + goodToken("admin")}}, "", two},
		{"two lines", []header{{"Authorization", "Bearer " + alice}, {"Authorization", "Bearer " + goodToken("admin")}}, "", two},
		{"the same twice", []header{{"Authorization", "Bearer " + alice}, {"Authorization", "Bearer " + alice}}, "", two},
		{"query", nil, "?access_token=" + alice, missing},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := s.withHeaders(test.lines...)
			x.path += test.query
			s.expect(t, x, test.holds)
		})
	}
}
