// Package thawtest drives a tool in memory, through the same checks, encoding and errors
// that a client meets: what passes here is what is served.
package thawtest

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// Options: each zero value is a plain caller whose client can do everything.
type Options struct {
	// Middleware wraps the tool, as a server's would.
	Middleware []thaw.Middleware
	// Capabilities are what the client declares; nil is all of them.
	Capabilities json.RawMessage
	// NoElicit takes elicitation out of nil Capabilities.
	NoElicit bool
	// Start is when the call begins; zero is now.
	Start time.Time
	// Principal is who calls; zero is an anonymous caller, who has no scopes.
	Principal thaw.Principal
}

// schemes identify the caller that the options name.
func (o *Options) schemes() []auth.Scheme {
	if p := &o.Principal; p.Scheme+p.Issuer+p.Subject+p.Tenant+p.Client == "" && len(p.Scopes)+len(p.Claims) == 0 {
		return nil
	}
	return []auth.Scheme{caller(o.Principal)}
}

// caller is a scheme that finds the same caller in every request.
type caller thaw.Principal

func (c caller) Authenticate(*http.Request) (thaw.Principal, bool, error) {
	return thaw.Principal(c), true, nil
}

// Call is one call of a tool, over as many rounds as it takes.
type Call struct {
	tb     testing.TB
	tool   *thaw.Tool
	args   json.RawMessage
	opts   Options
	key    memoryKey
	last   []byte // params of the last request
	rounds int
	probe  *probe

	result   *mcp.CallToolResult
	err      *mcp.Error
	state    string
	asked    []question
	progress []Progress
}

// Progress is one progress notification, as the client got it.
type Progress struct {
	Done    float64 `json:"progress"`
	Total   float64 `json:"total"`
	Message string  `json:"message"`
}

// Start calls the tool as a client would, with args encoded as JSON (nil: no arguments;
// a json.RawMessage as it stands), and runs it until it ends or asks. Every run is on an
// instance of its own, which knows nothing but what the client brings. A result that its own
// output schema refuses fails tb, also where the server would trust the type, and so does
// misuse of the call, naming the places. opts may be nil.
func Start(tb testing.TB, tool *thaw.Tool, args any, opts *Options) *Call {
	tb.Helper()
	c := newCall(tb, tool, args, opts)
	c.send(nil)
	return c
}

func newCall(tb testing.TB, tool *thaw.Tool, args any, opts *Options) *Call {
	tb.Helper()
	c := &Call{tb: tb, tool: tool, key: newMemoryKey(), probe: &probe{}}
	if opts != nil {
		c.opts = *opts
	}
	raw, err := strictjson.Marshal(args)
	if err != nil {
		tb.Fatalf("thawtest: encode arguments: %v", err)
	}
	c.args = raw
	return c
}

// Replace puts a new version of the tool in place of the old one, as a deploy in
// mid-call does.
func (c *Call) Replace(tool *thaw.Tool) *Call {
	c.tool = tool
	return c
}

// Crash plays the last request again, as a client does whose instance died before it
// answered: what that run had done is lost, what came before is not.
func (c *Call) Crash() *Call {
	c.tb.Helper()
	c.resend()
	return c
}

// send makes the next request of the call, with the answers it brings.
func (c *Call) send(answers []byte) {
	c.tb.Helper()
	params := map[string]any{
		"name":      c.tool.Definition().Name,
		"arguments": c.args,
		"_meta": map[string]any{
			mcp.MetaProtocolVersion:    mcp.Version,
			mcp.MetaClientInfo:         mcp.Implementation{Name: "thawtest", Version: "0"},
			mcp.MetaClientCapabilities: c.capabilities(),
			mcp.MetaProgressToken:      "thawtest",
		},
	}
	if c.state != "" {
		params["requestState"] = c.state
	}
	if answers != nil {
		params["inputResponses"] = json.RawMessage(answers)
	}
	raw, err := strictjson.Marshal(params)
	if err != nil {
		c.tb.Fatalf("thawtest: encode the request: %v", err)
	}
	c.last = raw
	c.rounds++
	c.resend()
}

