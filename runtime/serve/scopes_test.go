package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/mcp"
)

// scopedServer has one of everything that declares scopes. ran counts runs.
func scopedServer(ran *int) thaw.Server {
	read := func(context.Context) ([]mcp.ResourceContents, error) {
		*ran++
		return []mcp.ResourceContents{mcp.TextResource("", "", "x")}, nil
	}
	suggest := func(context.Context, string, map[string]string) ([]string, error) { *ran++; return []string{"x"}, nil }
	return thaw.Server{
		Name: "test", Version: "1",
		Tools: []*thaw.Tool{
			tool1(func(context.Context) (any, error) { *ran++; return "x", nil }, &thaw.ToolOptions{Scopes: []string{"files:read", "files:write"}}),
			thaw.NewTool("free", "", func(context.Context, struct{}) (string, error) { *ran++; return "x", nil }, nil),
		},
		Prompts: []*thaw.Prompt{thaw.NewPrompt("p", "", func(context.Context, struct {
			A string `json:"a"`
		}) ([]mcp.PromptMessage, error) {
			*ran++
			return []mcp.PromptMessage{{Role: mcp.RoleUser, Content: &mcp.TextContent{Text: "x"}}}, nil
		}, &thaw.PromptOptions{Scopes: []string{"files:read"}, Complete: map[string]thaw.CompleteFunc{"a": suggest}})},
		Resources: []*thaw.Resource{
			thaw.NewResource("docs://secret", "secret", read, &thaw.ResourceOptions{Scopes: []string{"files:read"}}),
			thaw.NewResource("docs://free", "free", read, nil),
		},
		ResourceTemplates: []*thaw.ResourceTemplate{thaw.NewResourceTemplate("item://{id}", "item", func(ctx context.Context, _ struct {
			ID string `json:"id"`
		}) ([]mcp.ResourceContents, error) {
			return read(ctx)
		}, &thaw.ResourceOptions{Scopes: []string{"items:read"}, Complete: map[string]thaw.CompleteFunc{"id": suggest}})},
	}
}

func implies(granted, required string) bool {
	prefix, ok := strings.CutSuffix(granted, "*")
	return ok && strings.HasPrefix(required, prefix)
}

func complete1(kind, member, name, argument string) post {
	return post{method: "completion/complete", params: map[string]any{
		"ref": map[string]any{"type": kind, member: name}, "argument": map[string]any{"name": argument, "value": ""}}}
}

// the declared scopes, all of them in one challenge.
func TestDeclaredScopes(t *testing.T) {
	call := callT()
	read := func(uri string) post { return post{method: "resources/read", params: map[string]any{"uri": uri}} }
	get := post{method: "prompts/get", params: map[string]any{"name": "p", "arguments": map[string]any{"a": "x"}}}
	for _, c := range []struct {
		name, token string
		p           post
		missing     string // the scopes of the challenge; "": it runs
	}{
		{"tool, both", "alice-token", call, ""},
		{"tool, by a broad scope", "admin-token", call, ""},
		{"tool, none", "guest-token", call, "files:read files:write"},
		{"tool, one of two", "reader-token", call, "files:read files:write"},
		{"tool that needs none", "guest-token", post{method: "tools/call", params: map[string]any{"name": "free"}}, ""},
		{"prompt", "reader-token", get, ""},
		{"prompt, none", "guest-token", get, "files:read"},
		{"completion of a prompt", "reader-token", complete1("ref/prompt", "name", "p", "a"), ""},
		{"completion of a prompt, none", "guest-token", complete1("ref/prompt", "name", "p", "a"), "files:read"},
		{"resource", "reader-token", read("docs://secret"), ""},
		{"resource, none", "guest-token", read("docs://secret"), "files:read"},
		{"resource that needs none", "guest-token", read("docs://free"), ""},
		{"template, others", "alice-token", read("item://1"), "items:read"},
		{"completion of a template, others", "alice-token", complete1("ref/resource", "uri", "item://{id}", "id"), "items:read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := 0
			o := identified()
			known := people()
			known.callers["reader-token"] = person("reader", "files:read")
			o.Auth, o.Implies = []auth.Scheme{known}, implies
			h, log := newHandler(t, scopedServer(&ran), o)
			got := do(t, h, c.p.as(c.token).request(t))
			if c.missing == "" {
				if got.status != 200 || ran != 1 || got.header.Get("WWW-Authenticate") != "" {
					t.Errorf("got %d %s, ran %d", got.status, got.raw, ran)
				}
				return
			}
			challenge := got.header.Get("WWW-Authenticate")
			params := challengeParams(t, challenge)
			if got.status != 403 || got.code() != -32600 || got.reason() != "insufficient_scope" || ran != 0 || string(got.last().ID) != "7" {
				t.Errorf("got %d %s, ran %d", got.status, got.raw, ran)
			}
			if params["error"] != "insufficient_scope" || params["scope"] != c.missing || !strings.Contains(challenge, metadataParam) {
				t.Errorf("challenge %q", challenge)
			}
			listed, _ := json.Marshal(strings.Fields(c.missing))
			if !strings.Contains(got.raw, `"scopes":`+string(listed)) {
				t.Errorf("the body does not say the scopes: %s", got.raw)
			}
			if log.String() != "" {
				t.Errorf("what the client was told is in the log: %s", log)
			}
		})
	}
}

