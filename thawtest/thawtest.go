// Package thawtest drives a tool in memory, through the same checks, encoding and errors
// that a client meets: what passes here is what is served.
package thawtest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

// Options: each zero value is a plain caller.
type Options struct {
	// Middleware wraps the tool, as a server's would.
	Middleware []thaw.Middleware
	// Capabilities are what the client declares; empty is none.
	Capabilities json.RawMessage
}

// Call is one call of a tool, finished when Start returns it.
type Call struct {
	tb       testing.TB
	result   *mcp.CallToolResult
	err      *mcp.Error
	progress []Progress
}

// Progress is one progress notification, as the client got it.
type Progress struct {
	Done    float64 `json:"progress"`
	Total   float64 `json:"total"`
	Message string  `json:"message"`
}

// Start calls the tool as a client would, with args encoded as JSON (nil: no arguments;
// a json.RawMessage as it stands), and waits for its end. A result that its own output
// schema refuses fails tb, also where the server would trust the type. opts may be nil.
func Start(tb testing.TB, tool *thaw.Tool, args any, opts *Options) *Call {
	tb.Helper()
	if opts == nil {
		opts = &Options{}
	}
	name := tool.Definition().Name
	h, err := serve.New(thaw.Server{Name: "thawtest", Version: "0", Tools: []*thaw.Tool{tool}, Middleware: opts.Middleware},
		&serve.Options{Host: host.Facts{Resident: true, Streaming: true}, Logger: testLogger(tb)})
	if err != nil {
		tb.Fatalf("thawtest: %v", err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(tb, tool, args, opts))
	c := &Call{tb: tb}
	c.read(w)
	if c.result != nil && !c.result.IsError {
		c.checkOutput(tool, name)
	}
	return c
}

// request is a tools/call that a good client sends.
func request(tb testing.TB, tool *thaw.Tool, args any, opts *Options) *http.Request {
	tb.Helper()
	raw, err := strictjson.Marshal(args)
	if err != nil {
		tb.Fatalf("thawtest: encode arguments: %v", err)
	}
	capabilities := opts.Capabilities
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	name := tool.Definition().Name
	params := map[string]any{
		"name":      name,
		"arguments": json.RawMessage(raw),
		"_meta": map[string]any{
			mcp.MetaProtocolVersion:    mcp.Version,
			mcp.MetaClientInfo:         mcp.Implementation{Name: "thawtest", Version: "0"},
			mcp.MetaClientCapabilities: capabilities,
			mcp.MetaProgressToken:      "thawtest",
		},
	}
	body, err := strictjson.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": mcp.MethodCallTool, "params": params})
	if err != nil {
		tb.Fatalf("thawtest: encode the request: %v", err)
	}
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/mcp", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(mcp.HeaderProtocolVersion, mcp.Version)
	r.Header.Set(mcp.HeaderMethod, mcp.MethodCallTool)
	r.Header.Set(mcp.HeaderName, name)
	serve.MirrorArguments(r.Header, tool, raw)
	return r
}

// read takes the answer apart, a JSON body or a stream of messages.
func (c *Call) read(w *httptest.ResponseRecorder) {
	c.tb.Helper()
	messages := []string{w.Body.String()}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		messages = nil
		for line := range strings.Lines(w.Body.String()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				messages = append(messages, data)
			}
		}
	}
	for _, m := range messages {
		var message struct {
			Method string
			Params json.RawMessage
			Result *mcp.CallToolResult
			Error  *struct {
				Code    int
				Message string
				Data    json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(m), &message); err != nil {
			c.tb.Fatalf("thawtest: the server answered what is no message: %v\n%s", err, m)
		}
		switch {
		case message.Method == mcp.NotificationProgress:
			var p Progress
			if err := json.Unmarshal(message.Params, &p); err != nil {
				c.tb.Fatalf("thawtest: %v", err)
			}
			c.progress = append(c.progress, p)
		case message.Error != nil:
			c.err = &mcp.Error{Code: message.Error.Code, Message: message.Error.Message, Data: message.Error.Data}
		case message.Result != nil:
			c.result = message.Result
		}
	}
	if c.result == nil && c.err == nil {
		c.tb.Fatalf("thawtest: no answer (status %d): %s", w.Code, w.Body)
	}
}

