package differential

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

// The three implementations.
const (
	isThaw  = "thaw"
	isGoSDK = "go-sdk"
	isMCPGo = "mcp-go"
)

// bodyLimit is for those that have one.
const bodyLimit = 1 << 20

// What all three serve. Handlers are the same functions; only the adapters differ.

type numbers struct {
	A int `json:"a" jsonschema:"first number"`
	B int `json:"b" jsonschema:"second number"`
}

type sum struct {
	Sum int `json:"sum"`
}

func add(_ context.Context, in numbers) (sum, error) { return sum{in.A + in.B}, nil }

type words struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type nothing struct{}

var errShelf = errors.New("the shelf is empty")

// placed has one mirrored parameter; placedSchema is its schema for libraries that have
// no tag for that.
type placed struct {
	Region string `json:"region,omitempty" header:"Region" jsonschema:"where"`
	Count  int    `json:"count,omitempty" header:"Count" jsonschema:"how many"`
}

const placedSchema = `{"type":"object","properties":{` +
	`"region":{"type":"string","description":"where","x-mcp-header":"Region"},` +
	`"count":{"type":"integer","description":"how many","minimum":-9007199254740991,"maximum":9007199254740991,"x-mcp-header":"Count"}},"additionalProperties":false}`

type greeting struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

const (
	noteURI      = "test://note"
	noteTemplate = "test://note/{id}"
	noteText     = "remember the milk"
)

