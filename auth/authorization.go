package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// maxToken is the longest token in bytes. Those of real providers have one or two thousand.
const maxToken = 8 << 10

// bearer returns the token of a request: one Authorization header, the scheme Bearer in any
// spelling, one or more spaces, and a token of the characters that JWTs and API keys are made
// of. ok is false without an error if there is no such header or its scheme is another. A comma
// is no such character, so two credentials that a gateway joined into one line are refused too.
func bearer(h http.Header) (token string, ok bool, err error) {
	lines := h["Authorization"]
	if len(lines) == 0 {
		return "", false, nil
	}
	if len(lines) > 1 {
		return "", false, fmt.Errorf("%w: %d Authorization headers, allowed is one", ErrMalformed, len(lines))
	}
	scheme, token, _ := strings.Cut(strings.Trim(lines[0], " \t"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false, nil
	}
	token = strings.TrimLeft(token, " ")
	switch {
	case token == "":
		return "", false, fmt.Errorf("%w: no token after Bearer", ErrMalformed)
	case len(token) > maxToken:
		return "", false, fmt.Errorf("%w: a token of %d bytes, allowed are %d", ErrMalformed, len(token), maxToken)
	}
	for i := range len(token) {
		if !tokenByte[token[i]] {
			return "", false, fmt.Errorf("%w: the token has a character other than letters, digits, '.', '_' and '-'", ErrMalformed)
		}
	}
	return token, true, nil
}

var tokenByte = func() (t [256]bool) {
	for c := '0'; c <= 'z'; c++ {
		t[c] = c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c
	}
	t['.'], t['_'], t['-'] = true, true, true
	return t
}()
