package clients

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds one client's visit.
const patience = 60 * time.Second

// goClient is the client of the official Go SDK.
func goClient(t *testing.T, endpoint string) *report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var progress progressLog
	var u user
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress.add(r.Params.Progress) },
		ElicitationHandler:          u.elicit,
		//lint:ignore SA1019 servers may ask for it until the protocol drops it
		CreateMessageHandler: u.sample,
	})
	//lint:ignore SA1019 servers may ask for them until the protocol drops them
	client.AddRoots(&mcp.Root{URI: root})
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begin := s.InitializeResult()
	r := &report{Version: begin.ProtocolVersion, Server: begin.ServerInfo.Name}
	g := goVisit{ctx, t, s}
	g.tools(r)
	g.prompts(r)
	g.resources(r)
	g.asking(r, &u)
	// Notifications are handled beside the calls; closing waits for their handlers.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	progress.mu.Lock()
	defer progress.mu.Unlock()
	r.Progress = progress.seen
	return r
}

// progressLog is filled from the client's own goroutine.
type progressLog struct {
	mu   sync.Mutex
	seen []float64
}

func (l *progressLog) add(done float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, done)
}

type goVisit struct {
	ctx context.Context
	t   *testing.T
	s   *mcp.ClientSession
}

// call calls a tool that has to answer without a protocol error.
func (g *goVisit) call(tool string, arguments any, isError bool) *mcp.CallToolResult {
	g.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	if tool == "test_tool_with_progress" {
		params.SetProgressToken("p1")
	}
	res, err := g.s.CallTool(g.ctx, params)
	if err != nil {
		g.t.Fatalf("%s: %v", tool, err)
	}
	if res.IsError != isError {
		g.t.Errorf("%s: isError is %v", tool, res.IsError)
	}
	return res
}

func (g *goVisit) text(content ...mcp.Content) string {
	g.t.Helper()
	if len(content) != 1 {
		g.t.Fatalf("%d blocks, want one", len(content))
	}
	block, ok := content[0].(*mcp.TextContent)
	if !ok {
		g.t.Fatalf("a block of %T, want text", content[0])
	}
	return block.Text
}

// code is the JSON-RPC code of an error.
func (g *goVisit) code(err error) int {
	g.t.Helper()
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		g.t.Fatalf("want a JSON-RPC error: %v", err)
	}
	return int(e.Code)
}

func (g *goVisit) tools(r *report) {
	g.t.Helper()
	for tool, err := range g.s.Tools(g.ctx, nil) {
		if err != nil {
			g.t.Fatal(err)
		}
		r.Tools = append(r.Tools, tool.Name)
	}
	r.Echo = g.text(g.call("echo", map[string]any{"text": "héllo   wörld"}, false).Content...)
	r.ToolError = g.text(g.call("test_error_handling", nil, true).Content...)
	r.Invalid = g.text(g.call("add", map[string]any{"a": "one"}, true).Content...)
	_, err := g.s.CallTool(g.ctx, &mcp.CallToolParams{Name: "no_such_tool"})
	r.UnknownTool = g.code(err)
	structured, err := json.Marshal(g.call("add", map[string]any{"a": 2, "b": 3}, false).StructuredContent)
	if err != nil {
		g.t.Fatal(err)
	}
	var sum struct{ Sum int }
	if err := json.Unmarshal(structured, &sum); err != nil {
		g.t.Fatal(err)
	}
	r.Sum = sum.Sum
	for _, region := range []string{"us-west1", "日本語", " padded "} {
		r.Mirrored = append(r.Mirrored, g.text(g.call("test_x_mcp_header", map[string]any{"region": region}, false).Content...))
	}
	g.call("test_tool_with_progress", nil, false)
}

func (g *goVisit) prompts(r *report) {
	g.t.Helper()
	for p, err := range g.s.Prompts(g.ctx, nil) {
		if err != nil {
			g.t.Fatal(err)
		}
		r.Prompts = append(r.Prompts, p.Name)
	}
	const name = "test_prompt_with_arguments"
	p, err := g.s.GetPrompt(g.ctx, &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"arg1": "a", "arg2": "b"}})
	if err != nil {
		g.t.Fatal(err)
	}
	if len(p.Messages) != 1 {
		g.t.Fatalf("%d messages", len(p.Messages))
	}
	r.Prompt = g.text(p.Messages[0].Content)
	c, err := g.s.Complete(g.ctx, &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: name}, Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "test"}})
	if err != nil {
		g.t.Fatal(err)
	}
	r.Completion = c.Completion.Values
}

func (g *goVisit) resources(r *report) {
	g.t.Helper()
	for x, err := range g.s.Resources(g.ctx, nil) {
		if err != nil {
			g.t.Fatal(err)
		}
		r.Resources = append(r.Resources, x.URI)
	}
	for x, err := range g.s.ResourceTemplates(g.ctx, nil) {
		if err != nil {
			g.t.Fatal(err)
		}
		r.Templates = append(r.Templates, x.URITemplate)
	}
	r.Text = g.read("test://static-text").Text
	r.Blob = base64.StdEncoding.EncodeToString(g.read("test://static-binary").Blob)
	r.Template = g.read("test://template/4%202/data").Text
	_, err := g.s.ReadResource(g.ctx, &mcp.ReadResourceParams{URI: "test://no-such-resource"})
	r.Missing = g.code(err)
}

func (g *goVisit) read(uri string) *mcp.ResourceContents {
	g.t.Helper()
	res, err := g.s.ReadResource(g.ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		g.t.Fatalf("%s: %v", uri, err)
	}
	if len(res.Contents) != 1 {
		g.t.Fatalf("%s: %d contents", uri, len(res.Contents))
	}
	return res.Contents[0]
}
