package auth

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
)

// GatewayOptions configures Gateway.
type GatewayOptions struct {
	// Kinds are the identities to accept, the first that a request has: jwt, of a JWT authorizer
	// or a Cognito user pool's; lambda, of an authorizer function; iam, of a signed request.
	Kinds []string
	// Issuer and Audiences are as in JWTOptions. The kind jwt requires both. Those of the kind
	// lambda are compared where they are set and the authorizer passes on iss or aud.
	Issuer    string
	Audiences []string
	// TenantClaim is as in JWTOptions. The kind iam has no claims and cannot have tenants.
	TenantClaim string
}

const (
	kindJWT    = "jwt"
	kindLambda = "lambda"
	kindIAM    = "iam"
)

const (
	errIdentity = refusal("the gateway's identity is not as its kind should be")
	errIssuer   = refusal("the gateway's identity has another issuer")
	errAudience = refusal("the gateway's identity has another audience")
	errPooled   = refusal("callers through a Cognito identity pool cannot be told apart by IAM")
)

type gateway struct {
	kinds     []string
	issuer    string
	audiences []string
	policy    policy
}

// Gateway is the scheme of callers that an API gateway has verified. It reads what the host took
// from the event's request context (package host), never a header; without a host that does, or
// an identity of a kind that is named, there is none (ok is false), which is not anonymous.
//
// Of a token that the gateway has judged, issuer and audience are judged again, and its purpose
// as JWT does; its signature and its times are the gateway's word. The audience must be in the
// claim aud: the client id, which API Gateway takes for it, names no server.
//
// A caller of the kind lambda is the authorizer's sub or else principalId, of the issuer that it
// names or else of the API. A caller of the kind iam is its account and its whole caller id.
func Gateway(o GatewayOptions) (Scheme, error) {
	var errs []error
	if len(o.Kinds) == 0 {
		errs = append(errs, errors.New("auth: Kinds is empty; allowed are jwt, lambda and iam"))
	}
	for _, kind := range o.Kinds {
		switch kind {
		case kindJWT:
			errs = append(errs, checkParty(o.Issuer, o.Audiences))
		case kindLambda:
		case kindIAM:
			if o.TenantClaim != "" {
				errs = append(errs, errors.New("auth: Kinds has iam, whose callers have no claims, and TenantClaim is set"))
			}
		default:
			errs = append(errs, fmt.Errorf("auth: Kinds has %q; allowed are jwt, lambda and iam", kind))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &gateway{
		kinds: slices.Clone(o.Kinds), issuer: o.Issuer, audiences: slices.Clone(o.Audiences),
		policy: newPolicy(o.Issuer, o.Audiences, o.TenantClaim),
	}, nil
}

// Authenticate reads r's context and nothing else of it.
func (g *gateway) Authenticate(r *http.Request) (p thaw.Principal, ok bool, err error) {
	id, ok := host.IdentityFrom(r.Context())
	if !ok {
		return thaw.Principal{}, false, nil
	}
	for _, kind := range g.kinds {
		switch {
		case kind == kindJWT && id.JWT != "":
			p, err = g.jwt(id.JWT)
		case kind == kindLambda && id.Lambda != "":
			p, err = g.lambda(id.Lambda, id.API)
		case kind == kindIAM && id.IAM != host.IAMCaller{}:
			p, err = iam(id.IAM)
		default:
			continue
		}
		return p, err == nil, err
	}
	return thaw.Principal{}, false, nil
}

func (g *gateway) jwt(object string) (thaw.Principal, error) {
	c, err := gatewayClaims(object)
	if err != nil {
		return thaw.Principal{}, err
	}
	return g.policy.principal(c)
}

func gatewayClaims(object string) (claims, error) {
	text, err := checkObject([]byte(object))
	if err != nil {
		return claims{}, fmt.Errorf("%w: %w", errIdentity, err)
	}
	return readClaims(text, true), nil
}

func (g *gateway) lambda(object, api string) (thaw.Principal, error) {
	c, err := gatewayClaims(object)
	if err != nil {
		return thaw.Principal{}, err
	}
	issuer, err := c.GetIssuer()
	if err != nil {
		return thaw.Principal{}, err
	}
	switch {
	case issuer == "":
		issuer = api
	case g.issuer != "" && issuer != g.issuer:
		return thaw.Principal{}, errIssuer
	}
	if issuer == "" {
		return thaw.Principal{}, errIdentity
	}
	audience, err := c.GetAudience()
	if err != nil {
		return thaw.Principal{}, err
	}
	if _, said := c.members["aud"]; said && len(g.audiences) > 0 && !slices.ContainsFunc(audience, g.isAudience) {
		return thaw.Principal{}, errAudience
	}
	subject, err := c.GetSubject()
	if err == nil && subject == "" {
		subject, err = c.text("principalId")
	}
	if err != nil {
		return thaw.Principal{}, err
	}
	if subject == "" {
		return thaw.Principal{}, errNoSubject
	}
	client, err := c.text("client_id")
	if err != nil {
		return thaw.Principal{}, err
	}
	return g.policy.complete(thaw.Principal{Scheme: schemeGateway, Issuer: issuer, Subject: subject, Client: client}, c)
}

func (g *gateway) isAudience(name string) bool { return slices.Contains(g.audiences, name) }

func iam(caller host.IAMCaller) (thaw.Principal, error) {
	switch {
	case caller.Pooled:
		return thaw.Principal{}, errPooled
	case caller.Account == "" || caller.Caller == "" || strings.HasPrefix(caller.Caller, "arn:"):
		return thaw.Principal{}, errIdentity
	}
	return thaw.Principal{Scheme: schemeIAM, Issuer: "aws:" + caller.Account, Subject: caller.Caller}, nil
}
