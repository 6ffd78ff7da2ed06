package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
)

func read(uri string) post { return post{method: "resources/read", params: map[string]any{"uri": uri}} }

// F-33 to F-36.
func TestReadResource(t *testing.T) {
	ran := 0
	s := testServer(&ran)
	s.Resources = append(s.Resources,
		thaw.NewResource("docs://empty", "empty", func(context.Context) ([]mcp.ResourceContents, error) { return nil, nil }, nil),
		thaw.NewResource("docs://broken", "broken", func(context.Context) ([]mcp.ResourceContents, error) { return nil, errors.New("secret") }, nil),
		thaw.NewResource("docs://item/fixed", "fixed", func(context.Context) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.BlobResource("docs://other", "x/y", nil)}, nil
		}, &thaw.ResourceOptions{TTL: 1500000000, Public: true}),
	)
	h, _ := newHandler(t, s, Options{Host: offLoopback})
	for _, c := range []struct {
		uri, want string // of the result's or the error's members
		code      int
	}{
		{"docs://a", `"contents":[{"uri":"docs://a","mimeType":"text/plain","text":"A"}],"ttlMs":0,"cacheScope":"private"`, 0},
		{"docs://item/7", `"contents":[{"uri":"docs://item/7","text":"7"}],"ttlMs":0,"cacheScope":"private"`, 0},
		{"docs://item/a%2Fb", `"text":"a/b"`, 0},
		{"docs://item/fixed", `"contents":[{"uri":"docs://other","mimeType":"x/y","blob":""}],"ttlMs":1500,"cacheScope":"public"`, 0},
		{"docs://item/gone", `"data":{"reason":"unknown_resource","uri":"docs://item/gone"}`, -32602},
		{"docs://empty", `"uri":"docs://empty"`, -32602},
		{"docs://nope", `"uri":"docs://nope"`, -32602},
		{"docs://item/a/b", `"reason":"unknown_resource"`, -32602},
		{"xdocs://item/a", `"reason":"unknown_resource"`, -32602},
		{"docs://item/%ff", `"reason":"unknown_resource"`, -32602},
		{"", `"reason":"unknown_resource"`, -32602},
		{"docs://broken", `"message":"docs://broken failed (reference `, -32603},
	} {
		got := do(t, h, read(c.uri).request(t))
		if got.code() != c.code || !strings.Contains(got.raw, c.want) || strings.Contains(got.raw, "secret") {
			t.Errorf("%s: %s", c.uri, got.raw)
		}
	}
}

// F-29, F-30.
func TestGetPrompt(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	for _, c := range []struct {
		name, arguments string
		code            int
		want            string
	}{
		{"greet", `{"name":"Ada"}`, 0, `"description":"greets","messages":[{"role":"user","content":{"type":"text","text":"Greet Ada"}}]`},
		{"greet", `{"name":"Ada","tone":"!"}`, 0, `"text":"Greet Ada!"`},
		{"greet", `{}`, -32602, `argument \"name\" is required`},
		{"greet", `{"name":7}`, -32602, `must be a string`},
		{"greet", `{"name":"a","nmae":"b"}`, -32602, `its arguments are name, tone`},
		{"greet", `[]`, -32602, `arguments must be an object`},
		{"nope", `{}`, -32602, `unknown_prompt`},
	} {
		got := do(t, h, post{method: "prompts/get", params: map[string]any{"name": c.name, "arguments": json.RawMessage(c.arguments)}}.request(t))
		if got.code() != c.code || !strings.Contains(got.raw, c.want) {
			t.Errorf("%s %s: %s", c.name, c.arguments, got.raw)
		}
	}
}

