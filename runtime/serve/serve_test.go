package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
)

// resident is a laptop on loopback.
var resident = host.Facts{Resident: true, Streaming: true, Loopback: true}

// offLoopback is a server of its own that the world can reach.
var offLoopback = host.Facts{Resident: true, Streaming: true}

// newHandler makes a handler whose log goes to the returned buffer.
func newHandler(t *testing.T, s thaw.Server, o Options) (*Handler, *lockedBuffer) {
	t.Helper()
	if s.Name == "" {
		s.Name, s.Version = "test", "1"
	}
	log := &lockedBuffer{}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	h, err := New(s, &o)
	if err != nil {
		t.Fatal(err)
	}
	return h, log
}

// post is a good request with this method and these params (without _meta), to be changed
// by edits before it is sent.
type post struct {
	method  string
	params  map[string]any
	meta    map[string]any
	id      string // raw; "-": none
	headers map[string]string
	host    string
	verb    string
	path    string
	body    string // in place of the encoded one
	suffix  string // after the body
}

const goodMeta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func (p post) request(t testing.TB) *http.Request {
	t.Helper()
	body := p.body
	if body == "" {
		params := map[string]any{}
		for k, v := range p.params {
			params[k] = v
		}
		if p.meta == nil {
			params["_meta"] = json.RawMessage(goodMeta)
		} else if p.meta["absent"] == nil {
			params["_meta"] = p.meta
		}
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		id := p.id
		switch id {
		case "":
			id = `"id":7,`
		case "-":
			id = ""
		default:
			id = `"id":` + id + `,`
		}
		body = fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, p.method, raw)
	}
	verb, path := p.verb, p.path
	if verb == "" {
		verb = http.MethodPost
	}
	if path == "" {
		path = "/mcp"
	}
	r := httptest.NewRequestWithContext(t.Context(), verb, path, strings.NewReader(body+p.suffix))
	r.Host = "localhost:8080"
	if p.host != "" {
		r.Host = p.host
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", mcp.Version)
	r.Header.Set("Mcp-Method", p.method)
	for _, member := range []string{"name", "uri"} {
		if s, ok := p.params[member].(string); ok {
			r.Header.Set("Mcp-Name", s)
		}
	}
	for k, v := range p.headers {
		if v == "-" {
			r.Header.Del(k)
			continue
		}
		r.Header.Set(k, v)
	}
	return r
}

// answer is what came back.
type answer struct {
	status   int
	header   http.Header
	raw      string
	messages []wireMessage // of a stream, the final one last; of a JSON body, that one
}

type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func do(t testing.TB, h http.Handler, r *http.Request) answer {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return readAnswer(t, w.Result())
}

func readAnswer(t testing.TB, resp *http.Response) answer {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil && !(errors.Is(err, io.ErrUnexpectedEOF) && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")) {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(b)}
	lines := []string{a.raw}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		lines = nil
		for line := range strings.Lines(a.raw) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				lines = append(lines, data)
			}
		}
	}
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var m wireMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			continue
		}
		a.messages = append(a.messages, m)
	}
	return a
}

func (a answer) last() wireMessage {
	if len(a.messages) == 0 {
		return wireMessage{}
	}
	return a.messages[len(a.messages)-1]
}

func (a answer) code() int {
	if e := a.last().Error; e != nil {
		return e.Code
	}
	return 0
}

func (a answer) reason() string {
	var data struct {
		Reason string `json:"reason"`
	}
	if e := a.last().Error; e != nil && e.Data != nil {
		_ = json.Unmarshal(e.Data, &data)
	}
	return data.Reason
}

func (a answer) result(t testing.TB) map[string]any {
	t.Helper()
	if a.last().Result == nil {
		t.Fatalf("no result: status %d, %s", a.status, a.raw)
	}
	var m map[string]any
	if err := json.Unmarshal(a.last().Result, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// lockedBuffer is a log that goroutines share.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type echoIn struct {
	Text string `json:"text"`
}

func routeTool(ran *int, opts *thaw.ToolOptions) *thaw.Tool {
	return thaw.NewRawTool("route", "mirrors its arguments", json.RawMessage(`{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"priority":{"type":"integer","x-mcp-header":"Priority"},
		"dry_run":{"type":"boolean","x-mcp-header":"Dry-Run"},
		"target":{"type":"object","properties":{"tenant":{"type":"string","x-mcp-header":"Tenant"}}}}}`),
		func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			*ran++
			return &mcp.CallToolResult{StructuredContent: args}, nil
		}, opts)
}

// testServer is a catalogue with one of everything. ran counts handler runs.
func testServer(ran *int) thaw.Server {
	return thaw.Server{
		Name: "test", Version: "1",
		Tools: []*thaw.Tool{
			thaw.NewTool("echo", "returns the text", func(_ context.Context, in echoIn) (string, error) {
				*ran++
				return in.Text, nil
			}, nil),
			routeTool(ran, nil),
		},
		Prompts: []*thaw.Prompt{
			thaw.NewPrompt("greet", "greets", func(_ context.Context, in struct {
				Name string `json:"name" jsonschema:"whom"`
				Tone string `json:"tone,omitempty"`
			}) ([]mcp.PromptMessage, error) {
				return []mcp.PromptMessage{{Role: mcp.RoleUser, Content: &mcp.TextContent{Text: "Greet " + in.Name + in.Tone}}}, nil
			}, &thaw.PromptOptions{Complete: map[string]thaw.CompleteFunc{
				"name": func(_ context.Context, prefix string, args map[string]string) ([]string, error) {
					return []string{prefix + "a", prefix + args["tone"]}, nil
				},
			}}),
		},
		Resources: []*thaw.Resource{
			thaw.NewResource("docs://a", "a", func(context.Context) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{mcp.TextResource("", "", "A")}, nil
			}, &thaw.ResourceOptions{MIMEType: "text/plain"}),
		},
		ResourceTemplates: []*thaw.ResourceTemplate{
			thaw.NewResourceTemplate("docs://item/{id}", "item", func(_ context.Context, in struct {
				ID string `json:"id"`
			}) ([]mcp.ResourceContents, error) {
				if in.ID == "gone" {
					return nil, thaw.ErrNotFound
				}
				return []mcp.ResourceContents{mcp.TextResource("", "", in.ID)}, nil
			}, nil),
		},
	}
}
