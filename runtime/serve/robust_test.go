package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
)

type panickingLog struct{ slog.Handler }

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("operator's log") }
func (p panickingLog) WithAttrs([]slog.Attr) slog.Handler      { return p }
func (p panickingLog) WithGroup(string) slog.Handler           { return p }

// Answers do not depend on the operator's log, not even those that a timer gives.
func TestPanickingLog(t *testing.T) {
	release := make(chan struct{})
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{
		tool1(func(ctx context.Context) (any, error) { thaw.Logger(ctx).Error("x"); panic("boom") }, nil),
		thaw.NewTool("fails", "", func(context.Context, struct{}) (string, error) { return "", io.EOF }, nil),
		thaw.NewTool("deaf", "", func(context.Context, struct{}) (string, error) { <-release; return "", nil }, &thaw.ToolOptions{Timeout: time.Millisecond}),
	}}, Options{Logger: slog.New(panickingLog{})})
	server := httptest.NewServer(h)
	defer server.Close()
	defer close(release)
	for name, want := range map[string]string{"t": `"reason":"panic"`, "fails": "fails failed (reference ", "deaf": "deaf timed out"} {
		p := post{method: "tools/call", params: map[string]any{"name": name}}
		if got := overHTTP(t, server, p); !strings.Contains(got.raw, want) {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
}

// plainRecorder is a writer of middleware that knows nothing of flushing.
type plainRecorder struct {
	http.ResponseWriter
	status int
}

func (r *plainRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Behind middleware that takes streaming away, a call that tells its progress still answers, and
// nothing is advertised that could only be streamed (V-09). The same goes for the front doors of a
// function that do not take what others of it do.
func TestWriterWithoutFlush(t *testing.T) {
	h, _ := newHandler(t, steps(), Options{Host: resident})
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&plainRecorder{ResponseWriter: w}, r) })
	for _, c := range []struct {
		h    http.Handler
		want string
	}{{h, `"capabilities":{"tools":{"listChanged":true},"logging":{}}`}, {wrapped, `"capabilities":{"tools":{}}`}} {
		if got := do(t, c.h, post{method: "server/discover"}.request(t)); !strings.Contains(got.raw, c.want) {
			t.Errorf("%s, want %s", got.raw, c.want)
		}
	}
	got := do(t, wrapped, withMeta(`{"progressToken":1}`).request(t))
	if got.header.Get("Content-Type") != "application/json" || len(got.messages) != 1 || !strings.Contains(got.raw, "done") {
		t.Errorf("%v %s", got.header, got.raw)
	}
	p := post{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{}}}
	if got := do(t, wrapped, p.request(t)); got.status != 404 || got.code() != -32601 {
		t.Errorf("listen: %d %s", got.status, got.raw)
	}
}

// A client that closes only its own side does not take silence for success.
func TestHalfClosedClient(t *testing.T) {
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, nil)}}, Options{Host: resident})
	server := httptest.NewServer(h)
	defer server.Close()
	body, _ := io.ReadAll(callT().request(t).Body)
	for name, c := range map[string]struct{ length, status int }{"in the middle of a call": {len(body), statusClientClosed}, "in the middle of a body": {len(body) + 100, 408}} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: t\r\nContent-Length: %d\r\n\r\n%s", c.length, body)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
		_ = conn.Close()
	}
}

// What was offered once stays offered, whoever replaces what at the same time.
func TestConcurrentReplace(t *testing.T) {
	ran := 0
	full := testServer(&ran)
	h, _ := newHandler(t, full, Options{Host: resident})
	var replacers sync.WaitGroup
	for i := range 4 {
		replacers.Go(func() {
			for range 50 {
				s := full
				if i%2 == 0 {
					s = thaw.Server{Name: "test"}
				}
				if err := h.Replace(s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	replacers.Wait()
	if err := h.Replace(thaw.Server{Name: "test"}); err != nil {
		t.Fatal(err)
	}
	capabilities := fmt.Sprint(do(t, h, post{method: "server/discover"}.request(t)).result(t)["capabilities"])
	for _, offered := range []string{"tools", "prompts", "resources", "completions"} {
		if !strings.Contains(capabilities, offered) {
			t.Errorf("%s is gone: %s", offered, capabilities)
		}
	}
}

// What no constructor made is an error, not a panic.
func TestUnmadeDeclarations(t *testing.T) {
	tool := tool1(func(context.Context) (any, error) { return 1, nil }, nil)
	for name, s := range map[string]thaw.Server{
		"zero tool":      {Tools: []*thaw.Tool{{}}},
		"nil tool":       {Tools: []*thaw.Tool{nil}},
		"nil prompt":     {Prompts: []*thaw.Prompt{nil}},
		"nil resource":   {Resources: []*thaw.Resource{nil}},
		"nil template":   {ResourceTemplates: []*thaw.ResourceTemplate{nil}},
		"nil middleware": {Tools: []*thaw.Tool{tool}, Middleware: []thaw.Middleware{nil}},
		"middleware that gives nil": {Tools: []*thaw.Tool{tool}, Middleware: []thaw.Middleware{
			func(thaw.HandlerFunc) thaw.HandlerFunc { return nil }}},
	} {
		s.Name = "s"
		if _, err := New(s, &Options{Host: resident}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// What the stop of the server cuts off is told so, and may be tried again.
func TestCutOffByTheStop(t *testing.T) {
	h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, nil)}}, Options{})
	ctx, cut := context.WithCancelCause(t.Context())
	cut(host.ErrStopping)
	got := do(t, h, callT().request(t).WithContext(ctx))
	if got.status != 503 || got.reason() != reasonStopping || got.header.Get("Retry-After") != "1" || strings.Contains(log.String(), "client left") {
		t.Errorf("%d %s\n%s", got.status, got.raw, log)
	}
}

// A host that sends an answer only when it is whole, or has to tell a broken one from a whole one,
// hears of one that a handler got which did not return.
func TestAnsweredIsTold(t *testing.T) {
	t.Run("deaf", deafHandler)
	t.Run("Goexit", func(t *testing.T) {
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(context.Context) (any, error) { runtime.Goexit(); return nil, nil }, nil)}}, Options{})
		r, w := callT().request(t), httptest.NewRecorder()
		told, done := false, make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, r.WithContext(host.WithAnswered(r.Context(), func() { told = strings.Contains(w.Body.String(), "panic") })))
		}()
		if <-done; !told {
			t.Errorf("not told of %s", w.Body)
		}
	})
}

func deafHandler(t *testing.T) {
	release := make(chan struct{})
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{
		tool1(func(context.Context) (any, error) { <-release; return "late", nil }, &thaw.ToolOptions{Timeout: time.Millisecond}),
	}}, Options{})
	whole := make(chan struct{})
	r := callT().request(t)
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(w, r.WithContext(host.WithAnswered(r.Context(), func() { close(whole) })))
	}()
	<-whole
	if !strings.Contains(w.Body.String(), "t timed out") {
		t.Errorf("%s", w.Body)
	}
	close(release)
	<-done
}
