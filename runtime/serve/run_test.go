package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

type badStringer struct{}

func (badStringer) String() string { panic("secret-panic in String") }

// badError panics in its own methods, after the handler has returned.
type badError struct{ badMarshaler }

func (badError) Error() string { panic("secret-panic in Error") }

type badText struct{ error }

func (badText) ClientText() string { panic("secret-panic in ClientText") }

type badMarshaler struct{}

func (badMarshaler) MarshalJSON() ([]byte, error) { panic("secret-panic in MarshalJSON") }

func tool1(fn func(ctx context.Context) (any, error), opts *thaw.ToolOptions) *thaw.Tool {
	return thaw.NewTool("t", "", func(ctx context.Context, _ struct{}) (any, error) { return fn(ctx) }, opts)
}

func callT() post { return post{method: "tools/call", params: map[string]any{"name": "t"}} }

// Panics are contained and never leak (B-72 of the case list), over a real connection,
// since runtime.Goexit ends the connection's own goroutine.
func TestPanics(t *testing.T) {
	var nilMap map[string]int
	for name, fn := range map[string]func(ctx context.Context) (any, error){
		"nil map":      func(context.Context) (any, error) { nilMap["secret-panic"] = 1; return nil, nil },
		"string":       func(context.Context) (any, error) { panic("secret-panic") },
		"nil":          func(context.Context) (any, error) { panic(nil) },
		"Goexit":       func(context.Context) (any, error) { runtime.Goexit(); return nil, nil },
		"Stringer":     func(context.Context) (any, error) { panic(badStringer{}) },
		"MarshalJSON":  func(context.Context) (any, error) { return badMarshaler{}, nil },
		"Error":        func(context.Context) (any, error) { return nil, badError{} },
		"ClientText":   func(context.Context) (any, error) { return nil, badText{errors.New("x")} },
		"error data":   func(context.Context) (any, error) { return nil, &mcp.Error{Code: 1, Data: badMarshaler{}} },
		"ErrAbort":     func(context.Context) (any, error) { panic(http.ErrAbortHandler) },
		"after stream": func(ctx context.Context) (any, error) { thaw.Progress(ctx, 1, 2, "half"); panic("secret-panic") },
	} {
		t.Run(name, func(t *testing.T) {
			h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(fn, nil)}}, Options{Host: resident})
			server := httptest.NewServer(h)
			defer server.Close()
			p := callT()
			p.meta = map[string]any{"progressToken": 1}
			_ = json.Unmarshal([]byte(goodMeta), &p.meta)
			for range 2 { // the next request on the same server works too
				got := overHTTP(t, server, p)
				if got.code() != -32603 || got.reason() != "panic" || string(got.last().ID) != "7" {
					t.Errorf("got %d %s", got.status, got.raw)
				}
				for _, leak := range []string{"secret-panic", ".go", "goroutine", "runtime"} {
					if strings.Contains(got.raw, leak) {
						t.Errorf("the answer has %q: %s", leak, got.raw)
					}
				}
			}
			if !strings.Contains(log.String(), "run_test.go") {
				t.Errorf("the log has no stack: %s", log)
			}
		})
	}
}

func overHTTP(t *testing.T, server *httptest.Server, p post) answer {
	t.Helper()
	r := p.request(t)
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", strings.TrimPrefix(server.URL, "http://"), ""
	r.Host = r.URL.Host
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return readAnswer(t, resp)
}

