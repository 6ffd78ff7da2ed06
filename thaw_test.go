package thaw_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

type size string

func (size) Enum() []thaw.Choice { return []thaw.Choice{{Value: "s"}, {Value: "l"}} }

type orderIn struct {
	Item  string `json:"item" jsonschema:"what to order"`
	Size  size   `json:"size" default:"s"`
	Count int    `json:"count" default:"1" minimum:"1" maximum:"9"`
}

type orderOut struct {
	Line  string   `json:"line"`
	Notes []string `json:"notes"`
}

func order(_ context.Context, in orderIn) (orderOut, error) {
	if in.Item == "nothing" {
		return orderOut{}, thaw.Errorf("there is no %s", in.Item)
	}
	return orderOut{Line: fmt.Sprintf("%d %s %s", in.Count, in.Size, in.Item)}, nil
}

// Embedded is embedded in prompt arguments.
type Embedded struct{ A string }

type embedded struct{ A string }

func noArgs(context.Context, struct{}) (string, error) { return "", nil }

func TestTypedTool(t *testing.T) {
	tool := thaw.NewTool("order", "Orders.", order, nil)
	if got := thawtest.Output[orderOut](thawtest.Start(t, tool, orderIn{Item: "tea", Size: "l", Count: 2}, nil)); got.Line != "2 l tea" || got.Notes == nil {
		t.Errorf("%+v", got)
	}
	defaults := thawtest.Start(t, tool, map[string]any{"item": "tea"}, nil)
	if got := defaults.Text(); got != `{"line":"1 s tea","notes":[]}` {
		t.Errorf("defaults: %s", got)
	}
	refused := thawtest.Start(t, tool, map[string]any{"Item": "tea", "size": "xl", "count": 10}, nil)
	for _, want := range []string{"item", "Item", "/size", "/count"} {
		if !refused.IsError() || !strings.Contains(refused.Text(), want) {
			t.Errorf("all violations at once, %q among them: %s", want, refused.Text())
		}
	}
	failed := thawtest.Start(t, tool, orderIn{Item: "nothing", Size: "s", Count: 1}, nil)
	if !failed.IsError() || failed.Text() != "there is no nothing" {
		t.Errorf("%s", failed.Text())
	}
}

// Faults of the program panic at registration and name the culprit.
func TestRegistrationPanics(t *testing.T) {
	raw := func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return nil, nil }
	object := json.RawMessage(`{"type":"object"}`)
	messages := func(context.Context, struct{}) ([]mcp.PromptMessage, error) { return nil, nil }
	contents := func(context.Context) ([]mcp.ResourceContents, error) { return nil, nil }
	for name, c := range map[string]struct {
		do   func()
		want []string
	}{
		"tool without a name": {func() { thaw.NewTool("", "", noArgs, nil) }, []string{`tool ""`, "1 to 128"}},
		"tool with a slash":   {func() { thaw.NewTool("a/b", "", noArgs, nil) }, []string{`tool "a/b"`, "A-Z a-z 0-9"}},
		"name too long":       {func() { thaw.NewTool(strings.Repeat("a", 129), "", noArgs, nil) }, []string{"1 to 128"}},
		"nil function":        {func() { thaw.NewTool[struct{}, string]("t", "", nil, nil) }, []string{`tool "t"`, "nil"}},
		"arguments no object": {func() { thaw.NewTool("t", "", func(context.Context, int) (string, error) { return "", nil }, nil) }, []string{`tool "t"`, "int"}},
		"a wrong tag": {func() {
			thaw.NewTool("t", "", func(context.Context, struct {
				N int `minimum:"x"`
			}) (string, error) {
				return "", nil
			}, nil)
		}, []string{`tool "t"`, "N", "minimum"}},
		"a wrong header": {func() {
			thaw.NewTool("t", "", func(context.Context, struct {
				F float64 `header:"F"`
			}) (string, error) {
				return "", nil
			}, nil)
		}, []string{`tool "t"`, "F"}},
		"a result of a channel": {func() {
			thaw.NewTool("t", "", func(context.Context, struct{}) (chan int, error) { return nil, nil }, nil)
		}, []string{`tool "t"`, "result", "chan"}},
		"a result of values": {func() {
			thaw.NewTool("t", "", func(context.Context, struct{}) ([]mcp.TextContent, error) { return nil, nil }, nil)
		}, []string{`tool "t"`, "result", "mcp.Content"}},
		"a result of pointers to one kind": {func() {
			thaw.NewTool("t", "", func(context.Context, struct{}) ([]*mcp.TextContent, error) { return nil, nil }, nil)
		}, []string{`tool "t"`, "result"}},
		"an error as a result": {func() {
			thaw.NewTool("t", "", func(context.Context, struct{}) (error, error) { return nil, nil }, nil)
		}, []string{`tool "t"`, "error"}},
		"negative timeout": {func() { thaw.NewTool("t", "", noArgs, &thaw.ToolOptions{Timeout: -1}) }, []string{"Timeout"}},
		"empty rate":       {func() { thaw.NewTool("t", "", noArgs, &thaw.ToolOptions{Rate: &thaw.Rate{}}) }, []string{"Rate"}},
		"raw, no JSON":     {func() { thaw.NewRawTool("t", "", json.RawMessage("{"), raw, nil) }, []string{`tool "t"`, "input schema"}},
		"raw, no object":   {func() { thaw.NewRawTool("t", "", json.RawMessage(`{"type":"array"}`), raw, nil) }, []string{`tool "t"`, "object"}},
		"raw, header on number": {func() {
			thaw.NewRawTool("t", "", json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}`), raw, nil)
		}, []string{`tool "t"`, "header"}},
		"raw, header in items": {func() {
			thaw.NewRawTool("t", "", json.RawMessage(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","x-mcp-header":"N"}}}}`), raw, nil)
		}, []string{`tool "t"`, "header"}},
		"raw, nil function":      {func() { thaw.NewRawTool("t", "", object, nil, nil) }, []string{"nil"}},
		"output schema no JSON":  {func() { thaw.NewTool("t", "", noArgs, &thaw.ToolOptions{OutputSchema: json.RawMessage("x")}) }, []string{"output schema"}},
		"prompt with a bad name": {func() { thaw.NewPrompt("a b", "", messages, nil) }, []string{`prompt "a b"`}},
		"prompt of ints": {func() {
			thaw.NewPrompt("p", "", func(context.Context, struct{ N int }) ([]mcp.PromptMessage, error) { return nil, nil }, nil)
		}, []string{`prompt "p"`, "N", "string"}},
		"prompt, completion of what it lacks": {func() {
			thaw.NewPrompt("p", "", messages, &thaw.PromptOptions{Complete: map[string]thaw.CompleteFunc{"x": func(context.Context, string, map[string]string) ([]string, error) { return nil, nil }}})
		}, []string{`"x"`}},
		"prompt with an embedded pointer": {func() {
			thaw.NewPrompt("p", "", func(context.Context, struct{ *Embedded }) ([]mcp.PromptMessage, error) { return nil, nil }, nil)
		}, []string{`prompt "p"`, "Embedded"}},
		"prompt with an embedded pointer that is not exported": {func() {
			thaw.NewPrompt("p", "", func(context.Context, struct{ *embedded }) ([]mcp.PromptMessage, error) { return nil, nil }, nil)
		}, []string{`prompt "p"`, "embedded"}},
		"resource without scheme": {func() { thaw.NewResource("a/b", "n", contents, nil) }, []string{`resource "a/b"`, "absolute"}},
		"resource beyond ASCII":   {func() { thaw.NewResource("docs://測試", "n", contents, nil) }, []string{"RFC 3986"}},
		"resource without name":   {func() { thaw.NewResource("a:b", "", contents, nil) }, []string{"name"}},
		"template that is none": {func() {
			thaw.NewResourceTemplate("a:{", "n", func(context.Context, struct{}) ([]mcp.ResourceContents, error) { return nil, nil }, nil)
		}, []string{`template "a:{"`}},
		"template with a stray field": {func() {
			thaw.NewResourceTemplate("a:{id}", "n", func(context.Context, struct{ ID, Other string }) ([]mcp.ResourceContents, error) { return nil, nil }, nil)
		}, []string{"ID"}},
		"template with a stray variable": {func() {
			thaw.NewResourceTemplate("a:{id}", "n", func(context.Context, struct{}) ([]mcp.ResourceContents, error) { return nil, nil }, nil)
		}, []string{"id"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text := fmt.Sprint(recover())
				for _, want := range append(c.want, "thaw: ") {
					if !strings.Contains(text, want) {
						t.Errorf("panic %q lacks %q", text, want)
					}
				}
			}()
			c.do()
		})
	}
}

