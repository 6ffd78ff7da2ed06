package lambdahost

import (
	"strings"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// authorizer is the member of requestContext of that name. Its form differs from door to door,
// and which door it is only the whole event tells.
type authorizer struct {
	text string // the whole object; "" if there is none

	// Payload 1.0 has a token's claims at the top, and beside them the route's scopes, both null
	// if there is no authorizer. Whatever has other members was put together by a function.
	claims string
	others bool

	// Payload 2.0 has a member for each kind.
	jwtClaims, lambda string
	signer            host.IAMCaller
}

// identity is the caller as the front door has verified it, by the event's request context
// alone. What one door lets an authorizer's function write freely must not be read as another
// door's own word, so each is read in its own form only. A load balancer says what it knows in
// headers, which are no proof, so it says nothing here.
func (e *event) identity(d door) (id host.Identity) {
	a := &e.context.authorizer
	switch d {
	case restAPI, httpAPI1:
		id.IAM = e.context.signer
		if a.others {
			id.Lambda = a.text
		} else {
			id.JWT = a.claims
		}
	case httpAPI2:
		id.JWT, id.Lambda, id.IAM = a.jwtClaims, a.lambda, a.signer
	case functionURL:
		id.IAM = a.signer // no other kind guards one
	}
	if id != (host.Identity{}) {
		id.API = e.context.apiID
	}
	return id
}

// authorizer reads a in the forms of both payloads. What functions write is theirs to choose, so
// nothing in it is a fault of the event.
func (r *reader) authorizer(a *authorizer) {
	defer func(fault string, badText bool) { r.fault, r.badText = fault, badText }(r.fault, r.badText)
	start := int(r.dec.InputOffset()) // after the name, before the colon
	isObject := false
	for name := range r.members("authorizer") {
		isObject = true
		switch name {
		case "claims":
			a.claims = r.object()
			continue
		case "scopes":
			r.skip()
			continue
		case "jwt":
			for name := range r.members(name) {
				if name == "claims" {
					a.jwtClaims = r.object()
				} else {
					r.skip()
				}
			}
		case "lambda":
			a.lambda = r.object()
		case "iam":
			r.signer(&a.signer)
		default:
			r.skip()
		}
		a.others = true
	}
	if isObject && r.err == nil {
		text := r.text[start:r.dec.InputOffset()]
		a.text = text[strings.IndexByte(text, '{'):]
	}
}

// signer reads what payload 2.0 says of a signed request.
func (r *reader) signer(c *host.IAMCaller) {
	for name := range r.members("iam") {
		switch name {
		case "accountId":
			c.Account = r.str(name)
		case "callerId":
			c.Caller = r.str(name)
		case "cognitoIdentity":
			c.Pooled = r.object() != ""
		default:
			r.skip()
		}
	}
}

// object is the text of an object, and "" for a value of any other kind.
func (r *reader) object() string {
	if r.err == nil && r.dec.PeekKind() != '{' {
		r.skip()
		return ""
	}
	return r.raw()
}