// What a handler's error becomes (docs/errors.md).
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name         string
		err          error
		facts        string
		status, code int // code 0: an isError result
		text         string
		reason       string
	}{
		{"Errorf", thaw.Errorf("no %s", "luck"), "off", 200, 0, "no luck", ""},
		{"wrapped Errorf sends its own text only", fmt.Errorf("db secret: %w", thaw.Errorf("no luck")), "off", 200, 0, "no luck", ""},
		{"joined Errorf", errors.Join(errors.New("secret"), thaw.Errorf("no luck")), "off", 200, 0, "no luck", ""},
		{"WrapErrorf hides its cause", thaw.WrapErrorf(errors.New("secret"), "no luck"), "off", 200, 0, "no luck", ""},
		{"any other is masked", errors.New("secret"), "off", 200, 0, "t failed (reference ", "handler_failed"},
		{"any other, on this machine", errors.New("disk full"), "on", 200, 0, ": disk full", "handler_failed"},
		{"protocol error", fmt.Errorf("secret: %w", &mcp.Error{Code: -1, Message: "own", Data: map[string]int{"a": 1}}), "off", 200, -1, "own", ""},
		{"protocol error beside Errorf", errors.Join(thaw.Errorf("x"), &mcp.Error{Code: 42, Message: "own"}), "off", 200, 42, "own", ""},
		{"nil protocol error", (*mcp.Error)(nil), "off", 200, -32603, "t failed (reference ", "handler_failed"},
		{"nil unsupported", (*thaw.UnsupportedError)(nil), "off", 200, -32603, "t failed (reference ", "handler_failed"},
		{"unsupported, a list", &thaw.UnsupportedError{Needs: mcp.ClientCapabilities{Raw: json.RawMessage(`["sampling"]`)}}, "off", 200, -32603, "t failed (reference ", "handler_failed"},
		{"a code of JSON-RPC", &mcp.Error{Code: -32602, Message: "own"}, "off", 200, -32602, "own", ""},
		{"reserved code", &mcp.Error{Code: -32002, Message: "secret"}, "off", 200, -32603, "t failed (reference ", "handler_failed"},
		{"reserved code 2", &mcp.Error{Code: -32099, Message: "secret"}, "off", 200, -32603, "t failed (reference ", "handler_failed"},
		{"unsupported", fmt.Errorf("x: %w", &thaw.UnsupportedError{Needs: mcp.ClientCapabilities{Raw: json.RawMessage(`{"sampling":{}}`)}}), "off", 400, -32021, "Missing required client capability", "missing_capability"},
		{"deadline of its own", fmt.Errorf("secret: %w", context.DeadlineExceeded), "off", 200, 0, "t failed (reference ", "handler_failed"},
		{"bare ErrUnsupported", thaw.ErrUnsupported, "off", 200, -32603, "t failed (reference ", "handler_failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := offLoopback
			if c.facts == "on" {
				facts = resident
			}
			h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(context.Context) (any, error) { return nil, c.err }, nil)}}, Options{Host: facts})
			got := do(t, h, callT().request(t))
			text, reason := "", got.reason()
			if e := got.last().Error; e != nil {
				text = e.Message
			} else {
				r := got.result(t)
				text = fmt.Sprint(r["content"].([]any)[0].(map[string]any)["text"])
				if r["isError"] != true {
					t.Error("not marked as an error")
				}
				reason, _ = r["_meta"].(map[string]any)[metaReason].(string)
			}
			if got.status != c.status || got.code() != c.code || !strings.Contains(text, c.text) || reason != c.reason {
				t.Errorf("got %d, %d, %q, %q; want %d, %d, %q, %q", got.status, got.code(), text, reason, c.status, c.code, c.text, c.reason)
			}
			if strings.Contains(got.raw, "secret") {
				t.Errorf("the answer leaks: %s", got.raw)
			}
			if c.code == -32021 && !strings.Contains(got.raw, `"requiredCapabilities":{"sampling":{}}`) {
				t.Errorf("data: %s", got.raw)
			}
			if !strings.HasPrefix(c.name, "nil ") && strings.Contains(c.err.Error(), "secret") && c.code != -1 && !strings.Contains(log.String(), "secret") {
				t.Errorf("the log lacks the cause: %s", log)
			}
		})
	}
}

// A reference in an answer finds its log line.
func TestReference(t *testing.T) {
	h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(context.Context) (any, error) { return nil, errors.New("cause") }, nil)}}, Options{})
	raw := do(t, h, callT().request(t)).raw
	_, after, _ := strings.Cut(raw, "(reference ")
	reference, _, ok := strings.Cut(after, ")")
	if !ok || len(reference) != 8 || !strings.Contains(log.String(), "call="+reference) {
		t.Errorf("%s\n%s", raw, log)
	}
}

