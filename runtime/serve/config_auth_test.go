package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/runtime/host"
)

var (
	laptop   = host.Host{Name: "local", Facts: resident}
	onLambda = host.Host{Name: "lambda", Ephemeral: true}
	onRun    = host.Host{Name: "cloudrun", Ephemeral: true, Facts: host.Facts{Streaming: true}}
)

// jwtEnv is a server that takes JWTs, with more settings; a value "-" takes one away.
func jwtEnv(more ...string) func(string) string {
	pairs := append([]string{
		"THAW_AUTH", "jwt", "THAW_PUBLIC_URL", publicURL,
		"THAW_JWT_ISSUER", "https://idp.example.com", "THAW_JWT_JWKS_URL", "https://idp.example.com/jwks",
	}, more...)
	for i := 1; i < len(pairs); i += 2 {
		if pairs[i] == "-" {
			pairs[i] = ""
		}
	}
	return env(pairs...)
}

// configured is what Main makes of the environment.
func configured(getenv func(string) string, at host.Host) (*Options, []string) {
	e := environmentOf(at, nil)
	o, problems := configure(getenv, e)
	return o, append(problems, configureAuth(getenv, e, o)...)
}

func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	_, line, err := auth.NewAPIKey("robot", []string{"files:read"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigureAuth(t *testing.T) {
	keys := "file:" + keyFile(t)
	for _, c := range []struct {
		name      string
		getenv    func(string) string
		at        host.Host
		schemes   int
		issuers   []string
		supported []string
		local     []string
	}{
		{"nothing", env(), laptop, 0, nil, nil, nil},
		{"none", env("THAW_AUTH", "none"), onLambda, 0, nil, nil, nil},
		{"jwt", jwtEnv(), onLambda, 1, []string{"https://idp.example.com"}, nil, nil},
		{"all of jwt", jwtEnv("THAW_JWT_AUDIENCE", "a, b", "THAW_JWT_ALGORITHMS", "ES256,EdDSA", "THAW_JWT_TENANT_CLAIM", "org", "THAW_SCOPES_SUPPORTED", "openid,mcp"),
			onRun, 1, []string{"https://idp.example.com"}, []string{"openid", "mcp"}, nil},
		{"jwt on a laptop", jwtEnv("THAW_PUBLIC_URL", "-", "THAW_BASE_PATH", "/agents"), laptop, 1, []string{"https://idp.example.com"}, nil,
			[]string{"http://localhost:8080/agents/mcp", "http://127.0.0.1:8080/agents/mcp", "http://[::1]:8080/agents/mcp"}},
		{"jwt of an issuer on this machine", jwtEnv("THAW_JWT_ISSUER", "http://127.0.0.1:9/", "THAW_JWT_JWKS_URL", "http://localhost:9/jwks"), onRun, 1, []string{"http://127.0.0.1:9/"}, nil, nil},
		{"API keys", env("THAW_AUTH", "apikey", "THAW_API_KEYS", keys), onRun, 1, nil, nil, nil},
		{"several", jwtEnv("THAW_AUTH", "apikey, jwt", "THAW_API_KEYS", keys), onRun, 2, []string{"https://idp.example.com"}, nil, nil},
		{"a gateway's JWT", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "jwt,lambda", "THAW_JWT_ISSUER", "https://idp.example.com", "THAW_PUBLIC_URL", publicURL), onLambda, 1, []string{"https://idp.example.com"}, nil, nil},
		{"a gateway's authorizer", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "lambda"), onLambda, 1, nil, nil, nil},
		{"a gateway's authorizer, with its issuer", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "lambda", "THAW_JWT_ISSUER", "https://idp.example.com", "THAW_JWT_AUDIENCE", "a", "THAW_PUBLIC_URL", publicURL), onLambda, 1, []string{"https://idp.example.com"}, nil, nil},
		{"a gateway's signatures", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "iam"), onLambda, 1, nil, nil, nil},
		{"a gateway beside JWTs, also without one", jwtEnv("THAW_AUTH", "jwt,gateway", "THAW_GATEWAY", "iam"), laptop, 2, []string{"https://idp.example.com"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			getenv := c.getenv
			if c.at.Ephemeral {
				getenv = func(name string) string {
					if name == "THAW_STORE" || name == "THAW_STATE_KEY" {
						return "none"
					}
					return c.getenv(name)
				}
			}
			o, problems := configured(getenv, c.at)
			if len(problems) > 0 || len(o.Auth) != c.schemes || !slices.Equal(o.AuthorizationServers, c.issuers) || !slices.Equal(o.ScopesSupported, c.supported) {
				t.Errorf("got %+v, problems %q", o, problems)
			}
			if c.local != nil && !slices.Equal(o.localURLs, c.local) {
				t.Errorf("local URLs %q", o.localURLs)
			}
			if _, err := New(testServer(new(int)), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// All that is wrong is said at once, each with the name of the setting and what is allowed;
// and what only another setting would read is no silent default.
func TestBadAuthSettings(t *testing.T) {
	for _, c := range []struct {
		name   string
		getenv func(string) string
		at     host.Host
		want   []string // one a problem: how it begins, and after a | what else it says
	}{
		{"nothing that jwt needs", env("THAW_AUTH", "jwt"), onRun, []string{
			"THAW_JWT_ISSUER must be set with THAW_AUTH=jwt|https URL", "THAW_JWT_JWKS_URL must be set with THAW_AUTH=jwt|https URL"}},
		{"nothing that apikey needs", env("THAW_AUTH", "apikey"), laptop, []string{"THAW_API_KEYS must be set with THAW_AUTH=apikey|file:PATH"}},
		{"nothing that gateway needs", env("THAW_AUTH", "gateway"), onLambda, []string{"THAW_GATEWAY must be set with THAW_AUTH=gateway|jwt, lambda, iam"}},
		{"nothing that a gateway's JWT needs", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "jwt"), onLambda, []string{"THAW_JWT_ISSUER must be set with THAW_GATEWAY=jwt|"}},
		{"settings of another scheme", jwtEnv("THAW_AUTH", "none", "THAW_JWT_AUDIENCE", "a", "THAW_JWT_ALGORITHMS", "ES256", "THAW_JWT_TENANT_CLAIM", "org",
			"THAW_GATEWAY", "jwt", "THAW_API_KEYS", "file:x"), laptop, []string{
			"THAW_JWT_ISSUER is read with THAW_AUTH=jwt or THAW_GATEWAY=jwt or THAW_GATEWAY=lambda only", "THAW_JWT_AUDIENCE is read with", "THAW_JWT_JWKS_URL is read with THAW_AUTH=jwt only",
			"THAW_JWT_ALGORITHMS is read with", "THAW_JWT_TENANT_CLAIM is read with", "THAW_GATEWAY is read with THAW_AUTH=gateway only", "THAW_API_KEYS is read with THAW_AUTH=apikey only"}},
		{"settings without a scheme", env("THAW_JWT_ISSUER", "https://idp.example.com", "THAW_PUBLIC_URL", publicURL), laptop, []string{"THAW_JWT_ISSUER is read with"}},
		{"JWKS for a gateway", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "jwt", "THAW_JWT_ISSUER", "https://idp.example.com", "THAW_JWT_JWKS_URL", "https://idp.example.com/jwks", "THAW_PUBLIC_URL", publicURL),
			onLambda, []string{"THAW_JWT_JWKS_URL is read with THAW_AUTH=jwt only"}},
		{"scopes without an issuer", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "iam", "THAW_SCOPES_SUPPORTED", "x"), onLambda, []string{"THAW_SCOPES_SUPPORTED is read with THAW_JWT_ISSUER only"}},
		{"tenants of callers without claims", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "lambda,iam", "THAW_JWT_TENANT_CLAIM", "org"), onLambda, []string{"THAW_JWT_TENANT_CLAIM cannot be set with THAW_GATEWAY=iam"}},
		{"no gateway there", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "iam"), laptop, []string{"THAW_AUTH=gateway: |host local"}},
		{"no gateway there either", env("THAW_AUTH", "gateway", "THAW_GATEWAY", "iam"), onRun, []string{"THAW_AUTH=gateway: |host cloudrun"}},
		{"not to be discovered", jwtEnv("THAW_PUBLIC_URL", "-"), onRun, []string{"THAW_PUBLIC_URL must be set with THAW_JWT_ISSUER"}},
		{"not to be discovered on a port that is not known", jwtEnv("THAW_PUBLIC_URL", "-", "THAW_ADDR", "localhost:0"), laptop, []string{"THAW_PUBLIC_URL must be set with THAW_JWT_ISSUER"}},
		{"none beside another", env("THAW_AUTH", "none,jwt"), laptop, []string{`THAW_AUTH="none,jwt": none stands alone|none, or a comma list`}},
		{"no such scheme", env("THAW_AUTH", "jwt,basic"), laptop, []string{"THAW_AUTH=(not shown): item 2 is none of them|none, or a comma list"}},
		{"a scheme twice", env("THAW_AUTH", "jwt,jwt"), laptop, []string{`THAW_AUTH="jwt,jwt": item 2 is there twice|`}},
		{"every JWT setting wrong", jwtEnv("THAW_JWT_ISSUER", "idp.example.com", "THAW_JWT_AUDIENCE", "a b", "THAW_JWT_JWKS_URL", "http://idp.example.com/jwks", "THAW_JWT_ALGORITHMS", "HS256"), laptop, []string{
			`THAW_JWT_ISSUER="idp.example.com": |https`, `THAW_JWT_AUDIENCE="a b": |comma list`, `THAW_JWT_JWKS_URL="http://idp.example.com/jwks": it is http|https`, `THAW_JWT_ALGORITHMS="HS256": item 1 is none of them|RS256`}},
		{"an issuer with a query", jwtEnv("THAW_JWT_ISSUER", "https://idp.example.com/?x"), laptop, []string{`THAW_JWT_ISSUER="https://idp.example.com/?x": issuer: it has a query`}},
		{"lists of nothing", jwtEnv("THAW_JWT_AUDIENCE", ",", "THAW_JWT_ALGORITHMS", ", ,", "THAW_SCOPES_SUPPORTED", ","), laptop, []string{"THAW_JWT_AUDIENCE=", "THAW_JWT_ALGORITHMS=", "THAW_SCOPES_SUPPORTED="}},
		{"a scope that is none", jwtEnv("THAW_SCOPES_SUPPORTED", `a,b"c`), laptop, []string{"THAW_SCOPES_SUPPORTED="}},
		{"the scope of refresh tokens", jwtEnv("THAW_SCOPES_SUPPORTED", "mcp,offline_access"), laptop, []string{"THAW_SCOPES_SUPPORTED=|offline_access is between"}},
		{"no file", env("THAW_AUTH", "apikey", "THAW_API_KEYS", "file:/nowhere/at/all"), laptop, []string{"THAW_AUTH=apikey: |/nowhere/at/all"}},
		{"a URL that is wrong already", jwtEnv("THAW_PUBLIC_URL", "ftp://x/"), onRun, []string{`THAW_PUBLIC_URL="ftp://x/": `}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, problems := configured(func(name string) string {
				if name == "THAW_STORE" || name == "THAW_STATE_KEY" {
					return "none"
				}
				return c.getenv(name)
			}, c.at)
			for _, want := range c.want {
				begins, says, _ := strings.Cut(want, "|")
				if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, begins) && strings.Contains(p, says) }) {
					t.Errorf("no problem %q in %q", want, problems)
				}
			}
			if len(problems) != len(c.want) || len(o.Auth) > 0 {
				t.Errorf("%d schemes, problems %q", len(o.Auth), problems)
			}
		})
	}
}

