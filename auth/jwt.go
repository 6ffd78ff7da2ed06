package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw"
)

// JWTOptions configures JWT. Issuer, Audiences and JWKSURL are required.
type JWTOptions struct {
	// Issuer is what the claim iss must be, compared byte by byte.
	Issuer string
	// Audiences are this server's names. One of them has to be in the claim aud, compared byte by
	// byte: list several rather than hope for a normal form.
	Audiences []string
	// JWKSURL publishes the issuer's keys. It must be https, but for a loopback address.
	JWKSURL string

	// Algorithms are those that a token may be signed with; none is RS256, PS256, ES256 and EdDSA.
	// RS384, RS512, PS384, PS512, ES384 and ES512 are possible too, nothing symmetric ever is.
	Algorithms []string
	// TenantClaim names the claim that holds the tenant, at the top level of the token. If set, a
	// token without it is refused. "" means no tenants.
	TenantClaim string

	// Client fetches the JWKS; nil is one of its own. Its rule for redirects is replaced.
	Client *http.Client
	// Now is the time of day; nil is time.Now.
	Now func() time.Time
	// Logger gets a warning for each failed fetch; nil is slog.Default.
	Logger *slog.Logger
}

// methods are the algorithms there are: asymmetric ones only, so a public key can never be
// taken for a secret.
var methods = map[string]jwt.SigningMethod{
	"RS256": jwt.SigningMethodRS256, "RS384": jwt.SigningMethodRS384, "RS512": jwt.SigningMethodRS512,
	"PS256": jwt.SigningMethodPS256, "PS384": jwt.SigningMethodPS384, "PS512": jwt.SigningMethodPS512,
	"ES256": jwt.SigningMethodES256, "ES384": jwt.SigningMethodES384, "ES512": jwt.SigningMethodES512,
	"EdDSA": jwt.SigningMethodEdDSA,
}

const (
	errKey       = refusal("the token names no key that the JWKS has for its algorithm")
	errSignature = refusal("the token's signature does not match")
)

type jwtScheme struct {
	policy  policy
	methods map[string]jwt.SigningMethod
	keys    *jwks
}

// JWT is the scheme of access tokens that are JWTs (RFC 9068), sent as Authorization: Bearer. It
// does no I/O before the first token comes; the error names each option that is wrong.
//
// A token is refused unless its header has an allowed alg, a typ that is absent, JWT, at+jwt or
// application/at+jwt, and no crit; its signature matches a key of the JWKS; iss and aud are as
// configured; exp is there; exp and nbf hold, give or take 30 s; and sub is not empty. Tokens
// for another purpose are refused: with a cnf, a nonce, an at_hash, a token_use other than
// access, or a claim typ other than Bearer. Numbers in the principal's claims are json.Number;
// the claims are the caller's own copy.
//
// The JWKS is fetched when a token needs it, and again when it is older than its max-age (5 min
// to 1 h; 15 min if unsaid) or lacks a token's key, which is tried once in 30 s. A fetch may take
// 3 s; while there are keys, a request waits half a second at most, and keys are good for 24 h
// if no newer ones can be had. With none at all the error is ErrUnavailable. A token that names
// no key passes if exactly one key fits its algorithm. A signature once verified is remembered
// for a minute, or until its key is gone from the JWKS.
func JWT(o JWTOptions) (Scheme, error) {
	allowed := o.Algorithms
	if len(allowed) == 0 {
		allowed = []string{"RS256", "PS256", "ES256", "EdDSA"}
	}
	address, err := checkURL("JWKSURL", o.JWKSURL)
	errs := []error{checkParty(o.Issuer, o.Audiences), err}
	s := &jwtScheme{methods: make(map[string]jwt.SigningMethod)}
	for _, alg := range allowed {
		if s.methods[alg] = methods[alg]; s.methods[alg] == nil {
			errs = append(errs, fmt.Errorf("auth: Algorithms has %q; allowed are %s", alg, strings.Join(algorithmNames(), ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	log := o.Logger
	if log == nil {
		log = slog.Default()
	}
	s.policy = newPolicy(o.Issuer, o.Audiences, o.TenantClaim,
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(now))
	s.keys = newJWKS(address, o.Client, now, log)
	return s, nil
}

func algorithmNames() (names []string) {
	for name := range methods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkParty judges the two names that a token has to carry. White space around them is a slip
// that would refuse every token; inside an audience it could not be told from a gateway's list.
func checkParty(issuer string, audiences []string) error {
	var errs []error
	if issuer == "" || issuer != strings.TrimSpace(issuer) {
		errs = append(errs, fmt.Errorf("auth: Issuer is %q; it must be what the claim iss is", issuer))
	}
	if len(audiences) == 0 {
		errs = append(errs, errors.New("auth: Audiences is empty; it must have a name that the claim aud has"))
	}
	for _, name := range audiences {
		if name == "" || strings.ContainsAny(name, " \t\r\n") {
			errs = append(errs, fmt.Errorf("auth: Audiences has %q; it must be a name without spaces", name))
		}
	}
	return errors.Join(errs...)
}

// Authenticate takes every bearer token but those that are API keys by their prefix.
func (s *jwtScheme) Authenticate(r *http.Request) (thaw.Principal, bool, error) {
	text, ok, err := bearer(r.Header)
	if err != nil || !ok || isAPIKey(text) {
		return thaw.Principal{}, false, err
	}
	c, err := s.verify(r.Context(), text)
	if err != nil {
		return thaw.Principal{}, false, err
	}
	p, err := s.policy.principal(c)
	return p, err == nil, err
}

// verify returns the claims of a token whose signature is good.
func (s *jwtScheme) verify(ctx context.Context, text string) (claims, error) {
	t, err := parseToken(text)
	if err != nil {
		return claims{}, err
	}
	method := s.methods[t.alg]
	if method == nil {
		return claims{}, errAlgorithm
	}
	payload, err := decodeObject(t.payload)
	if err != nil {
		return claims{}, fmt.Errorf("%w: the token's claims: %w", ErrMalformed, err)
	}
	signature, err := strict.DecodeString(t.signature)
	if err != nil {
		return claims{}, fmt.Errorf("%w: the token's signature: %w", ErrMalformed, errNoBase64)
	}
	keys, err := s.keys.find(ctx, t.kid, t.alg)
	if err != nil {
		return claims{}, err
	}
	if len(keys) == 0 {
		return claims{}, errKey
	}
	digest := sha256.Sum256([]byte(t.text))
	now := s.keys.time()
	for _, k := range keys {
		if k.verified.has(digest, now) {
			return readClaims(payload, false), nil
		}
		if method.Verify(t.signed, signature, k.public) == nil {
			k.verified.add(digest, now)
			return readClaims(payload, false), nil
		}
	}
	return claims{}, errSignature
}