func TestResults(t *testing.T) {
	type out struct {
		Items []string       `json:"items"`
		M     map[string]int `json:"m"`
	}
	type P struct {
		N int64 `json:"n"`
	}
	for _, c := range []struct {
		name string
		tool *thaw.Tool
		want string // members of the result
	}{
		{"string", thaw.NewTool("t", "", func(context.Context, struct{}) (string, error) { return "a\u2028b\xff", nil }, nil),
			`"content":[{"type":"text","text":"a\u2028b` + "\ufffd" + `"}]`},
		{"empty", thaw.NewTool("t", "", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, nil), `"content":[]`},
		{"content", thaw.NewTool("t", "", func(context.Context, struct{}) (*mcp.TextContent, error) { return &mcp.TextContent{Text: "x"}, nil }, nil),
			`"content":[{"type":"text","text":"x"}]`},
		{"contents", thaw.NewTool("t", "", func(context.Context, struct{}) ([]mcp.Content, error) {
			return []mcp.Content{&mcp.ImageContent{Data: []byte("p"), MIMEType: "image/png"}, &mcp.ResourceLink{URI: "a:b", Name: "n"},
				&mcp.EmbeddedResource{Resource: mcp.BlobResource("a:c", "x/y", []byte("b"))}}, nil
		}, nil), `"content":[{"type":"image","data":"cA==","mimeType":"image/png"},{"type":"resource_link","uri":"a:b","name":"n"},{"type":"resource","resource":{"uri":"a:c","mimeType":"x/y","blob":"Yg=="}}]`},
		{"nil slices and maps", thaw.NewTool("t", "", func(context.Context, struct{}) (out, error) { return out{}, nil }, nil),
			`"content":[{"type":"text","text":"{\"items\":[],\"m\":{}}"}],"structuredContent":{"items":[],"m":{}}`},
		{"a big integer", thaw.NewTool("t", "", func(context.Context, struct{}) (P, error) { return P{9007199254740993}, nil }, nil),
			`"content":[{"type":"text","text":"{\"n\":9007199254740993}"}],"structuredContent":{"n":9007199254740993}`},
		{"nil slice", thaw.NewTool("t", "", func(context.Context, struct{}) ([]string, error) { return nil, nil }, nil),
			`"content":[{"type":"text","text":"[]"}],"structuredContent":[]`},
		{"nil pointer", thaw.NewTool("t", "", func(context.Context, struct{}) (*P, error) { return nil, nil }, nil),
			`"content":[{"type":"text","text":"null"}],"structuredContent":null`},
		{"raw", thaw.NewTool("t", "", func(context.Context, struct{}) (json.RawMessage, error) {
			return json.RawMessage("{ \"a\": 1.50,\"s\":\"\u2029\"}"), nil
		}, nil),
			`"content":[{"type":"text","text":"{\"a\":1.50,\"s\":\"\\u2029\"}"}],"structuredContent":{"a":1.50,"s":"\u2029"}`},
		{"a whole result", thaw.NewTool("t", "", func(context.Context, struct{}) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(" null "), IsError: true}, nil
		}, nil), `"content":[],"structuredContent":null,"isError":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := newHandler(t, thaw.Server{OmitServerInfo: true, Name: "x", Tools: []*thaw.Tool{c.tool}}, Options{Host: resident})
			got := do(t, h, callT().request(t))
			if want := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete",` + c.want + `}}`; got.raw != want {
				t.Errorf("got  %s\nwant %s", got.raw, want)
			}
		})
	}
}

// What cannot be encoded is an error, never broken JSON (B-43 of the case list).
func TestUnencodableResults(t *testing.T) {
	for name, out := range map[string]any{"NaN": math.NaN(), "Inf": math.Inf(1), "channel": make(chan int), "function": func() {}} {
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(context.Context) (any, error) { return out, nil }, nil)}}, Options{})
		got := do(t, h, callT().request(t))
		if got.result(t)["isError"] != true {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
	for name, r := range map[string]*mcp.CallToolResult{
		"bad JSON":  {StructuredContent: json.RawMessage(`{"a":`)},
		"nil block": {Content: []mcp.Content{nil}},
		"nothing":   nil,
	} {
		tool := thaw.NewRawTool("t", "", json.RawMessage(`{"type":"object"}`), func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) { return r, nil }, nil)
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{})
		if got := do(t, h, callT().request(t)); got.result(t)["isError"] != true {
			t.Errorf("%s: %s", name, got.raw)
		}
	}
}