func TestCheck(t *testing.T) {
	tool := thaw.NewTool("t", "", noArgs, nil)
	broken := thaw.NewRawTool("broken", "", json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`),
		func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return nil, nil }, nil)
	err := thaw.Server{Tools: []*thaw.Tool{tool, tool, broken, nil}}.Check()
	for _, want := range []string{"no Name", `tool "t" is declared twice`, `tool "broken": input schema`, "tool 3 is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err := (thaw.Server{Name: "s", Tools: []*thaw.Tool{tool}}).Check(); err != nil {
		t.Error(err)
	}
}

func TestErrorTypes(t *testing.T) {
	cause := errors.New("cause")
	if err := thaw.Errorf("x: %w", cause); !errors.Is(err, cause) || err.Error() != "x: cause" {
		t.Errorf("%v", err)
	}
	if err := thaw.WrapErrorf(cause, "x"); !errors.Is(err, cause) || err.Error() != "x: cause" {
		t.Errorf("%v", err)
	}
	if err := error(&thaw.UnsupportedError{}); !errors.Is(err, thaw.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// Outside a handler every function of ctx is harmless.
func TestOutsideACall(t *testing.T) {
	ctx := context.Background()
	thaw.Progress(ctx, 1, 2, "")
	if thaw.Logger(ctx) == nil || thaw.CallInfoFrom(ctx).ID != "" {
		t.Error("not harmless")
	}
	if thaw.ClientLogger(ctx) == nil {
		t.Error("nil")
	}
	if got := thaw.CallInfoFrom(thawtest.Context(t, nil)); got.Principal.Scheme != "none" {
		t.Errorf("%+v", got)
	}
}

func TestProgressReachesTheClient(t *testing.T) {
	tool := thaw.NewTool("t", "", func(ctx context.Context, _ struct{}) (string, error) {
		thaw.Progress(ctx, 0, 2, "begun")
		thaw.Progress(ctx, 2, 2, "")
		return "done", nil
	}, nil)
	c := thawtest.Start(t, tool, nil, nil)
	if got := fmt.Sprint(c.Progress()); got != "[{0 2 begun} {2 2 }]" || c.Text() != "done" {
		t.Errorf("%s, %s", got, c.Text())
	}
}

func ExampleNewTool() {
	type In struct {
		Name string `json:"name" jsonschema:"whom to greet"`
	}
	tool := thaw.NewTool("greet", "Greets somebody.", func(_ context.Context, in In) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}, &thaw.ToolOptions{ReadOnly: true})
	fmt.Println(string(tool.Definition().InputSchema))
	// Output: {"type":"object","properties":{"name":{"type":"string","description":"whom to greet"}},"required":["name"],"additionalProperties":false}
}