// resend makes the last request, on a fresh instance.
func (c *Call) resend() {
	c.tb.Helper()
	body := append(append([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+mcp.MethodCallTool+`","params":`), c.last...), '}')
	r := httptest.NewRequestWithContext(journal.WithProbe(c.tb.Context(), c.probe), http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(mcp.HeaderProtocolVersion, mcp.Version)
	r.Header.Set(mcp.HeaderMethod, mcp.MethodCallTool)
	r.Header.Set(mcp.HeaderName, c.tool.Definition().Name)
	serve.MirrorArguments(r.Header, c.tool, c.args)
	o := &serve.Options{
		Host:      host.Facts{Resident: true, Streaming: true, Loopback: true}, // at this machine, errors come with their text
		StateKeys: []statecodec.Key{c.key},
		StateTTL:  statecodec.MaxTTL,
		Auth:      c.opts.schemes(),
		Logger:    testLogger(c.tb),
	}
	if start := c.opts.Start; !start.IsZero() {
		began := time.Now()
		o.Now = func() time.Time { return start.Add(time.Since(began)) }
	}
	h, err := serve.New(thaw.Server{Name: "thawtest", Version: "0", Tools: []*thaw.Tool{c.tool}, Middleware: c.opts.Middleware}, o)
	if err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if c.probe.killed {
		return // nobody got the answer
	}
	c.read(w)
	if c.result != nil && !c.result.IsError {
		c.checkOutput(c.tool, c.tool.Definition().Name)
	}
}

func (c *Call) capabilities() json.RawMessage {
	switch {
	case c.opts.Capabilities != nil:
		return c.opts.Capabilities
	case c.opts.NoElicit:
		return json.RawMessage(`{"sampling":{"tools":{},"context":{}},"roots":{}}`)
	}
	return json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}`)
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
	c.result, c.err, c.state, c.asked = nil, nil, "", nil
	for _, m := range messages {
		var message struct {
			Method string
			Params json.RawMessage
			Result json.RawMessage
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
			if strictjson.Is(strictjson.Member(message.Error.Data, "reason"), "misuse") {
				c.tb.Errorf("thawtest: %s", message.Error.Message)
			}
		case message.Result != nil:
			c.readResult(message.Result)
		}
	}
	if c.result == nil && c.err == nil && c.state == "" {
		c.tb.Fatalf("thawtest: no answer (status %d): %s", w.Code, w.Body)
	}
}

// readResult reads a final result, or what the call asks.
func (c *Call) readResult(raw json.RawMessage) {
	c.tb.Helper()
	if !strictjson.Is(strictjson.Member(raw, "resultType"), "input_required") {
		if err := json.Unmarshal(raw, &c.result); err != nil {
			c.tb.Fatalf("thawtest: %v", err)
		}
		return
	}
	c.state, _ = strictjson.String(strictjson.Member(raw, "requestState"))
	for key, request := range strictjson.Members(strictjson.Member(raw, "inputRequests")) {
		method, _ := strictjson.String(strictjson.Member(request, "method"))
		c.asked = append(c.asked, question{string(key), method, strictjson.Member(request, "params")})
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

// Done reports whether the call has ended; until then it waits for an Answer.
func (c *Call) Done() bool { return c.state == "" }

// Result is the result, or nil if the call ended in a JSON-RPC error or has not ended.
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
	case c.result == nil:
		c.tb.Fatalf("thawtest: the call has not ended, it asks %v", c.Asked())
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

// Server is a real server over HTTP on loopback, ended with the test, on a store in memory
// and with a key of its own unless o says otherwise. o may be nil; its Host is set to what
// such a server is.
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
	if options.StateKeys == nil {
		options.StateKeys = []statecodec.Key{newMemoryKey()}
	}
	if options.Store == nil {
		options.Store = memstore.New(nil)
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

func testLogger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), nil))
}
