package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// keyPrefix decides that a bearer token is an API key. No JWT begins like it: the first
// character of one encodes the brace of its header.
const keyPrefix = "thaw_"

func isAPIKey(token string) bool { return strings.HasPrefix(token, keyPrefix) }

// NewAPIKey makes an API key of 256 random bits, and the line that admits it to the file of
// APIKeys. The key is to be shown once and kept nowhere; its digest, which the line has, cannot
// be used in its place. The name must be of printable ASCII characters without spaces and not
// begin with #; scopes must also have no comma, quote or backslash.
func NewAPIKey(name string, scopes []string) (key, line string, err error) {
	if err := errors.Join(checkKeyName(name), checkScopes(scopes)); err != nil {
		return "", "", fmt.Errorf("auth: %w", err)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(secret)
	digest := sha256.Sum256([]byte(key))
	line = name + " " + hex.EncodeToString(digest[:])
	if len(scopes) > 0 {
		line += " " + strings.Join(scopes, ",")
	}
	return key, line, nil
}

const maxKeyName = 256 // bytes

func checkKeyName(name string) error {
	switch {
	case isAPIKey(name):
		return errors.New("the name of an API key begins like a key; a name comes first")
	case name == "" || len(name) > maxKeyName || name[0] == '#' || !isGraphic(name):
		return errors.New("the name of an API key must be 1 to 256 printable ASCII characters, no spaces, and not begin with #")
	}
	return nil
}

// checkScopes takes what a scope may be (RFC 6749, 3.3) but the comma that separates them here
// and a # at the beginning.
func checkScopes(scopes []string) error {
	for _, scope := range scopes {
		if scope == "" || scope[0] == '#' || !isGraphic(scope) || strings.ContainsAny(scope, `,"\`) {
			return errors.New("a scope of an API key must be printable ASCII characters, no spaces, commas, quotes or backslashes, and not begin with #")
		}
	}
	return nil
}

func isGraphic(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func parseDigest(s string) (digest [sha256.Size]byte, err error) {
	if n, err := hex.Decode(digest[:], []byte(s[:min(len(s), 2*len(digest))])); err != nil || n != len(digest) || len(s) != 2*len(digest) {
		return digest, errors.New("the digest of an API key must be the 64 hexadecimal digits of its SHA-256")
	}
	return digest, nil
}
