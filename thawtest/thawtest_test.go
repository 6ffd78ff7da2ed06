package thawtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

// recorder is a test that notes how it fails.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failuresOf runs f as a test would and returns what it failed with.
func failuresOf(t *testing.T, f func(tb testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return strings.Join(r.failures, "\n")
}

type in struct {
	N int `json:"n" header:"N" minimum:"0"`
}

type out struct {
	Half float64 `json:"half" maximum:"10"`
}

func halve() *thaw.Tool {
	return thaw.NewTool("halve", "", func(ctx context.Context, in in) (out, error) {
		if in.N == 13 {
			return out{}, thaw.Errorf("unlucky")
		}
		if in.N == 14 {
			return out{}, &mcp.Error{Code: 14, Message: "own", Data: map[string]int{"n": 14}}
		}
		thaw.Progress(ctx, 1, 1, "halved")
		return out{float64(in.N) / 2}, nil
	}, nil)
}

func TestStart(t *testing.T) {
	c := thawtest.Start(t, halve(), in{5}, nil)
	if got := thawtest.Output[out](c); got.Half != 2.5 || c.Text() != `{"half":2.5}` || c.IsError() || c.Err() != nil {
		t.Errorf("%+v, %q", got, c.Text())
	}
	if got := c.Progress(); len(got) != 1 || got[0].Message != "halved" {
		t.Errorf("%v", got)
	}
	if c := thawtest.Start(t, halve(), map[string]any{"n": -1}, nil); !c.IsError() || !strings.Contains(c.Text(), "/n") {
		t.Errorf("%q", c.Text())
	}
	if c := thawtest.Start(t, halve(), in{13}, nil); !c.IsError() || c.Text() != "unlucky" {
		t.Errorf("%q", c.Text())
	}
	c = thawtest.Start(t, halve(), in{14}, nil)
	if e, ok := c.Err().(*mcp.Error); !ok || e.Code != 14 || string(e.Data.(json.RawMessage)) != `{"n":14}` || c.Result() != nil || c.Text() != "" {
		t.Errorf("%v", c.Err())
	}
}

func TestOptions(t *testing.T) {
	var seen bool
	middleware := func(next thaw.HandlerFunc) thaw.HandlerFunc {
		return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			seen = thaw.CallInfoFrom(ctx).Capabilities.Has("elicitation")
			return next(ctx, args)
		}
	}
	thawtest.Start(t, halve(), in{1}, &thawtest.Options{Middleware: []thaw.Middleware{middleware}, Capabilities: json.RawMessage(`{"elicitation":{}}`)})
	if !seen {
		t.Error("the middleware saw no capability")
	}
}

// What a client would stumble over fails the test, also where the server trusts the type.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(tb testing.TB)
		want string
	}{
		"a result outside its own schema": {func(tb testing.TB) { thawtest.Start(tb, halve(), in{100}, nil) }, "breaks its output schema: /half"},
		"output of a failed call":         {func(tb testing.TB) { thawtest.Output[out](thawtest.Start(tb, halve(), in{13}, nil)) }, "the tool failed: unlucky"},
		"output of a refused call":        {func(tb testing.TB) { thawtest.Output[out](thawtest.Start(tb, halve(), in{14}, nil)) }, "own (14)"},
		"output of another type":          {func(tb testing.TB) { thawtest.Output[[]int](thawtest.Start(tb, halve(), in{2}, nil)) }, "thawtest"},
		"arguments that JSON cannot hold": {func(tb testing.TB) { thawtest.Start(tb, halve(), make(chan int), nil) }, "encode arguments"},
	} {
		if got := failuresOf(t, c.do); !strings.Contains(got, c.want) {
			t.Errorf("%s: failed with %q, want %q", name, got, c.want)
		}
	}
	if got := failuresOf(t, func(tb testing.TB) { thawtest.Start(tb, halve(), in{4}, nil) }); got != "" {
		t.Errorf("a good call failed with %q", got)
	}
}

func TestServer(t *testing.T) {
	server := thawtest.Server(t, thaw.Server{Name: "s", Tools: []*thaw.Tool{halve()}}, nil)
	body := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Protocol-Version", mcp.Version)
	r.Header.Set("Mcp-Method", mcp.MethodDiscover)
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// A tool's scopes hold in a test as they do in a server.
func TestPrincipal(t *testing.T) {
	tool := thaw.NewTool("whoami", "", func(ctx context.Context, _ struct{}) (string, error) {
		if err := thaw.RequireScopes(ctx, "write"); err != nil {
			return "", err
		}
		return thaw.CallInfoFrom(ctx).Principal.Subject, nil
	}, &thaw.ToolOptions{Scopes: []string{"read"}})
	alice := func(scopes ...string) *thawtest.Options {
		return &thawtest.Options{Principal: thaw.Principal{Scheme: "jwt", Subject: "alice", Scopes: scopes}}
	}
	if c := thawtest.Start(t, tool, nil, alice("read", "write")); c.Text() != "alice" {
		t.Errorf("%q, %v", c.Text(), c.Err())
	}
	for name, opts := range map[string]*thawtest.Options{"anonymous": nil, "without the declared one": alice("write"), "without the other": alice("read"),
		"without a scheme": {Principal: thaw.Principal{Subject: "alice", Scopes: []string{"read", "write"}}}} {
		if c := thawtest.Start(t, tool, nil, opts); c.Err() == nil || c.Result() != nil {
			t.Errorf("%s: %q", name, c.Text())
		}
	}
	if err := thaw.RequireScopes(thawtest.Context(t, nil), "read"); err == nil {
		t.Error("an anonymous caller has a scope")
	}
}