// completions suggests names.
func completions(prefix string) []string {
	var found []string
	for _, name := range []string{"ada", "alan", "grace"} {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}

// implementations starts all three, each in its stateless mode on a loopback port, with
// every check on that it has.
func implementations(t *testing.T) map[string]string {
	t.Helper()
	urls := map[string]string{}
	for name, h := range map[string]http.Handler{isThaw: thawHandler(t), isGoSDK: gosdkHandler(), isMCPGo: mcpgoHandler()} {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		urls[name] = s.URL + "/mcp"
	}
	return urls
}

func thawHandler(t *testing.T) http.Handler {
	t.Helper()
	s := thaw.Server{
		Name: "differential", Version: "1.0.0",
		Tools: []*thaw.Tool{
			thaw.NewTool("add", "Add two numbers", add, nil),
			thaw.NewTool("say", "Say something", func(_ context.Context, in words) (string, error) { return in.Text, nil }, nil),
			thaw.NewTool("fail", "Fail", func(context.Context, nothing) (string, error) { return "", thaw.Errorf("%w", errShelf) }, nil),
			thaw.NewTool("place", "Place something", func(_ context.Context, in placed) (string, error) { return in.Region, nil }, nil),
			thaw.NewTool("steps", "Report progress", func(ctx context.Context, _ nothing) (string, error) {
				thaw.Progress(ctx, 1, 2, "half")
				return "done", nil
			}, nil),
		},
		Prompts: []*thaw.Prompt{thaw.NewPrompt("greet", "Greet somebody", func(_ context.Context, in greeting) ([]mcp.PromptMessage, error) {
			return []mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Greet " + in.Name}}}, nil
		}, &thaw.PromptOptions{Complete: map[string]thaw.CompleteFunc{
			"name": func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
				return completions(prefix), nil
			},
		}})},
		Resources: []*thaw.Resource{thaw.NewResource(noteURI, "note", func(context.Context) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResource("", "", noteText)}, nil
		}, &thaw.ResourceOptions{MIMEType: "text/plain"})},
		ResourceTemplates: []*thaw.ResourceTemplate{thaw.NewResourceTemplate(noteTemplate, "notes",
			func(_ context.Context, in struct {
				ID string `json:"id"`
			}) ([]mcp.ResourceContents, error) {
				if in.ID != "1" {
					return nil, thaw.ErrNotFound
				}
				return []mcp.ResourceContents{mcp.TextResource("", "", noteText)}, nil
			}, &thaw.ResourceOptions{MIMEType: "text/plain"})},
	}
	h, err := serve.New(s, &serve.Options{
		Host:   host.Facts{Resident: true, Streaming: true, Loopback: true},
		Limits: serve.Limits{BodyBytes: bodyLimit},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func gosdkHandler() http.Handler {
	s := gosdk.NewServer(&gosdk.Implementation{Name: "differential", Version: "1.0.0"}, &gosdk.ServerOptions{
		CompletionHandler: func(_ context.Context, r *gosdk.CompleteRequest) (*gosdk.CompleteResult, error) {
			return &gosdk.CompleteResult{Completion: gosdk.CompletionResultDetails{Values: completions(r.Params.Argument.Value)}}, nil
		},
	})
	text := func(s string) *gosdk.CallToolResult {
		return &gosdk.CallToolResult{Content: []gosdk.Content{&gosdk.TextContent{Text: s}}}
	}
	gosdk.AddTool(s, &gosdk.Tool{Name: "add", Description: "Add two numbers"},
		func(ctx context.Context, _ *gosdk.CallToolRequest, in numbers) (*gosdk.CallToolResult, sum, error) {
			out, err := add(ctx, in)
			return nil, out, err
		})
	gosdk.AddTool(s, &gosdk.Tool{Name: "say", Description: "Say something"},
		func(_ context.Context, _ *gosdk.CallToolRequest, in words) (*gosdk.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	gosdk.AddTool(s, &gosdk.Tool{Name: "fail", Description: "Fail"},
		func(context.Context, *gosdk.CallToolRequest, nothing) (*gosdk.CallToolResult, any, error) {
			return nil, nil, errShelf
		})
	gosdk.AddTool(s, &gosdk.Tool{Name: "place", Description: "Place something", InputSchema: json.RawMessage(placedSchema)},
		func(_ context.Context, _ *gosdk.CallToolRequest, in placed) (*gosdk.CallToolResult, any, error) {
			return text(in.Region), nil, nil
		})
	gosdk.AddTool(s, &gosdk.Tool{Name: "steps", Description: "Report progress"},
		func(ctx context.Context, r *gosdk.CallToolRequest, _ nothing) (*gosdk.CallToolResult, any, error) {
			if token := r.Params.GetProgressToken(); token != nil {
				if err := r.Session.NotifyProgress(ctx, &gosdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2, Message: "half"}); err != nil {
					return nil, nil, err
				}
			}
			return text("done"), nil, nil
		})
	s.AddPrompt(&gosdk.Prompt{Name: "greet", Description: "Greet somebody", Arguments: []*gosdk.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, r *gosdk.GetPromptRequest) (*gosdk.GetPromptResult, error) {
			return &gosdk.GetPromptResult{Messages: []*gosdk.PromptMessage{
				{Role: "user", Content: &gosdk.TextContent{Text: "Greet " + r.Params.Arguments["name"]}}}}, nil
		})
	read := func(_ context.Context, r *gosdk.ReadResourceRequest) (*gosdk.ReadResourceResult, error) {
		if r.Params.URI != noteURI && r.Params.URI != noteURI+"/1" {
			return nil, gosdk.ResourceNotFoundError(r.Params.URI)
		}
		return &gosdk.ReadResourceResult{Contents: []*gosdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: noteText}}}, nil
	}
	s.AddResource(&gosdk.Resource{URI: noteURI, Name: "note", MIMEType: "text/plain"}, read)
	s.AddResourceTemplate(&gosdk.ResourceTemplate{URITemplate: noteTemplate, Name: "notes", MIMEType: "text/plain"}, read)
	return gosdk.NewStreamableHTTPHandler(func(*http.Request) *gosdk.Server { return s },
		&gosdk.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: bodyLimit})
}

type completer struct{}

func (completer) CompletePromptArgument(_ context.Context, _ string, a mcpgo.CompleteArgument, _ mcpgo.CompleteContext) (*mcpgo.Completion, error) {
	return &mcpgo.Completion{Values: completions(a.Value)}, nil
}

