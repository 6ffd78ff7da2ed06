package serve

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/runtime/host"
)

// jwtAlgorithms are those whose tokens are verified with a public key.
var jwtAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// authSettings say who may call. Each is judged by itself here; configureAuth judges what
// they are together and makes the schemes.
var authSettings = []setting{
	{name: "THAW_AUTH", allowed: "none, or a comma list of jwt, apikey, gateway", explicit: true, secret: true, read: checked(func(v string) error {
		kinds := commaList(v)
		if len(kinds) > 1 && slices.Contains(kinds, "none") {
			return errors.New("none stands alone")
		}
		return amongst(v, "none", "jwt", "apikey", "gateway")
	})},
	{name: "THAW_JWT_ISSUER", allowed: "the https URL that tokens have as iss, without query and fragment", url: true, read: checked(checkIssuer)},
	{name: "THAW_JWT_AUDIENCE", allowed: "a comma list of what tokens for this server have as aud; default THAW_PUBLIC_URL", read: checked(func(v string) error {
		if slices.ContainsFunc(commaList(v), func(name string) bool { return strings.ContainsAny(name, " \t\r\n") }) {
			return errors.New("a name has a space in it")
		}
		return filled(v)
	})},
	{name: "THAW_JWT_JWKS_URL", allowed: "the https URL of the issuer's key set", url: true, read: checked(checkHTTPS)},
	{name: "THAW_JWT_ALGORITHMS", allowed: "a comma list of " + strings.Join(jwtAlgorithms, ", ") + "; default RS256, PS256, ES256, EdDSA", read: checked(func(v string) error {
		return amongst(v, jwtAlgorithms...)
	})},
	{name: "THAW_JWT_TENANT_CLAIM", allowed: "the name of the claim that has the tenant; default none", read: checked(filled)},
	{name: "THAW_GATEWAY", allowed: "a comma list of jwt, lambda, iam", read: checked(func(v string) error { return amongst(v, "jwt", "lambda", "iam") })},
	{name: "THAW_API_KEYS", allowed: "file:PATH", secret: true, read: checked(func(v string) error {
		if path, ok := strings.CutPrefix(v, "file:"); !ok || path == "" {
			return errors.New("it names no file")
		}
		return nil
	})},
	{name: "THAW_SCOPES_SUPPORTED", allowed: "a comma list of the scopes to ask for at a first login; default those that all tools, prompts and resources need", read: checked(func(v string) error {
		return errors.Join(filled(v), each(commaList(v), checkScopeSupported))
	})},
}

// dependents are the settings that say more about others: what they are required with, and
// what else they are read with.
var dependents = []struct {
	name          string
	required, too []string
}{
	{"THAW_JWT_ISSUER", []string{"THAW_AUTH=jwt", "THAW_GATEWAY=jwt"}, []string{"THAW_GATEWAY=lambda"}},
	{"THAW_JWT_AUDIENCE", nil, []string{"THAW_AUTH=jwt", "THAW_GATEWAY=jwt", "THAW_GATEWAY=lambda"}},
	{"THAW_JWT_JWKS_URL", []string{"THAW_AUTH=jwt"}, nil}, // an issuer does not say where its keys are without being asked
	{"THAW_JWT_ALGORITHMS", nil, []string{"THAW_AUTH=jwt"}},
	{"THAW_JWT_TENANT_CLAIM", nil, []string{"THAW_AUTH=jwt", "THAW_GATEWAY=jwt", "THAW_GATEWAY=lambda"}},
	{"THAW_GATEWAY", []string{"THAW_AUTH=gateway"}, nil},
	{"THAW_API_KEYS", []string{"THAW_AUTH=apikey"}, nil},
	{"THAW_SCOPES_SUPPORTED", nil, []string{"THAW_JWT_ISSUER"}},
}

// configureAuth makes the schemes that THAW_AUTH names, and what they need of o. Problems are
// what is wrong with the settings beside each other; what is wrong with one alone, configure
// has said.
func configureAuth(getenv func(string) string, e *environment, o *Options) []string {
	v := authValues{get: func(name string) string { return e.value(getenv, name) }}
	sound := v.get("THAW_PUBLIC_URL") == "" || len(o.PublicURLs) > 0 // each by itself
	for _, s := range authSettings {
		if value := v.get(s.name); value != "" && s.read(o, value) != nil {
			if sound = false; s.name == "THAW_AUTH" || s.name == "THAW_GATEWAY" {
				return nil // what the others are for is not known
			}
		}
	}
	v.kinds, v.issuer = commaList(v.get("THAW_AUTH")), v.get("THAW_JWT_ISSUER")
	for _, kind := range v.kinds {
		v.on = append(v.on, "THAW_AUTH="+kind)
	}
	if slices.Contains(v.kinds, "gateway") {
		for _, kind := range commaList(v.get("THAW_GATEWAY")) {
			v.on = append(v.on, "THAW_GATEWAY="+kind)
		}
	}
	if v.issuer != "" {
		v.on = append(v.on, "THAW_JWT_ISSUER")
	}
	if e.at.Facts.Loopback {
		o.localURLs = localURLs(v.get("THAW_ADDR"), o.BasePath)
	}
	if problems := v.problems(e.at, o); len(problems) > 0 || !sound {
		return problems
	}
	problems := v.configure(o)
	// Whatever was overlooked above, nobody gets in unasked where somebody was to be asked.
	if len(problems) == 0 && len(o.Auth) == 0 && len(v.kinds) > 0 && !v.is("THAW_AUTH=none") {
		problems = append(problems, "THAW_AUTH names schemes and none was made")
	}
	return problems
}

