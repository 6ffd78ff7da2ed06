package auth

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// maxDepth bounds how deeply the JSON of a token or a gateway may be nested.
const maxDepth = 32

const (
	errAlgorithm = refusal("the token's algorithm is not an allowed one")
	errCritical  = refusal("the token has a crit header")
	errType      = refusal("the token's typ header is not that of an access token")
)

// token is a JWS in its compact form, taken apart; nothing in it is verified.
type token struct {
	text   string
	signed string // what the signature is over
	alg    string
	kid    string // "" if the token names no key

	payload, signature string // base64url
}

// parseToken takes a token apart and judges its header. Members that say where a key could be
// had (jku, jwk, x5u, x5c) are not even looked at: keys come from the configured JWKS alone.
func parseToken(text string) (t token, err error) {
	head, rest, _ := strings.Cut(text, ".")
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return token{}, fmt.Errorf("%w: a token has three parts", ErrMalformed)
	}
	t = token{text: text, signed: text[:len(head)+1+len(payload)], payload: payload, signature: signature}
	header, err := decodeObject(head)
	if err != nil {
		return token{}, fmt.Errorf("%w: the token's header: %w", ErrMalformed, err)
	}
	for name, value := range strictjson.Members(header) {
		isString := true
		switch string(name) {
		case "alg":
			t.alg, isString = strictjson.String(value)
		case "kid":
			t.kid, isString = strictjson.String(value)
		case "typ":
			var typ string
			if typ, isString = strictjson.String(value); isString && !isAccessTokenType(typ) {
				return token{}, errType
			}
		case "crit":
			return token{}, errCritical
		}
		if !isString {
			return token{}, fmt.Errorf("%w: the token's header: %s is not a string", ErrMalformed, name)
		}
	}
	return t, nil
}

// isAccessTokenType knows the types that access tokens go by (RFC 9068, 2.1; RFC 7519, 5.1).
func isAccessTokenType(typ string) bool {
	return strings.EqualFold(typ, "JWT") || strings.EqualFold(typ, "at+jwt") || strings.EqualFold(typ, "application/at+jwt")
}

// strict refuses a last character with bits that mean nothing, so one token has one spelling.
var strict = base64.RawURLEncoding.Strict()

// decodeObject decodes a part of a token that holds a JSON object. The error quotes nothing.
func decodeObject(part string) ([]byte, error) {
	text, err := strict.DecodeString(part)
	if err != nil {
		return nil, errNoBase64
	}
	return checkObject(text)
}

const (
	errNoBase64 = refusal("not base64url")
	errNoObject = refusal("not a JSON object")
)

func checkObject(text []byte) ([]byte, error) {
	if err := strictjson.Check(text, maxDepth); err != nil {
		return nil, err
	}
	if text = strictjson.Trim(text); strictjson.Kind(text) != '{' {
		return nil, errNoObject
	}
	return text, nil
}
