package declared

import (
	"errors"
	"fmt"
)

// CheckScopes refuses what can be no scope: an empty one, or one with a character that OAuth
// does not allow (RFC 6749, 3.3) and that could break a challenge.
func CheckScopes(scopes []string) error {
	for _, scope := range scopes {
		if scope == "" {
			return errors.New("a scope is empty")
		}
		for _, c := range []byte(scope) {
			if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
				return fmt.Errorf("scope %q has a character other than the visible ones of ASCII without \" and \\", scope)
			}
		}
	}
	return nil
}