// authValues are the settings of who may call, each sound by itself.
type authValues struct {
	get    func(name string) string
	kinds  []string // of THAW_AUTH
	on     []string // as dependents name it
	issuer string
}

func (v *authValues) is(what string) bool { return slices.Contains(v.on, what) }

func (v *authValues) problems(at host.Host, o *Options) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, d := range dependents {
		of, all := slices.IndexFunc(d.required, v.is), slices.Concat(d.required, d.too)
		switch there := v.get(d.name) != ""; {
		case !there && of >= 0:
			problem("%s must be set with %s: allowed is %s", d.name, d.required[of], allowedOf(d.name))
		case there && !slices.ContainsFunc(all, v.is):
			problem("%s is read with %s only", d.name, strings.Join(all, " or "))
		}
	}
	if v.is("THAW_GATEWAY=iam") && v.get("THAW_JWT_TENANT_CLAIM") != "" {
		problem("THAW_JWT_TENANT_CLAIM cannot be set with THAW_GATEWAY=iam, whose callers have no claims")
	}
	if slices.Equal(v.kinds, []string{"gateway"}) && (at.Name == "local" || at.Name == "cloudrun") {
		problem("THAW_AUTH=gateway: a gateway's identities come with its events, and the host %s has none", at.Name)
	}
	if v.issuer != "" && v.get("THAW_PUBLIC_URL") == "" && len(o.localURLs) == 0 {
		problem("THAW_PUBLIC_URL must be set with THAW_JWT_ISSUER: by it clients find out where to log in")
	}
	return problems
}

// configure fills o with what the settings say together.
func (v *authValues) configure(o *Options) (problems []string) {
	if v.issuer != "" {
		o.AuthorizationServers, o.ScopesSupported = []string{v.issuer}, commaList(v.get("THAW_SCOPES_SUPPORTED"))
	}
	audiences := commaList(v.get("THAW_JWT_AUDIENCE"))
	if len(audiences) == 0 && (v.is("THAW_AUTH=jwt") || v.is("THAW_GATEWAY=jwt")) {
		if audiences = o.PublicURLs; len(audiences) == 0 {
			audiences = o.localURLs
		}
	}
	for _, kind := range v.kinds {
		var scheme auth.Scheme
		var err error
		switch kind {
		case "none":
			return nil
		case "jwt":
			scheme, err = auth.JWT(auth.JWTOptions{
				Issuer: v.issuer, Audiences: audiences, JWKSURL: v.get("THAW_JWT_JWKS_URL"),
				Algorithms: commaList(v.get("THAW_JWT_ALGORITHMS")), TenantClaim: v.get("THAW_JWT_TENANT_CLAIM"), Logger: o.Logger,
			})
		case "apikey":
			scheme, err = auth.APIKeys(strings.TrimPrefix(v.get("THAW_API_KEYS"), "file:"), &auth.APIKeyOptions{Logger: o.Logger})
		case "gateway":
			scheme, err = auth.Gateway(auth.GatewayOptions{
				Kinds: commaList(v.get("THAW_GATEWAY")), Issuer: v.issuer, Audiences: audiences, TenantClaim: v.get("THAW_JWT_TENANT_CLAIM"),
			})
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("THAW_AUTH=%s: %v", kind, err))
			continue
		}
		o.Auth = append(o.Auth, scheme)
	}
	return problems
}

// localURLs are those that a server at addr has on this very machine; none while its port is
// not known.
func localURLs(addr, basePath string) (urls []string) {
	if addr == "" {
		addr = host.DefaultAddr
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return nil
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		urls = append(urls, "http://"+net.JoinHostPort(name, port)+strings.TrimSuffix(basePath, "/")+"/mcp")
	}
	return urls
}

func allowedOf(name string) string {
	return authSettings[slices.IndexFunc(authSettings, func(s setting) bool { return s.name == name })].allowed
}

// checked is for settings that are only judged when they are read.
func checked(check func(string) error) func(*Options, string) error {
	return func(_ *Options, value string) error { return check(value) }
}

// filled refuses a list of nothing.
func filled(value string) error {
	if len(commaList(value)) == 0 {
		return errors.New("it is empty")
	}
	return nil
}

// amongst takes a comma list of some of a fixed few, each once.
func amongst(value string, few ...string) error {
	items := commaList(value)
	for i, item := range items {
		if !slices.Contains(few, item) {
			return fmt.Errorf("item %d is none of them", i+1)
		}
		if slices.Contains(items[:i], item) {
			return fmt.Errorf("item %d is there twice", i+1)
		}
	}
	return filled(value)
}