// Without a hierarchy a broad scope is just another one, and a login of the moment
// decides, not one before.
func TestScopesAreJudgedPerRequest(t *testing.T) {
	ran := 0
	o := identified()
	known := people()
	o.Auth = []auth.Scheme{known}
	h, _ := newHandler(t, scopedServer(&ran), o)
	if got := do(t, h, callT().as("admin-token").request(t)); got.status != 403 {
		t.Errorf("a scope implied another without being told so: %d", got.status)
	}
	for _, c := range []struct {
		scopes []string
		status int
	}{{[]string{"files:read", "files:write"}, 200}, {[]string{"files:read"}, 403}, {[]string{"files:write", "files:read", "x"}, 200}} {
		known.callers["alice-token"] = person("alice", c.scopes...)
		if got := do(t, h, callT().as("alice-token").request(t)); got.status != c.status {
			t.Errorf("with %v: %d, want %d", c.scopes, got.status, c.status)
		}
	}
}

// An anonymous caller has no scopes. Where it could log in it is asked to, else it is
// refused.
func TestScopesOfAnonymousCallers(t *testing.T) {
	ran := 0
	o := identified()
	o.Auth = append(o.Auth, schemeFunc(func(*http.Request) (thaw.Principal, bool, error) { return *anonymous, true, nil }))
	o.Auth[0] = &tokens{prefix: "alice", callers: people().callers}
	h, _ := newHandler(t, scopedServer(&ran), o)
	got := do(t, h, callT().request(t))
	params := challengeParams(t, got.header.Get("WWW-Authenticate"))
	if got.status != 401 || params["scope"] != "files:read files:write" || params["error"] != "" || ran != 0 {
		t.Errorf("got %d, challenge %v", got.status, params)
	}
	if got := do(t, h, post{method: "tools/list"}.request(t)); got.status != 200 {
		t.Errorf("what needs no scope: %d", got.status)
	}

	h, _ = newHandler(t, scopedServer(&ran), Options{Host: offLoopback})
	got = do(t, h, callT().request(t))
	if want := `Bearer error="insufficient_scope", scope="files:read files:write"`; got.status != 403 || got.header.Get("WWW-Authenticate") != want || ran != 0 {
		t.Errorf("got %d, challenge %q", got.status, got.header.Get("WWW-Authenticate"))
	}
}

// a first login is for what everything needs, and no more.
func TestScopesOfTheFirstChallenge(t *testing.T) {
	scoped := func(scopes ...string) *thaw.Tool {
		return thaw.NewTool("t"+fmt.Sprint(scopes[len(scopes)-1][:1]), "", func(context.Context, struct{}) (string, error) { return "", nil }, &thaw.ToolOptions{Scopes: scopes})
	}
	for name, c := range map[string]struct {
		tools     []*thaw.Tool
		supported []string
		want      string
	}{
		"none":                 {[]*thaw.Tool{tool1(nil2, nil)}, nil, ""},
		"common":               {[]*thaw.Tool{scoped("use", "a"), scoped("b", "use", "c")}, nil, "use"},
		"nothing common":       {[]*thaw.Tool{scoped("a"), scoped("b")}, nil, ""},
		"one that needs none":  {[]*thaw.Tool{scoped("use", "a"), tool1(nil2, nil)}, nil, ""},
		"the operator's words": {[]*thaw.Tool{scoped("use", "a")}, []string{"openid", "mcp"}, "openid mcp"},
	} {
		o := identified()
		o.ScopesSupported = c.supported
		h, _ := newHandler(t, thaw.Server{Tools: c.tools}, o)
		for _, token := range []string{"", "mallory"} {
			got := do(t, h, post{method: "tools/list"}.as(token).request(t))
			if params := challengeParams(t, got.header.Get("WWW-Authenticate")); got.status != 401 || params["scope"] != c.want {
				t.Errorf("%s: %d, challenge %v, want scope %q", name, got.status, params, c.want)
			}
		}
	}
}

func nil2(context.Context) (any, error) { return nil, nil }

