package auth

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// claims are what a token or an authorizer says of the caller. It implements jwt.Claims.
type claims struct {
	members map[string]any // numbers are json.Number
	// flat: a gateway has made strings of all values.
	flat bool
}

// readClaims reads a JSON object that passed checkObject. Names count in their exact spelling.
func readClaims(object []byte, flat bool) claims {
	return claims{readValue(object).(map[string]any), flat}
}

func readValue(value []byte) any {
	switch strictjson.Kind(value) {
	case '{':
		object := make(map[string]any)
		for name, v := range strictjson.Members(value) {
			object[string(name)] = readValue(v)
		}
		return object
	case '[':
		array := []any{}
		for v := range strictjson.Elements(value) {
			array = append(array, readValue(v))
		}
		return array
	case '"':
		s, _ := strictjson.String(value) // the text has been checked
		return s
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	}
	return json.Number(value)
}

func wrongType(name string) error {
	return refusal("the claim " + name + " has the wrong JSON type")
}

// text is a claim that has to be a string if it is there; "" if it is not.
func (c claims) text(name string) (string, error) {
	v, ok := c.members[name]
	if !ok {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", wrongType(name)
	}
	return s, nil
}

// date is a claim that has to be a number of seconds if it is there. A gateway has judged the
// times itself and hands them over in forms of its own.
func (c claims) date(name string) (*jwt.NumericDate, error) {
	v, ok := c.members[name]
	if !ok || c.flat {
		return nil, nil
	}
	number, ok := v.(json.Number)
	if !ok {
		return nil, wrongType(name)
	}
	const year10000 = 253_402_300_800
	seconds, err := number.Float64()
	if err != nil || seconds < 0 || seconds >= year10000 {
		return nil, refusal("the claim " + name + " is no time")
	}
	return &jwt.NumericDate{Time: time.Unix(int64(seconds), 0)}, nil
}

func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.date("exp") }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.date("iat") }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.date("nbf") }
func (c claims) GetIssuer() (string, error)                   { return c.text("iss") }
func (c claims) GetSubject() (string, error)                  { return c.text("sub") }

func (c claims) GetAudience() (jwt.ClaimStrings, error) {
	return c.list("aud", func(s string) []string { return []string{s} })
}

// list is a claim that has to be a string, taken apart by split, or an array of strings.
func (c claims) list(name string, split func(string) []string) ([]string, error) {
	switch v := c.members[name].(type) {
	case string:
		if c.flat {
			if elements, ok := bracketed(v); ok {
				return elements, nil
			}
		}
		return split(v), nil
	case []any:
		elements := make([]string, len(v))
		for i := range v {
			s, ok := v[i].(string)
			if !ok {
				return nil, wrongType(name)
			}
			elements[i] = s
		}
		return elements, nil
	default:
		if _, ok := c.members[name]; ok {
			return nil, wrongType(name)
		}
		return nil, nil
	}
}

// bracketed reads what an HTTP API makes of an array: "[a b c]". An element with a space cannot
// be told from two, which no scope has and no audience that Gateway accepts.
func bracketed(s string) (elements []string, ok bool) {
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return nil, false
	}
	return words(s[1 : len(s)-1]), true
}

// words splits at spaces and at nothing else (RFC 6749, 3.3).
func words(s string) []string {
	return slices.DeleteFunc(strings.Split(s, " "), func(word string) bool { return word == "" })
}

// scopes are those of scope, or of the scp that some providers write instead.
func (c claims) scopes() ([]string, error) {
	name := "scope"
	if _, ok := c.members[name]; !ok {
		name = "scp"
	}
	return c.list(name, words)
}

// client is the OAuth client that the token was issued to, or "".
func (c claims) client() (string, error) {
	for _, name := range []string{"client_id", "azp", "appid", "cid"} {
		if id, err := c.text(name); id != "" || err != nil {
			return id, err
		}
	}
	return "", nil
}