func (c *Call) checkOutput(tool *thaw.Tool, name string) {
	c.tb.Helper()
	v, err := tool.Declared().OutputAlways()
	if err != nil {
		c.tb.Fatalf("thawtest: output schema of %s: %v", name, err)
	}
	if v == nil {
		return
	}
	if c.result.StructuredContent == nil {
		c.tb.Errorf("thawtest: the result of %s has no structured content, which its output schema promises", name)
		return
	}
	if _, violations := v.Validate(c.result.StructuredContent); len(violations) > 0 {
		for _, violation := range violations {
			c.tb.Errorf("thawtest: the result of %s breaks its output schema: %s %s", name, violation.Path, violation.Message)
		}
	}
}

// Result is the result, or nil if the call ended in a JSON-RPC error.
func (c *Call) Result() *mcp.CallToolResult { return c.result }

// Err is the JSON-RPC error the client got, a *mcp.Error whose Data is a
// json.RawMessage; nil if there is a result. A tool error is a result: see IsError.
func (c *Call) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// IsError reports whether the tool failed in a way that the model reads.
func (c *Call) IsError() bool { return c.result != nil && c.result.IsError }

// Text is the result's text blocks, joined by line ends; "" if there is no result.
func (c *Call) Text() string {
	if c.result == nil {
		return ""
	}
	var texts []string
	for _, block := range c.result.Content {
		if t, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Progress is what the client was told on the way.
func (c *Call) Progress() []Progress { return c.progress }

// Output decodes the structured content into a T; it fails the test if the call failed or
// the content does not fit.
func Output[T any](c *Call) T {
	c.tb.Helper()
	var v T
	switch {
	case c.err != nil:
		c.tb.Fatalf("thawtest: the call ended in %v", c.err)
	case c.result.IsError:
		c.tb.Fatalf("thawtest: the tool failed: %s", c.Text())
	case c.result.StructuredContent == nil:
		c.tb.Fatalf("thawtest: the result has no structured content")
	}
	if err := strictjson.Unmarshal(c.result.StructuredContent, &v); err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	return v
}

// Server is a real server over HTTP on loopback, ended with the test. o may be nil; its
// Host is set to what such a server is.
func Server(tb testing.TB, s thaw.Server, o *serve.Options) *httptest.Server {
	tb.Helper()
	options := serve.Options{}
	if o != nil {
		options = *o
	}
	options.Host = host.Facts{Resident: true, Streaming: true, Loopback: true}
	if options.Logger == nil {
		options.Logger = testLogger(tb)
	}
	h, err := serve.New(s, &options)
	if err != nil {
		tb.Fatalf("thawtest: %v", err)
	}
	server := httptest.NewServer(h)
	tb.Cleanup(func() {
		h.Drain()
		server.Close()
	})
	return server
}

// Context is a handler's context for calling a function of yours directly: Logger writes
// to the test's log, Progress goes nowhere, CallInfoFrom describes an anonymous call.
func Context(tb testing.TB) context.Context {
	return call.NewContext(tb.Context(), direct{tb})
}

type direct struct{ tb testing.TB }

func (d direct) Info() any {
	return thaw.CallInfo{ID: "thawtest", Tool: d.tb.Name(), Principal: thaw.Principal{Scheme: "none"}}
}
func (direct) Progress(float64, float64, string) {}
func (d direct) Logger() *slog.Logger            { return testLogger(d.tb) }
func (direct) ClientLogger() *slog.Logger        { return slog.New(slog.DiscardHandler) }

func testLogger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), nil))
}
