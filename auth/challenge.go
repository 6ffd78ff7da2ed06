package auth

import "strings"

// Challenge is the WWW-Authenticate value of a 401 or 403 (A-08, A-09; RFC 6750, 3). Fields that
// are empty are left out; a request without any credentials gets no Error (RFC 6750, 3.1).
type Challenge struct {
	// Error is invalid_token, insufficient_scope or invalid_request.
	Error string
	// Description is for people. It must not say what was wrong with a token beyond its kind.
	Description string
	// Scopes are those that the operation needs, all of them.
	Scopes []string
	// ResourceMetadata is the URL of the document that Metadata is.
	ResourceMetadata string
}

// String is the header's value. Whatever the fields hold it stays one line and one challenge:
// quotes are escaped, and what a quoted string cannot hold becomes a question mark.
func (c Challenge) String() string {
	var b strings.Builder
	b.WriteString("Bearer")
	separator := " "
	for _, parameter := range [...]struct{ name, value string }{
		{"error", c.Error},
		{"error_description", c.Description},
		{"scope", strings.Join(c.Scopes, " ")},
		{"resource_metadata", c.ResourceMetadata},
	} {
		if parameter.value != "" {
			b.WriteString(separator)
			b.WriteString(parameter.name)
			b.WriteByte('=')
			writeQuoted(&b, parameter.value)
			separator = ", "
		}
	}
	return b.String()
}

// writeQuoted writes s as a quoted-string (RFC 9110, 5.6.4) of ASCII.
func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
