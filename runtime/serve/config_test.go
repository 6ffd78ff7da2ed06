package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

func TestConfigure(t *testing.T) {
	laptop := host.Host{Name: "local", Facts: resident}
	o, problems := configure(env(
		"THAW_PUBLIC_URL", "https://a.example/mcp, https://b.example/mcp",
		"THAW_ALLOWED_ORIGINS", "https://app.example",
		"THAW_TOOLS", "a,b",
		"THAW_BASE_PATH", "/agents",
		"THAW_REQUEST_TIMEOUT", "90s",
		"THAW_MAX_BODY_BYTES", "1024",
		"THAW_AUTH", "none", "THAW_STORE", "none", "THAW_STATE_KEY", "none", "THAW_MCTP", "on", "THAW_ROLE", "all",
	), environmentOf(laptop, nil))
	want := &Options{
		PublicURLs: []string{"https://a.example/mcp", "https://b.example/mcp"}, AllowedOrigins: []string{"https://app.example"},
		Only: []string{"a", "b"}, BasePath: "/agents", MCTP: true, Host: resident,
		Limits: Limits{BodyBytes: 1024, RequestTimeout: 90 * time.Second}, role: roleAll,
	}
	if len(problems) > 0 || !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, %q", o, problems)
	}

	o, problems = configure(env(), environmentOf(laptop, nil))
	if len(problems) > 0 || o.Limits.RequestTimeout != 5*time.Minute || o.MCTP {
		t.Errorf("defaults: %+v, %q", o, problems)
	}
}

// All bad settings are reported at once, each with its name, what it said and what is
// allowed.
func TestBadSettings(t *testing.T) {
	secret := map[string]bool{"THAW_PUBLIC_URL": true, "THAW_AUTH": true, "THAW_STORE": true, "THAW_STATE_KEY": true}
	for _, c := range []struct{ name, value string }{
		{"THAW_ADDR", "8080"}, {"THAW_ADDR", "localhost:http"}, {"THAW_ADDR", "localhost:70000"},
		{"THAW_ALLOWED_ORIGINS", "https://a.example:443"}, {"THAW_PUBLIC_URL", "https://user:hunter2@a.example/"},
		{"THAW_PUBLIC_URL", "mcp.example.com"}, {"THAW_PUBLIC_URL", "https://a/b#c"},
		{"THAW_BASE_PATH", "agents"},
		{"THAW_ALLOWED_ORIGINS", "*"}, {"THAW_ALLOWED_ORIGINS", "https://a/"}, {"THAW_ALLOWED_ORIGINS", "HTTPS://a"}, {"THAW_ALLOWED_ORIGINS", "null"},
		{"THAW_AUTH", "basic"}, {"THAW_STORE", "dynamodb:table"}, {"THAW_STATE_KEY", "file:x"}, {"THAW_MCTP", "maybe"}, {"THAW_ROLE", "boss"},
		{"THAW_LAMBDA_STREAMING", "yes"}, {"THAW_LAMBDA_STREAMING", "ON"},
		{"THAW_MAX_BODY_BYTES", "4MB"}, {"THAW_MAX_JSON_DEPTH", "0"}, {"THAW_MAX_HEADER_BYTES", "-1"}, {"THAW_MAX_HEADER_BYTES", "65537"}, {"THAW_MAX_STREAMS", "0"}, {"THAW_PAGE_ITEMS", "many"},
		{"THAW_REQUEST_TIMEOUT", "30"}, {"THAW_REQUEST_TIMEOUT", "-1s"},
	} {
		_, problems := configure(env(c.name, c.value), environmentOf(host.Host{Name: "local", Facts: resident}, nil))
		if len(problems) != 1 || !strings.HasPrefix(problems[0], c.name+"=") || !secret[c.name] && !strings.Contains(problems[0], c.value) || !strings.Contains(problems[0], "allowed is ") {
			t.Errorf("%s=%s: %q", c.name, c.value, problems)
		}
	}
	// A credential in the wrong place is not repeated into the log.
	for name, value := range map[string]string{"THAW_STATE_KEY": "hunter2", "THAW_STORE": "postgres://user:hunter2@db/x",
		"THAW_AUTH": "apikey:hunter2", "THAW_PUBLIC_URL": "ftp://user:hunter2@host/"} {
		if _, problems := configure(env(name, value), environmentOf(host.Host{Name: "local"}, nil)); len(problems) != 1 || strings.Contains(problems[0], "hunter2") {
			t.Errorf("%s: %q", name, problems)
		}
	}
	_, problems := configure(env("THAW_ADDR", "x", "THAW_ROLE", "y"), environmentOf(host.Host{Name: "local"}, nil))
	if len(problems) != 2 {
		t.Errorf("%q", problems)
	}
}