// F-09: a stated output schema is held.
func TestOutputSchema(t *testing.T) {
	for name, c := range map[string]struct {
		out  string
		code int
	}{"fits": {`{"n":1}`, 0}, "breaks": {`{"n":"x"}`, -32603}, "absent": {"", -32603}, "no JSON": {"{", -32603}} {
		tool := thaw.NewRawTool("t", "", json.RawMessage(`{"type":"object"}`), func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			r := &mcp.CallToolResult{}
			if c.out != "" {
				r.StructuredContent = json.RawMessage(c.out)
			}
			return r, nil
		}, &thaw.ToolOptions{OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)})
		h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{})
		got := do(t, h, callT().request(t))
		if got.code() != c.code {
			t.Errorf("%s: %s", name, got.raw)
		}
		if c.code != 0 && (got.reason() != "broken_tool" || !strings.Contains(log.String(), "output")) {
			t.Errorf("%s: %s, log %s", name, got.raw, log)
		}
	}
}

// H-24, and an answer for a handler that does not look at its ctx.
func TestDeadline(t *testing.T) {
	for name, obedient := range map[string]bool{"obedient": true, "deaf": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
					if obedient {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					<-release
					return "late", nil
				}, &thaw.ToolOptions{Timeout: 3 * time.Second})}}, Options{Host: resident, Limits: Limits{RequestTimeout: time.Hour}})
				w := httptest.NewRecorder()
				r := callT().request(t)
				done := make(chan struct{})
				start := time.Now()
				go func() { defer close(done); h.ServeHTTP(w, r) }()
				time.Sleep(3 * time.Second)
				synctest.Wait()
				answer := w.Body.String()
				close(release)
				<-done
				if !strings.Contains(answer, "t timed out") || w.Body.String() != answer {
					t.Errorf("after %s: %s then %s", time.Since(start), answer, w.Body)
				}
			})
		})
	}
}

// Over real connections that are used again: every request gets its own answer once,
// although handlers end around their deadline, and none waits for a handler that does not
// end.
func TestDeadlineOnRealConnections(t *testing.T) {
	release := make(chan struct{})
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{
		tool1(func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, &thaw.ToolOptions{Timeout: time.Millisecond}),
		thaw.NewTool("deaf_stream", "", func(ctx context.Context, _ struct{}) (string, error) {
			thaw.Progress(ctx, 1, 2, "")
			<-release
			thaw.Progress(ctx, 2, 2, "")
			return "late", nil
		}, &thaw.ToolOptions{Timeout: 50 * time.Millisecond}),
		thaw.NewTool("deaf", "", func(context.Context, struct{}) (string, error) { <-release; return "late", nil }, &thaw.ToolOptions{Timeout: time.Millisecond}),
	}}, Options{Host: resident, Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(h)
	defer server.Close()
	defer close(release)
	var callers sync.WaitGroup
	for worker := range 8 {
		callers.Go(func() {
			for i := range 50 {
				p := callT()
				p.id = fmt.Sprintf(`"%d-%d"`, worker, i)
				messages := 1
				switch i {
				case 25:
					p.params = map[string]any{"name": "deaf"}
				case 30: // its stream ends with the answer, though the handler does not (H-16)
					id := p.id
					p = withMeta(`{"progressToken":1}`)
					p.id, p.params, messages = id, map[string]any{"name": "deaf_stream"}, 2
				}
				got := overHTTP(t, server, p)
				if string(got.last().ID) != p.id || !strings.Contains(got.raw, "timed out") || len(got.messages) != messages {
					t.Errorf("%s got %s", p.id, got.raw)
				}
			}
		})
	}
	callers.Wait()
}

