package auth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw"
)

// leeway is how far the clocks of issuer and server may be apart.
const leeway = 30 * time.Second

const (
	errBound     = refusal("the token is bound to a key (cnf), so it is no bearer token")
	errNoAccess  = refusal("the token is not an access token")
	errNoSubject = refusal("the claim sub is missing or empty")
	errNoTenant  = refusal("the tenant's claim is missing or empty")
)

// policy is what the claims of a token have to say.
type policy struct {
	issuer      string
	validator   *jwt.Validator // issuer, audience and times
	tenantClaim string         // "": there are no tenants
}

func newPolicy(issuer string, audiences []string, tenantClaim string, more ...jwt.ParserOption) policy {
	return policy{
		issuer:      issuer,
		validator:   jwt.NewValidator(append(more, jwt.WithIssuer(issuer), jwt.WithAudience(slices.Clone(audiences)...))...),
		tenantClaim: tenantClaim,
	}
}

// principal judges the claims of a token that somebody has verified and says whose it is.
func (p policy) principal(c claims) (thaw.Principal, error) {
	if err := checkPurpose(c); err != nil {
		return thaw.Principal{}, err
	}
	if err := p.validator.Validate(c); err != nil {
		return thaw.Principal{}, fmt.Errorf("auth: %w", err)
	}
	if _, err := c.GetIssuedAt(); err != nil {
		return thaw.Principal{}, err
	}
	if _, err := c.text("jti"); err != nil {
		return thaw.Principal{}, err
	}
	subject, err := c.GetSubject()
	if err != nil {
		return thaw.Principal{}, err
	}
	if subject == "" {
		return thaw.Principal{}, errNoSubject
	}
	client, err := c.client()
	if err != nil {
		return thaw.Principal{}, err
	}
	return p.complete(thaw.Principal{Scheme: schemeJWT, Issuer: p.issuer, Subject: subject, Client: client}, c)
}

// complete adds what is the same for all claims.
func (p policy) complete(who thaw.Principal, c claims) (thaw.Principal, error) {
	var err error
	if who.Scopes, err = c.scopes(); err != nil {
		return thaw.Principal{}, err
	}
	if p.tenantClaim != "" {
		if who.Tenant, err = c.text(p.tenantClaim); err != nil {
			return thaw.Principal{}, err
		}
		if who.Tenant == "" {
			return thaw.Principal{}, errNoTenant
		}
	}
	who.Claims = c.members
	return who, nil
}

// checkPurpose refuses tokens that are good for something else: ID tokens, refresh tokens, and
// those that only the holder of a key may use.
func checkPurpose(c claims) error {
	if _, ok := c.members["cnf"]; ok {
		return errBound
	}
	for _, name := range []string{"nonce", "at_hash"} {
		if _, ok := c.members[name]; ok {
			return errNoAccess
		}
	}
	if use, ok := c.members["token_use"]; ok && use != "access" {
		return errNoAccess
	}
	if v, ok := c.members["typ"]; ok {
		if typ, isString := v.(string); !isString || !strings.EqualFold(typ, "Bearer") {
			return errNoAccess
		}
	}
	return nil
}