// A credential in the wrong place is not repeated into the log.
func TestAuthSecretsAreNotShown(t *testing.T) {
	for _, getenv := range []func(string) string{
		env("THAW_AUTH", "hunter2"), env("THAW_AUTH", "jwt,hunter2"), env("THAW_AUTH", "apikey", "THAW_API_KEYS", "hunter2"),
		jwtEnv("THAW_JWT_ISSUER", "https://user:hunter2@idp.example.com"), jwtEnv("THAW_JWT_JWKS_URL", "https://user:hunter2@idp.example.com/jwks"),
	} {
		_, problems := configured(getenv, laptop)
		if text := strings.Join(problems, "\n"); len(problems) == 0 || strings.Contains(text, "hunter2") {
			t.Errorf("problems %q", problems)
		}
	}
}

// The banner and the warnings say what is true.
func TestAuthIsSaid(t *testing.T) {
	run := func(getenv func(string) string, kits ...Kit) string {
		log := &lockedBuffer{}
		p := program{server: scopedServer(new(int)), getenv: getenv, out: log, err: log, kits: kits}
		r, err := p.ready(false)
		if err != nil {
			t.Fatal(err)
		}
		r.handler.warnAnonymous(r.options.Logger)
		p.banner(r, tcpAddr("127.0.0.1:8080"))
		return log.String()
	}
	keys := "file:" + keyFile(t)
	for name, c := range map[string]struct {
		got, has, lacks string
	}{
		"none on a laptop": {run(env()), "(no auth, no store", "whoever reaches"},
		"scopes and none":  {run(env()), `refused="[prompt p resource docs://secret resource template item://{id} tool t]"`, "--header"},
		"none in public":   {run(env("THAW_PUBLIC_URL", publicURL)), "whoever reaches this server may call every tool", "--header"},
		"API keys":         {run(env("THAW_AUTH", "apikey", "THAW_API_KEYS", keys, "THAW_PUBLIC_URL", publicURL)), "(auth apikey, no store", "WARN"},
		"how to call":      {run(env("THAW_AUTH", "apikey", "THAW_API_KEYS", keys)), `--header "Authorization: Bearer`, "no auth"},
		"a kit's":          {run(env(), Kit{Configure: func(o *Options) error { o.Auth = []auth.Scheme{people()}; return nil }}), "(auth, no store", "WARN"},
	} {
		if !strings.Contains(c.got, c.has) || strings.Contains(c.got, c.lacks) {
			t.Errorf("%s: %s", name, c.got)
		}
	}
}