// F-18: a tool's own limit.
func TestRateLimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ran := 0
	tool := tool1(func(context.Context) (any, error) { ran++; return 1, nil }, &thaw.ToolOptions{Rate: &thaw.Rate{PerMinute: 6, Burst: 2}})
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{Now: func() time.Time { return now }})
	for i, want := range []int{200, 200, 429, 429} {
		if got := do(t, h, callT().request(t)); got.status != want {
			t.Errorf("call %d: %d", i, got.status)
		} else if want == 429 && (got.header.Get("Retry-After") != "10" || got.code() != -32603 || got.reason() != "rate_limited") {
			t.Errorf("%v %s", got.header, got.raw)
		}
	}
	if err := h.Replace(thaw.Server{Name: "test", Tools: []*thaw.Tool{tool}}); err != nil {
		t.Fatal(err)
	}
	if got := do(t, h, callT().request(t)); got.status != 429 {
		t.Errorf("a Replace gave a free burst: %d", got.status)
	}
	now = now.Add(10 * time.Second)
	if got := do(t, h, callT().request(t)); got.status != 200 || ran != 3 {
		t.Errorf("after the wait: %d, ran %d", got.status, ran)
	}
}

func TestRateLimitForgetsCallers(t *testing.T) {
	l := newRateLimit(60, 1)
	now := time.Unix(1_800_000_000, 0)
	for i := range 3 * maxCallers {
		l.take(owner{subject: fmt.Sprint(i)}, now)
		if len(l.callers) > maxCallers {
			t.Fatalf("%d callers are kept", len(l.callers))
		}
	}
}

func TestMiddleware(t *testing.T) {
	var order []string
	wrap := func(name string) thaw.Middleware {
		return func(next thaw.HandlerFunc) thaw.HandlerFunc {
			return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
				order = append(order, name)
				return next(ctx, args)
			}
		}
	}
	tool := tool1(func(ctx context.Context) (any, error) {
		info := thaw.CallInfoFrom(ctx)
		order = append(order, info.Tool+" "+info.ClientName+" "+info.Principal.Scheme+" "+fmt.Sprint(info.Capabilities.Has("elicitation"), len(info.ID)))
		return 1, nil
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}, Middleware: []thaw.Middleware{wrap("outer"), wrap("inner")}}, Options{})
	p := callT()
	p.meta = map[string]any{mcp.MetaProtocolVersion: mcp.Version, mcp.MetaClientCapabilities: map[string]any{"elicitation": map[string]any{}},
		mcp.MetaClientInfo: map[string]any{"name": "me", "version": "1"}}
	do(t, h, p.request(t))
	if got := strings.Join(order, ", "); got != "outer, inner, t me none true 32" {
		t.Error(got)
	}
}

// sharedStore is a store that other processes see: it is not task.Private.
type sharedStore struct{ *memstore.Store }

func (sharedStore) Private(processes int) {}

// The cause of a fault is for somebody at this very machine, and in a task only where no other process
// can answer with how that ended.
func TestCausesInTasks(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			tool := tool1(func(context.Context) (any, error) { return nil, errors.New("dsn=hunter2") }, &thaw.ToolOptions{Tasks: mode})
			for store, told := range map[task.Store]bool{memory(): true, sharedStore{memory()}: false} {
				working(t, []*thaw.Tool{tool}, Options{MCTP: true, Store: store}, func(t *testing.T, h *Handler) {
					id, status := made(t, h, submit("/t", ""))
					a := exchange(t, h, get("/t/"+id+"/result"))
					if status != "failed" || strings.Contains(a.raw, "hunter2") != told || !strings.Contains(a.raw, "t failed (reference ") {
						t.Errorf("%s %s", status, a.raw)
					}
					if mode == thaw.TaskOnDemand || mode == thaw.TaskNever {
						if a := do(t, h, callT().request(t)); !strings.Contains(a.raw, "hunter2") {
							t.Errorf("a plain call: %s", a.raw)
						}
					}
				})
			}
		})
	}
}
