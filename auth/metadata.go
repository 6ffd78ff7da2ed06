package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Metadata is the document that tells a client where to get tokens for this server: OAuth 2.0
// Protected Resource Metadata (A-02; RFC 9728). Fields that are empty are left out but where it
// says otherwise.
type Metadata struct {
	// Resource is the public URL of the endpoint: https, lower-case host, no query and no
	// fragment. Clients compare it with the URL that they called.
	Resource string `json:"resource"`
	// AuthorizationServers are issuers, at least one.
	AuthorizationServers []string `json:"authorization_servers"`
	// ScopesSupported are those that basic use needs. It must not have offline_access.
	ScopesSupported []string `json:"scopes_supported,omitempty"`
	// BearerMethodsSupported is where tokens are read; nil is header, which is all there is.
	BearerMethodsSupported []string `json:"bearer_methods_supported"`
	// ResourceName and ResourceDocumentation are for people.
	ResourceName          string `json:"resource_name,omitempty"`
	ResourceDocumentation string `json:"resource_documentation,omitempty"`
}

// AppendJSON appends the document. The error names each field that makes it invalid.
func (m Metadata) AppendJSON(dst []byte) ([]byte, error) {
	if err := m.check(); err != nil {
		return dst, err
	}
	type document Metadata // without methods
	if m.BearerMethodsSupported == nil {
		m.BearerMethodsSupported = []string{"header"}
	}
	text, err := strictjson.Marshal(document(m))
	return append(dst, text...), err
}

// MarshalJSON is AppendJSON.
func (m Metadata) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

func (m Metadata) check() error {
	_, err := checkResource(m.Resource)
	errs := []error{err}
	if len(m.AuthorizationServers) == 0 {
		errs = append(errs, errors.New("auth: AuthorizationServers is empty; it must have an issuer"))
	}
	for _, issuer := range m.AuthorizationServers {
		_, err := checkURL("AuthorizationServers", issuer)
		errs = append(errs, err)
	}
	if slices.Contains(m.ScopesSupported, "offline_access") {
		errs = append(errs, errors.New("auth: ScopesSupported has offline_access, which is between a client and its authorization server"))
	}
	if slices.ContainsFunc(m.BearerMethodsSupported, func(method string) bool { return method != "header" }) {
		errs = append(errs, fmt.Errorf("auth: BearerMethodsSupported is %q; allowed is header", m.BearerMethodsSupported))
	}
	return errors.Join(errs...)
}

func checkResource(resource string) (*url.URL, error) {
	u, err := checkURL("Resource", resource)
	switch {
	case err != nil:
		return nil, err
	case u.Host != strings.ToLower(u.Host) || !strings.HasPrefix(resource, u.Scheme+":"):
		return nil, errors.New("auth: Resource has upper-case letters in its scheme or host; clients compare it letter by letter")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, errors.New("auth: Resource has a query; it must have none")
	}
	return u, nil
}

const wellKnown = "/.well-known/oauth-protected-resource"

// WellKnownPath is the path at which clients look for the metadata of publicURL: the well-known
// name with the URL's own path behind it (A-04; RFC 9728, 3.1). They also try the name alone, at
// the root. The error says what publicURL must be, which is what Metadata.Resource must be.
func WellKnownPath(publicURL string) (pathForm string, err error) {
	u, err := checkResource(publicURL)
	if err != nil {
		return "", err
	}
	if u.Path == "/" {
		return wellKnown, nil
	}
	return wellKnown + u.EscapedPath(), nil
}
