// Package auth tells who sends a request: bearer JWTs judged by a JWKS, API keys, and the
// identities that a gateway has verified. It is the resource server's side of OAuth 2.1 as
// MCP has it (spec group A); tokens come from somebody else's authorization server.
//
// A [Scheme] judges one kind of credential and is asked for each request anew. What a
// token says is read strictly: exact names, no duplicates, the right types. Credentials are
// read from one Authorization header and from nowhere else.
//
// No error of this package and nothing that it logs has any part of a credential in it.
package auth

import (
	"errors"
	"net/http"

	"github.com/thaw-mcp/thaw"
)

// Scheme verifies one kind of credential. Its methods are safe for concurrent use.
type Scheme interface {
	// Authenticate reports whose request r is. ok false without an error: r has no credential of
	// this kind, and the next scheme is asked; if none is left the answer is 401. An error ends
	// the search, since what failed as one kind must not pass as another: the answer is 503 for
	// ErrUnavailable and 401 for any other. It does not read r's body or query.
	Authenticate(r *http.Request) (p thaw.Principal, ok bool, err error)
}

var (
	// ErrUnavailable: the credential could not be judged now (503), which is no refusal (401).
	// A dead identity provider must not log everyone out.
	ErrUnavailable = errors.New("auth: unavailable")

	// ErrMalformed: the credential is not written as one, or there are two of them. The answer is
	// 401 like that to any other refusal; 400 is allowed for it.
	ErrMalformed = errors.New("auth: malformed credentials")
)

// A refusal is a reason not to take a credential that is well-formed. Its text is for the log.
type refusal string

func (r refusal) Error() string { return "auth: " + string(r) }

// The schemes of thaw.Principal. A token is the same caller's whoever has verified it, so there
// is one for both ways.
const (
	schemeJWT     = "jwt"
	schemeAPIKey  = "apikey"
	schemeIAM     = "iam"
	schemeGateway = "gateway"
)