func mcpgoHandler() http.Handler {
	s := mcpgoserver.NewMCPServer("differential", "1.0.0",
		mcpgoserver.WithInputSchemaValidation(), mcpgoserver.WithOutputSchemaValidation(), mcpgoserver.WithStrictInputSchemaDefault(),
		mcpgoserver.WithToolCapabilities(true), mcpgoserver.WithPromptCapabilities(true), mcpgoserver.WithResourceCapabilities(true, true),
		mcpgoserver.WithCompletions(), mcpgoserver.WithPromptCompletionProvider(completer{}))
	text := func(s string) (*mcpgo.CallToolResult, error) { return mcpgo.NewToolResultText(s), nil }
	s.AddTool(mcpgo.NewTool("add", mcpgo.WithDescription("Add two numbers"), mcpgo.WithInputSchema[numbers](), mcpgo.WithOutputSchema[sum]()),
		mcpgo.NewStructuredToolHandler(func(ctx context.Context, _ mcpgo.CallToolRequest, in numbers) (sum, error) { return add(ctx, in) }))
	s.AddTool(mcpgo.NewTool("say", mcpgo.WithDescription("Say something"), mcpgo.WithInputSchema[words]()),
		mcpgo.NewTypedToolHandler(func(_ context.Context, _ mcpgo.CallToolRequest, in words) (*mcpgo.CallToolResult, error) {
			return text(in.Text)
		}))
	s.AddTool(mcpgo.NewTool("fail", mcpgo.WithDescription("Fail"), mcpgo.WithInputSchema[nothing]()),
		func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultError(errShelf.Error()), nil
		})
	s.AddTool(mcpgo.NewToolWithRawSchema("place", "Place something", json.RawMessage(placedSchema)),
		mcpgo.NewTypedToolHandler(func(_ context.Context, _ mcpgo.CallToolRequest, in placed) (*mcpgo.CallToolResult, error) {
			return text(in.Region)
		}))
	s.AddTool(mcpgo.NewTool("steps", mcpgo.WithDescription("Report progress"), mcpgo.WithInputSchema[nothing]()),
		func(ctx context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			if m := r.Params.Meta; m != nil && m.ProgressToken != nil {
				if err := s.SendNotificationToClient(ctx, "notifications/progress",
					map[string]any{"progressToken": m.ProgressToken, "progress": 1, "total": 2, "message": "half"}); err != nil {
					return nil, err
				}
			}
			return text("done")
		})
	s.AddPrompt(mcpgo.NewPrompt("greet", mcpgo.WithPromptDescription("Greet somebody"), mcpgo.WithArgument("name", mcpgo.RequiredArgument())),
		func(_ context.Context, r mcpgo.GetPromptRequest) (*mcpgo.GetPromptResult, error) {
			return mcpgo.NewGetPromptResult("", []mcpgo.PromptMessage{
				mcpgo.NewPromptMessage(mcpgo.RoleUser, mcpgo.NewTextContent("Greet "+r.Params.Arguments["name"]))}), nil
		})
	read := func(_ context.Context, r mcpgo.ReadResourceRequest) ([]mcpgo.ResourceContents, error) {
		if r.Params.URI != noteURI && r.Params.URI != noteURI+"/1" {
			return nil, mcpgoserver.ErrResourceNotFound
		}
		return []mcpgo.ResourceContents{mcpgo.TextResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: noteText}}, nil
	}
	s.AddResource(mcpgo.NewResource(noteURI, "note", mcpgo.WithMIMEType("text/plain")), read)
	s.AddResourceTemplate(mcpgo.NewResourceTemplate(noteTemplate, "notes", mcpgo.WithTemplateMIMEType("text/plain")), read)
	return mcpgoserver.NewStreamableHTTPServer(s, mcpgoserver.WithStateLess(true))
}
