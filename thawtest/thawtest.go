// Package thawtest drives a tool in memory, through the same checks, encoding and errors
// that a client meets: what passes here is what is served.
package thawtest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
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
	// NoElicit takes elicitation out of nil Capabilities, NoTasks the extension Tasks.
	NoElicit, NoTasks bool
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
	world  *world
	killed bool // the process that did something for the call last

	taskID    string // "": no task, or not yet
	result    *mcp.CallToolResult
	err       *mcp.Error
	cancelled bool
	over      bool
	state     string
	asked     []question
	progress  []Progress
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
//
// A call that becomes a task is worked on at once, as long as there is something to do. From
// then on its time stands still and moves only by Advance, and by Crash as far as a lease takes
// to run out. Only what is waited for in place, a RetryAfter or a wait of a second at most, takes
// the time it takes.
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
	c.world = newWorld(c.opts.Start)
	raw, err := strictjson.Marshal(args)
	if err != nil {
		tb.Fatalf("thawtest: encode arguments: %v", err)
	}
	c.args = raw
	return c
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

// Done reports whether the call has ended; until then it waits for an Answer, or, as a task
// that asks nothing, for its time.
func (c *Call) Done() bool { return c.over }

// Result is the result, or nil if the call ended in a JSON-RPC error or has not ended.
func (c *Call) Result() *mcp.CallToolResult { return c.result }

// Err is the JSON-RPC error the client got, a *mcp.Error whose Data is a
// json.RawMessage; of a call that was cancelled thaw.ErrCancelled; nil if there is a result. A
// tool error is a result: see IsError. Of a task that still asks it is why the last answer was
// refused.
func (c *Call) Err() error {
	switch {
	case c.err != nil:
		return c.err
	case c.cancelled:
		return thaw.ErrCancelled
	}
	return nil
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
	case c.Err() != nil:
		c.tb.Fatalf("thawtest: the call ended in %v", c.Err())
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