type tcpAddr string

func (tcpAddr) Network() string  { return "tcp" }
func (a tcpAddr) String() string { return string(a) }

func TestAPIKeyCommand(t *testing.T) {
	code, out, errs := runProgram(t, testServer(new(int)), env("THAW_AUTH", "not read"), "", "apikey", "new", "robot", "files:read", "files:write")
	key, line, _ := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	if code != 0 || !strings.HasPrefix(key, "thaw_") || !strings.HasPrefix(line, "robot ") || !strings.HasSuffix(line, " files:read,files:write") || strings.Contains(line, key) || !strings.Contains(errs, "THAW_API_KEYS") {
		t.Errorf("exit %d, out %q, err %q", code, out, errs)
	}
	for _, args := range [][]string{{"apikey"}, {"apikey", "new"}, {"apikey", "old", "x"}, {"apikey", "new", "two words"}, {"apikey", "new", "robot", "a,b"}} {
		if code, out, _ := runProgram(t, testServer(new(int)), env(), "", args...); code != 2 || out != "" {
			t.Errorf("%q: exit %d, out %q", args, code, out)
		}
	}

	// The line is one that the file takes, and the key is good with it.
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	o, problems := configured(env("THAW_AUTH", "apikey", "THAW_API_KEYS", "file:"+path), laptop)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o.Logger = nil
	ran := 0
	h, _ := newHandler(t, scopedServer(&ran), *o)
	if got := do(t, h, callT().as(key).request(t)); got.status != 200 || ran != 1 {
		t.Errorf("with the key: %d %s", got.status, got.raw)
	}
	got := do(t, h, callT().as(key+"x").request(t))
	if want := `Bearer error="invalid_token"`; got.status != 401 || got.header.Get("WWW-Authenticate") != want {
		t.Errorf("with another: %d %q", got.status, got.header.Get("WWW-Authenticate"))
	}
}