// Nothing open or forgetful is deployed by leaving a setting out.
func TestNoDefaultsOffTheLaptop(t *testing.T) {
	_, problems := configure(env(), environmentOf(host.Host{Name: "lambda", Ephemeral: true}, nil))
	all := strings.Join(problems, "\n")
	if len(problems) != 3 || !strings.Contains(all, "THAW_AUTH must be set on lambda") || !strings.Contains(all, "THAW_STORE") || !strings.Contains(all, "THAW_STATE_KEY") {
		t.Errorf("%q", problems)
	}
	if _, problems := configure(env("THAW_AUTH", "none", "THAW_STORE", "none", "THAW_STATE_KEY", "none"), environmentOf(host.Host{Name: "lambda", Ephemeral: true}, nil)); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
}

// runProgram runs a binary's main with args.
func runProgram(t *testing.T, s thaw.Server, getenv func(string) string, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := program{server: s, getenv: getenv, in: strings.NewReader(stdin), out: &out, err: &errs}
	code = p.main(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestCommands(t *testing.T) {
	ran := 0
	for _, c := range []struct {
		name     string
		args     []string
		stdin    string
		code     int
		out, err string // substrings; out "": nothing
	}{
		{"check", []string{"check"}, "", 0, "ok: host local, 2 tools, 1 prompts, 1 resources, 1 templates\n", ""},
		{"check with an argument", []string{"check", "x"}, "", 2, "", "takes no arguments"},
		{"tools", []string{"tools"}, "", 0, "echo                     returns the text\n", ""},
		{"tools as JSON", []string{"tools", "-json"}, "", 0, `{"name":"echo",`, ""},
		{"call", []string{"call", "echo", `{"text":"hi"}`}, "", 0, "hi\n", ""},
		{"call from standard input", []string{"call", "echo", "-"}, `{"text":"in"}`, 0, "in\n", ""},
		{"call as JSON", []string{"call", "-json", "echo", `{"text":"hi"}`}, "", 0, `{"resultType":"complete","content":[{"type":"text","text":"hi"}]`, ""},
		{"call with mirrored parameters", []string{"call", "-json", "route", `{"region":"日本語","priority":4}`}, "", 0, `"structuredContent":{"region":"日本語","priority":4}`, ""},
		{"call as JSON that fails", []string{"call", "-json", "echo", `{}`}, "", 1, `"isError":true`, "the tool failed"},
		{"call with wrong arguments", []string{"call", "echo", `{"txt":"hi"}`}, "", 1, "", "text"},
		{"call with no JSON", []string{"call", "echo", `{`}, "", 2, "", "incomplete JSON"},
		{"call of no such tool", []string{"call", "nope"}, "", 1, "", `unknown tool "nope"`},
		{"call without a name", []string{"call"}, "", 2, "", "usage"},
		{"unknown flag", []string{"tools", "-x"}, "", 2, "", "usage"},
		{"unknown command", []string{"serve"}, "", 2, "", `unknown command "serve"`},
		{"help", []string{"help"}, "", 0, "usage:", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := runProgram(t, testServer(&ran), env(), c.stdin, c.args...)
			if code != c.code || !strings.Contains(out, c.out) || c.out == "" && out != "" || !strings.Contains(errs, c.err) {
				t.Errorf("exit %d, out %q, err %q", code, out, errs)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	ran := 0
	if code, _, errs := runProgram(t, testServer(&ran), env("THAW_AUTH", "jwt", "THAW_ADDR", "x", "THAW_TOOLS", "nope"), ""); code != 2 || !strings.Contains(errs, "THAW_AUTH") || !strings.Contains(errs, "THAW_ADDR") || !strings.Contains(errs, `"nope"`) {
		t.Errorf("bad settings: %d %q", code, errs)
	}
	if code, _, errs := runProgram(t, testServer(&ran), env("THAW_TOOLS", "nope"), ""); code != 2 || !strings.Contains(errs, `"nope"`) {
		t.Errorf("no such tool: %d %q", code, errs)
	}
	if code, _, errs := runProgram(t, testServer(&ran), env("THAW_ADDR", "192.0.2.1:1"), ""); code != 1 || !strings.Contains(errs, "listen on 192.0.2.1:1") {
		t.Errorf("cannot listen: %d %q", code, errs)
	}
	if err := (&BadSettingsError{[]string{"THAW_X: a", "tool b\ntool c"}}); err.Error() != "bad settings:\n  THAW_X: a\n  tool b\n  tool c" {
		t.Error(err)
	}
	p := program{server: testServer(&ran), environ: []string{"PATH=x", "THAW_ALOWED_ORIGINS=x", "THAW_TOOLS=x"}, getenv: env(), out: os.Stdout, err: os.Stderr}
	var bad *BadSettingsError
	if _, err := p.ready(false); !errors.As(err, &bad) || len(bad.Problems) != 1 || !strings.Contains(bad.Problems[0], "THAW_ALOWED_ORIGINS is no setting") {
		t.Errorf("a misspelt setting: %v", err)
	}
}

// Run serves, says where in one line, and stops in order when its context ends.
func TestRun(t *testing.T) {
	ran := 0
	ctx, stop := context.WithCancel(t.Context())
	log := &lockedBuffer{}
	p := program{server: testServer(&ran), getenv: env("THAW_ADDR", "localhost:0"), out: log, err: log,
		kits: []Kit{{
			Configure: func(o *Options) error { o.Ready = func(*Handler) { _, _ = log.Write([]byte("ready\n")) }; return nil },
			Wrap: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Wrapped", "yes")
					next.ServeHTTP(w, r)
				})
			},
		}}}
	done := make(chan error, 1)
	go func() { done <- p.serve(ctx) }()
	var url string
	for deadline := time.Now().Add(10 * time.Second); url == ""; {
		if time.Now().After(deadline) {
			t.Fatalf("no banner: %s", log)
		}
		if _, after, ok := strings.Cut(log.String(), "test serves MCP at "); ok {
			url, _, _ = strings.Cut(after, " ")
		}
	}
	if !strings.HasPrefix(log.String(), "ready\n") || strings.Count(log.String(), "\n") != 2 {
		t.Errorf("banner: %q", log)
	}
	resp, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("X-Wrapped") != "yes" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A host without a socket has no banner, and is picked by its own sign.
func TestRunOnAnotherHost(t *testing.T) {
	ran := 0
	log := &lockedBuffer{}
	served := errors.New("served")
	elsewhere := host.Host{Name: "elsewhere", Here: func(getenv func(string) string) bool { return getenv("ELSEWHERE") != "" }, Ephemeral: true,
		Serve: func(_ context.Context, a host.App) error {
			a.Started(nil)
			a.Drain()
			return served
		}}
	settings := []string{"ELSEWHERE", "1", "THAW_AUTH", "none", "THAW_STORE", "none", "THAW_STATE_KEY", "none"}
	p := program{server: testServer(&ran), getenv: env(settings...), out: log, err: log, kits: []Kit{{Hosts: []host.Host{elsewhere}}}}
	if err := p.serve(t.Context()); !errors.Is(err, served) {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, `"level":"WARN","msg":"THAW_AUTH=none`) || strings.Contains(text, "serves MCP") {
		t.Error(text)
	}
}

// A server whose schema does not compile stops at once where somebody sits at it.
func TestRunStopsOnABrokenSchema(t *testing.T) {
	broken := thaw.NewRawTool("broken", "", json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`),
		func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return nil, nil }, nil)
	s := thaw.Server{Name: "s", Tools: []*thaw.Tool{broken}}
	code, _, errs := runProgram(t, s, env("THAW_ADDR", "localhost:0"), "")
	if code != 2 || !strings.Contains(errs, `tool "broken": input schema`) {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := runProgram(t, s, env(), "", "check"); code != 2 || !strings.Contains(errs, `tool "broken"`) {
		t.Errorf("check: exit %d: %s", code, errs)
	}
}