// scopes that depend on the arguments become a 403 as long as there can be one, and
// what the model reads from then on.
func TestRequireScopes(t *testing.T) {
	sse := map[string]string{"Accept": "text/event-stream"}
	for _, c := range []struct {
		name    string
		fn      func(ctx context.Context) (any, error)
		token   string
		headers map[string]string
		scope   string // of the challenge; "": no 403
		text    string // of an isError result
	}{
		{"has it", func(ctx context.Context) (any, error) { return "x", thaw.RequireScopes(ctx, "files:write") }, "alice-token", nil, "", ""},
		{"has it by a broad one", func(ctx context.Context) (any, error) { return "x", thaw.RequireScopes(ctx, "files:write") }, "admin-token", nil, "", ""},
		{"asks for nothing", func(ctx context.Context) (any, error) { return "x", thaw.RequireScopes(ctx) }, "alice-token", nil, "", ""},
		{"lacks it", func(ctx context.Context) (any, error) { return nil, thaw.RequireScopes(ctx, "mail:send") }, "alice-token", nil, "files:read mail:send", ""},
		{"lacks one of some", func(ctx context.Context) (any, error) {
			return nil, thaw.RequireScopes(ctx, "mail:send", "files:read", "files:write")
		}, "alice-token", nil, "files:read mail:send files:write", ""},
		{"wrapped", func(ctx context.Context) (any, error) {
			return nil, fmt.Errorf("secret: %w", thaw.RequireScopes(ctx, "mail:send"))
		}, "alice-token", nil, "files:read mail:send", ""},
		{"beside a text of the author's", func(ctx context.Context) (any, error) {
			return nil, errors.Join(thaw.Errorf("x"), thaw.RequireScopes(ctx, "mail:send"))
		}, "alice-token", nil, "files:read mail:send", ""},
		{"to a client that reads only streams", func(ctx context.Context) (any, error) { return nil, thaw.RequireScopes(ctx, "mail:send") }, "alice-token", sse, "files:read mail:send", ""},
		{"once it streams", func(ctx context.Context) (any, error) {
			thaw.Progress(ctx, 1, 2, "half")
			return nil, thaw.RequireScopes(ctx, "mail:send")
		}, "alice-token", nil, "", "this needs the scope files:read mail:send"},
		{"what can be no scope", func(ctx context.Context) (any, error) {
			return nil, thaw.RequireScopes(ctx, `x", realm="y`)
		}, "alice-token", nil, "", "t failed (reference "},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := identified()
			o.Implies = implies
			h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(c.fn, &thaw.ToolOptions{Scopes: []string{"files:read"}})}}, o)
			p := withMeta(`{"progressToken":1}`)
			p.headers = c.headers
			got := do(t, h, p.as(c.token).request(t))
			if strings.Contains(got.raw, "secret") {
				t.Errorf("the answer leaks: %s", got.raw)
			}
			switch challenge := got.header.Get("WWW-Authenticate"); {
			case c.scope != "":
				if params := challengeParams(t, challenge); got.status != 403 || got.reason() != "insufficient_scope" || params["scope"] != c.scope || params["error"] != "insufficient_scope" {
					t.Errorf("got %d %q %s", got.status, challenge, got.raw)
				}
			case got.status != 200 || challenge != "":
				t.Errorf("got %d %q %s", got.status, challenge, got.raw)
			case c.text != "":
				if got.result(t)["isError"] != true || !strings.Contains(got.raw, c.text) {
					t.Errorf("got %s", got.raw)
				}
			default:
				if got.result(t)["isError"] != nil {
					t.Errorf("got %s", got.raw)
				}
			}
		})
	}
}

// Prompts and resources have no results for a model to read errors from.
func TestRequireScopesElsewhere(t *testing.T) {
	s := thaw.Server{Resources: []*thaw.Resource{thaw.NewResource("docs://a", "a", func(ctx context.Context) ([]mcp.ResourceContents, error) {
		return nil, thaw.RequireScopes(ctx, "mail:send")
	}, nil)}}
	h, _ := newHandler(t, s, identified())
	got := do(t, h, post{method: "resources/read", params: map[string]any{"uri": "docs://a"}}.as("alice-token").request(t))
	if got.status != 403 || got.reason() != "insufficient_scope" || got.header.Get("WWW-Authenticate") == "" {
		t.Errorf("got %d %s", got.status, got.raw)
	}
}

// L-08: a change of what takes scopes to read is told to those that have them.
func TestUpdatesNeedScopes(t *testing.T) {
	ran := 0
	o := identified()
	o.Auth = []auth.Scheme{people()}
	h, _ := newHandler(t, scopedServer(&ran), o)
	server := httptest.NewServer(h)
	defer server.Close()
	defer h.Drain()
	listen := func(token string) *bufio.Scanner {
		p := post{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"docs://secret", "docs://free"}}}}
		lines, _ := openStream(t, server, p.as(token))
		return lines
	}
	alice, guest := listen("alice-token"), listen("guest-token")
	next(t, alice)
	next(t, guest)
	for _, uri := range []string{"docs://secret", "docs://free"} {
		if err := h.ResourceUpdated(t.Context(), uri); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := next(t, alice), next(t, alice); !strings.Contains(a, "docs://secret") || !strings.Contains(b, "docs://free") {
		t.Errorf("alice heard %s, %s", a, b)
	}
	if got := next(t, guest); !strings.Contains(got, "docs://free") {
		t.Errorf("guest heard %s", got)
	}
}

// A ctx that a handler kept answers nothing once the call has ended.
func TestRequireScopesAfterTheCall(t *testing.T) {
	var kept context.Context
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) { kept = ctx; return 1, nil }, nil)}}, identified())
	do(t, h, callT().as("alice-token").request(t))
	if err := thaw.RequireScopes(kept, "files:read"); !errors.Is(err, thaw.ErrNoCall) {
		t.Error(err)
	}
}