// F-40 to F-42.
func TestComplete(t *testing.T) {
	ran := 0
	s := testServer(&ran)
	s.ResourceTemplates = append(s.ResourceTemplates, thaw.NewResourceTemplate("many://{n}", "many", func(context.Context, struct {
		N string `json:"n"`
	}) ([]mcp.ResourceContents, error) {
		return nil, thaw.ErrNotFound
	}, &thaw.ResourceOptions{Complete: map[string]thaw.CompleteFunc{"n": func(context.Context, string, map[string]string) ([]string, error) {
		return make([]string, 150), nil
	}}}))
	h, _ := newHandler(t, s, Options{Host: resident})
	const prompt, many = `{"type":"ref/prompt","name":"greet"}`, `{"type":"ref/resource","uri":"many://{n}"}`
	for _, c := range []struct {
		name, ref, argument, context string
		code                         int
		want                         string
	}{
		{"values", prompt, `{"name":"name","value":"x"}`, `{"arguments":{"tone":"T"}}`, 0, `"completion":{"values":["xa","xT"],"total":2,"hasMore":false}`},
		{"without context", prompt, `{"name":"name","value":""}`, ``, 0, `"values":["a",""]`},
		{"no suggestions for it", prompt, `{"name":"tone","value":"x"}`, ``, 0, `"completion":{"values":[],"total":0,"hasMore":false}`},
		{"too many", many, `{"name":"n","value":""}`, ``, 0, `"total":150,"hasMore":true`},
		{"unknown variable", many, `{"name":"m","value":""}`, ``, -32602, `its variables are n`},
		{"unknown argument", prompt, `{"name":"nope","value":""}`, ``, -32602, `its arguments are name, tone`},
		{"unknown prompt", `{"type":"ref/prompt","name":"x"}`, `{"name":"name","value":""}`, ``, -32602, `unknown_reference`},
		{"unknown template", `{"type":"ref/resource","uri":"docs://a"}`, `{"name":"name","value":""}`, ``, -32602, `unknown_reference`},
		{"unknown kind", `{"type":"ref/tool","name":"x"}`, `{"name":"name","value":""}`, ``, -32602, `unknown_reference`},
		{"no kind", `{}`, `{"name":"name","value":""}`, ``, -32602, `ref must be an object`},
		{"no argument", prompt, `{"name":"name"}`, ``, -32602, `argument must be an object`},
		{"context no object", prompt, `{"name":"name","value":""}`, `[]`, -32602, `context must be an object`},
		{"context of numbers", prompt, `{"name":"name","value":""}`, `{"arguments":{"tone":1}}`, -32602, `context.arguments`},
	} {
		params := map[string]any{"ref": json.RawMessage(c.ref), "argument": json.RawMessage(c.argument)}
		if c.context != "" {
			params["context"] = json.RawMessage(c.context)
		}
		got := do(t, h, post{method: "completion/complete", params: params}.request(t))
		if got.code() != c.code || !strings.Contains(got.raw, c.want) {
			t.Errorf("%s: %s", c.name, got.raw)
		}
	}
	if values := do(t, h, post{method: "completion/complete", params: map[string]any{"ref": json.RawMessage(many), "argument": json.RawMessage(`{"name":"n","value":""}`)}}.request(t)).
		result(t)["completion"].(map[string]any)["values"]; len(values.([]any)) != maxCompletions {
		t.Errorf("%d values", len(values.([]any)))
	}
}

// A definition that cannot be encoded is found at start where there is time to look, and
// is an error like any other where there is not.
func TestBadDefinitions(t *testing.T) {
	for name, meta := range map[string]any{"channel": make(chan int), "panics": badMarshaler{}} {
		tool := thaw.NewTool("t", "", func(context.Context, struct{}) (string, error) { return "", nil }, &thaw.ToolOptions{Meta: map[string]any{"x": meta}})
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{})
		if got := do(t, h, post{method: "tools/list"}.request(t)); got.code() != -32603 || strings.Contains(got.raw, "secret") {
			t.Errorf("%s: %d %s", name, got.status, got.raw)
		}
	}
	tool := thaw.NewTool("t", "", func(context.Context, struct{}) (string, error) { return "", nil }, &thaw.ToolOptions{Meta: map[string]any{"x": make(chan int)}})
	if _, err := New(thaw.Server{Name: "s", Tools: []*thaw.Tool{tool}}, &Options{Host: resident}); err == nil || !strings.Contains(err.Error(), `"t"`) {
		t.Errorf("%v", err)
	}
}

// Replace while everything else goes on, under the race detector.
func TestReplaceUnderLoad(t *testing.T) {
	ran := 0
	full := testServer(&ran)
	full.Tools = full.Tools[1:] // the counter of the other is no atomic
	empty := full
	empty.Tools = nil
	h, _ := newHandler(t, full, Options{Host: resident})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			s := full
			if i%2 == 0 {
				s = empty
			}
			if err := h.Replace(s); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		// A list once offered is never unknown (F-01).
		if got := do(t, h, post{method: "tools/list"}.request(t)); got.status != 200 || got.last().Result == nil {
			t.Fatalf("%d %s", got.status, got.raw)
		}
		if got := do(t, h, post{method: "tools/call", params: map[string]any{"name": "nope"}}.request(t)); got.reason() != reasonUnknownTool {
			t.Fatalf("%d %s", got.status, got.raw)
		}
		select {
		case <-done:
			if err := h.Replace(full); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(do(t, h, post{method: "tools/list"}.request(t)).result(t)["tools"]); !strings.Contains(got, "route") {
				t.Error(got)
			}
			return
		default:
		}
	}
}