// On this machine the server's own addresses will do, and only those.
func TestMetadataOnALaptop(t *testing.T) {
	o, problems := configured(jwtEnv("THAW_PUBLIC_URL", "-", "THAW_ADDR", "localhost:9000"), laptop)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	h, _ := newHandler(t, testServer(new(int)), *o)
	for host, want := range map[string]string{
		"localhost:9000": "http://localhost:9000/mcp", "127.0.0.1:9000": "http://127.0.0.1:9000/mcp", "[::1]:9000": "http://[::1]:9000/mcp",
		"evil.example:9000": "http://localhost:9000/mcp",
	} {
		if d, got := metadata(t, h, host, wellKnown); d.Resource != want {
			t.Errorf("%s: %d %s", host, got.status, got.raw)
		}
	}
	if !h.local {
		t.Error("a server that only this machine reaches masks its errors")
	}
}

// A list of nothing is no value: it must not be taken for none, least of all where it would
// let everybody in.
func TestListsOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	_, line, err := auth.NewAPIKey("robot", nil)
	if err != nil || os.WriteFile(path, []byte(line+"\n"), 0o600) != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, name := range []string{"THAW_PUBLIC_URL", "THAW_ALLOWED_ORIGINS", "THAW_TOOLS", "THAW_STATE_KEY"} {
		for _, value := range []string{",", " , ,"} {
			code, _, errs := runProgram(t, testServer(&ran), env("THAW_AUTH", "apikey", "THAW_API_KEYS", "file:"+path, name, value), "", "check")
			if code != 2 || !strings.Contains(errs, name) {
				t.Errorf("%s=%q: exit %d, %q", name, value, code, errs)
			}
		}
	}
}
