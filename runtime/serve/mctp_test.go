package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/task/memstore"
)

func memory() *memstore.Store { return memstore.New(nil) }

// mctpShapes are the definitions of the schema of MCTP 0.1, formats asserted.
var mctpShapes = sync.OnceValue(func() map[mctp.Kind]*jsonschema.Schema {
	text, err := os.ReadFile("../../mctp/testdata/schema.json")
	if err != nil {
		panic(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mctp:0.1", doc); err != nil {
		panic(err)
	}
	at := func(name string) *jsonschema.Schema { return c.MustCompile("mctp:0.1#/definitions/" + name) }
	return map[mctp.Kind]*jsonschema.Schema{
		mctp.Discovery: at("DiscoveryResponse"), mctp.Create: at("TaskResponse"), mctp.State: at("TaskResponse"), mctp.Outcome: at("TaskResultResponse"),
	}
})

// mctpCall is a request of MCTP, to be changed before it is sent.
type mctpCall struct {
	verb, path, body string
	headers          map[string]string
	host             string
}

func (c mctpCall) request(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, c.verb, c.path, strings.NewReader(c.body))
	if r.Host = "localhost:8080"; c.host != "" {
		r.Host = c.host
	}
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range c.headers {
		r.Header.Set(k, v)
	}
	return r
}

// as is c with a bearer token.
func (c mctpCall) as(token string) mctpCall { return c.with("Authorization", "Bearer "+token) }

func (c mctpCall) with(header, value string) mctpCall {
	headers := maps.Clone(c.headers)
	if headers == nil {
		headers = map[string]string{}
	}
	headers[header] = value
	c.headers = headers
	return c
}

func (c mctpCall) to(path string) mctpCall     { c.path = path; return c }
func (c mctpCall) at(host string) mctpCall     { c.host = host; return c }
func (c mctpCall) saying(body string) mctpCall { c.body = body; return c }

func get(path string) mctpCall       { return mctpCall{verb: http.MethodGet, path: path} }
func head(path string) mctpCall      { return mctpCall{verb: http.MethodHead, path: path} }
func submit(path, b string) mctpCall { return mctpCall{verb: http.MethodPost, path: path, body: b} }

// problem is a refusal as a client reads it.
type problem struct {
	Title, Detail, Reason string
	Status                int
	Errors                []struct{ Pointer, Detail string }
}

// exchange sends c and holds whatever comes back to what holds for every answer: a HEAD has no
// body, JSON is of the schema of MCTP, anything else is a problem that says its own status.
func exchange(t testing.TB, h http.Handler, c mctpCall) answer {
	t.Helper()
	a := do(t, h, c.request(t.Context()))
	checkAnswer(t, c, a)
	return a
}

func checkAnswer(t testing.TB, c mctpCall, a answer) {
	t.Helper()
	where := fmt.Sprintf("%s %s: %d %.300s", c.verb, c.path, a.status, a.raw)
	if c.verb == http.MethodHead || a.status == http.StatusNotModified || a.status == http.StatusNoContent {
		if a.raw != "" {
			t.Errorf("%s: a body", where)
		}
		return
	}
	if a.status >= 400 {
		var p problem
		if err := json.Unmarshal([]byte(a.raw), &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" ||
			p.Status != a.status || p.Title != http.StatusText(a.status) || p.Detail == "" || p.Reason == "" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: no problem: %v, %v", where, a.header, err)
		}
		return
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Content-Length") != fmt.Sprint(len(a.raw)) {
		t.Errorf("%s: %v", where, a.header)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(a.raw))
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	route := mctp.RouteOf(strings.TrimPrefix(c.path, "/base"))
	if schema := mctpShapes()[route.Kind]; schema != nil {
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	} else if route.Kind != mctp.OpenAPI {
		t.Errorf("%s: an answer of no shape", where)
	}
}

// refused is exchange for what is to be refused.
func refused(t testing.TB, h http.Handler, c mctpCall, status int, reason string) (answer, problem) {
	t.Helper()
	a := exchange(t, h, c)
	var p problem
	_ = json.Unmarshal([]byte(a.raw), &p) // exchange has looked
	if a.status != status || c.verb != http.MethodHead && p.Reason != reason {
		t.Errorf("%s %s: %d %s, want %d %s", c.verb, c.path, a.status, a.raw, status, reason)
	}
	return a, p
}

// made is the id of a task that a POST makes.
func made(t testing.TB, h http.Handler, c mctpCall) (id, status string) {
	t.Helper()
	a := exchange(t, h, c)
	var task struct{ ID, Status string }
	_ = json.Unmarshal([]byte(a.raw), &task)
	if a.status != http.StatusCreated || task.Status != a.header.Get("X-Task-Status") || !strings.HasSuffix(a.header.Get("Location"), c.path+"/"+task.ID) {
		t.Fatalf("%d %v %s", a.status, a.header, a.raw)
	}
	return task.ID, task.Status
}

// sentiment is the tool of MCTP's own example.
func sentiment(opts *thaw.ToolOptions) *thaw.Tool {
	type in struct {
		Text     string `json:"text"`
		Language string `json:"language,omitempty"`
	}
	type out struct {
		Sentiment string  `json:"sentiment"`
		Score     float64 `json:"score"`
	}
	return thaw.NewTool("text_analysis", "Says how a text sounds", func(_ context.Context, in in) (out, error) {
		if in.Text == "" {
			return out{}, thaw.Errorf("there is no text")
		}
		return out{"positive", 0.98}, nil
	}, opts)
}

const hello = `{"parameters":{"text":"Hello world","language":"en"}}`

// The exchanges that the document of MCTP shows, in its order.
func TestMCTPExchanges(t *testing.T) {
	working(t, []*thaw.Tool{sentiment(nil)}, Options{MCTP: true, PublicURLs: []string{"https://api.example.com/mcp"}}, func(t *testing.T, h *Handler) {
		if a := exchange(t, h, get("/discovery")); a.raw != `{"endpoints":{"text_analysis":"https://api.example.com/text_analysis"}}` {
			t.Errorf("discovery: %s", a.raw)
		}
		before := time.Now()
		id, status := made(t, h, submit("/text_analysis", hello))
		if status != "completed" || time.Since(before) >= mctpWait {
			t.Errorf("a quick task is %s after %s", status, time.Since(before))
		}
		a := exchange(t, h, head("/text_analysis/"+id))
		if a.status != 200 || a.header.Get("X-Task-Status") != "completed" || a.header.Get("Retry-After") != "" || a.header.Get("Last-Modified") == "" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("status: %d %v", a.status, a.header)
		}
		created := before.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		task := `{"id":"` + id + `","status":"completed","createdAt":"` + created + `"}`
		if a := exchange(t, h, get("/text_analysis/"+id)); a.raw != task {
			t.Errorf("as users will try it: %s", a.raw)
		}
		if a := exchange(t, h, get("/text_analysis/"+id+"/result")); a.raw != `{"task":`+task+`,"result":{"sentiment":"positive","score":0.98}}` {
			t.Errorf("result: %s", a.raw)
		}
	})
}

// The status mapping: pending, in_progress, completed, failed; who waits says so.
func TestMCTPStatuses(t *testing.T) {
	gate := func(ctx context.Context, _ string) (any, error) { return "x", thaw.Sleep(ctx, "nap", time.Hour) }
	ask := func(ctx context.Context, _ string) (any, error) { return thaw.Confirm(ctx, "sure", "Sure?") }
	for name, c := range map[string]struct {
		end    func(ctx context.Context, _ string) (any, error)
		status string
		input  bool
		result string // "": not finished
	}{
		"a text":            {func(context.Context, string) (any, error) { return "x", nil }, "completed", false, `,"structuredContent":"x"}`},
		"an object":         {func(context.Context, string) (any, error) { return map[string]int{"n": 1}, nil }, "completed", false, `{"n":1}`},
		"a list":            {func(context.Context, string) (any, error) { return []int{1}, nil }, "completed", false, `"structuredContent":[1]}`},
		"an error":          {func(context.Context, string) (any, error) { return nil, thaw.Errorf("no luck") }, "failed", false, `{"error":{"reason":"tool_error","message":"no luck","content":[`},
		"a masked error":    {func(context.Context, string) (any, error) { return nil, errors.New("hunter2") }, "failed", false, `{"error":{"reason":"handler_failed","message":"t failed (reference `},
		"a protocol error":  {func(context.Context, string) (any, error) { return nil, &mcp.Error{Code: 77, Message: "own", Data: ""} }, "failed", false, `{"error":{"reason":"failed","message":"own"}}`},
		"a panic":           {func(context.Context, string) (any, error) { panic("hunter2") }, "failed", false, `{"error":{"reason":"panic","message":"Internal error (reference `},
		"not yet":           {gate, "in_progress", false, ""},
		"waiting for input": {ask, "in_progress", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tool := tool1(func(ctx context.Context) (any, error) { return c.end(ctx, "") }, nil)
			o := Options{MCTP: true, PublicURLs: []string{publicURL}} // so that errors are masked
			working(t, []*thaw.Tool{tool}, o, func(t *testing.T, h *Handler) {
				id, status := made(t, h, submit("/t", ""))
				a := exchange(t, h, head("/t/"+id))
				if status != c.status || a.header.Get("X-Task-Status") != c.status || (a.header.Get("X-Task-Input-Required") == "true") != c.input || (a.header.Get("Retry-After") == "1") != (c.result == "") {
					t.Errorf("%s, %v", status, a.header)
				}
				if c.result == "" {
					a, p := refused(t, h, get("/t/"+id+"/result"), http.StatusConflict, "not_finished")
					if a.header.Get("Retry-After") != "1" || a.header.Get("X-Task-Status") != c.status || (a.header.Get("X-Task-Input-Required") == "true") != c.input || !strings.Contains(p.Detail, c.status) {
						t.Errorf("%v %s", a.header, a.raw)
					}
					return
				}
				a = exchange(t, h, get("/t/"+id+"/result"))
				if !strings.Contains(a.raw, c.result) || strings.Contains(a.raw, "hunter2") {
					t.Errorf("%s", a.raw)
				}
			})
		})
	}
}

// A task that nobody works on yet is pending; one that its client cancels is failed, with a reason.
func TestMCTPPendingAndCancelled(t *testing.T) {
	posted(t, tool1(func(context.Context) (any, error) { return "x", nil }, nil), func(t *testing.T, h *Handler, _ *outbox) {
		h.mctp = true
		id, status := made(t, h, submit("/t", ""))
		if a := exchange(t, h, head("/t/"+id)); status != "pending" || a.header.Get("X-Task-Status") != "pending" {
			t.Errorf("%s %v", status, a.header)
		}
		if a := do(t, h, taskMethod("tasks/cancel", id).request(t)); a.code() != 0 {
			t.Fatal(a.raw)
		}
		if a := exchange(t, h, get("/t/"+id+"/result")); !strings.Contains(a.raw, `"status":"failed"`) || !strings.Contains(a.raw, `"result":{"error":{"reason":"cancelled","message":"The task was cancelled"}}`) {
			t.Errorf("%s", a.raw)
		}
	})
}

// A task that waits for input can be answered over MCP.
func TestMCTPAnsweredOverMCP(t *testing.T) {
	tool := tool1(func(ctx context.Context) (any, error) {
		ok, err := thaw.Confirm(ctx, "sure", "Sure?")
		return map[string]bool{"sure": ok}, err
	}, nil)
	working(t, []*thaw.Tool{tool}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
		id, _ := made(t, h, submit("/t", `{}`))
		if a := do(t, h, taskMethod("tasks/update", id, `{"sure":{"action":"accept"}}`).request(t)); a.code() != 0 {
			t.Fatal(a.raw)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if a := exchange(t, h, get("/t/"+id+"/result")); !strings.Contains(a.raw, `"result":{"sure":true}}`) {
			t.Errorf("%s", a.raw)
		}
	})
}

// A task created over MCTP is read through tasks/get by the same owner and the other way round; of
// another owner, and under another tool, it never was.
func TestMCTPAndMCPShareTasks(t *testing.T) {
	tools := []*thaw.Tool{tool1(func(context.Context) (any, error) { return map[string]int{"n": 1}, nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways}), sentiment(nil)}
	o := identified()
	o.MCTP = true
	working(t, tools, o, func(t *testing.T, h *Handler) {
		here, _ := made(t, h, submit("/t", "").as("alice-token"))
		if s := do(t, h, taskMethod("tasks/get", here).as("alice-token").request(t)).result(t); s["status"] != "completed" {
			t.Errorf("%v", s)
		}
		there := created(t, h, tasking(callT()).as("alice-token"))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if a := exchange(t, h, get("/t/"+there+"/result").as("alice-token")); !strings.Contains(a.raw, `"result":{"n":1}}`) {
			t.Errorf("%s", a.raw)
		}
		nobodys := map[string]bool{}
		for _, c := range []mctpCall{
			get("/t/" + here).as("guest-token"), get("/t/" + there + "/result").as("guest-token"), get("/text_analysis/" + here).as("alice-token"), get("/nope/" + here).as("alice-token"),
			get("/t/00000000-0000-8000-8000-000000000000").as("alice-token"), get("/t/x%2F..%00").as("alice-token"), get("/t/" + strings.Repeat("a", 3000)).as("alice-token"),
		} {
			a, _ := refused(t, h, c, http.StatusNotFound, "unknown_task")
			a.header.Del("Date")
			nobodys[fmt.Sprint(a.header, a.raw)] = true
			c.verb = http.MethodHead
			refused(t, h, c, http.StatusNotFound, "")
		}
		if len(nobodys) != 1 { // byte for byte
			t.Errorf("%v", nobodys)
		}
		if a := do(t, h, taskMethod("tasks/get", here).as("guest-token").request(t)); a.code() != mcp.CodeInvalidParams {
			t.Errorf("%s", a.raw)
		}
	})
}

// How long the answer to a new task waits (RFC 7240): the task has ended when a quick one's leaves.
func TestMCTPWaits(t *testing.T) {
	slow := tool1(func(ctx context.Context) (any, error) { return 1, thaw.Sleep(ctx, "nap", 3*time.Second) }, nil)
	for name, c := range map[string]struct {
		prefer  string
		limit   time.Duration
		atMost  time.Duration
		status  string
		applied string
	}{
		"by default":     {"", 0, time.Second, "in_progress", ""},
		"not at all":     {"respond-async", 0, 0, "pending", "respond-async"},
		"longer":         {"wait=10", 0, 4 * time.Second, "completed", "wait=10"},
		"both":           {"respond-async, wait=10", 0, 4 * time.Second, "completed", "wait=10"},
		"too long":       {"handling=strict, Wait = 1000", 0, 4 * time.Second, "completed", "wait=20"},
		"no number":      {"wait=x", 0, time.Second, "in_progress", ""},
		"the time it is": {"wait=10", 2 * time.Second, 2 * time.Second, "in_progress", "wait=2"},
		"quoted":         {`wait="10"`, 0, 4 * time.Second, "completed", "wait=10"},
		"parameters":     {"respond-async ; x=1", 0, 0, "pending", "respond-async"},
		"more of them":   {"wait=10;x=1;y, foo", 0, 4 * time.Second, "completed", "wait=10"},
		"much too long":  {"wait=99999999999999999999", 0, 4 * time.Second, "completed", "wait=20"},
		"signed":         {"wait=-1", 0, time.Second, "in_progress", ""},
		"nothing":        {"wait=", 0, time.Second, "in_progress", ""},
	} {
		t.Run(name, func(t *testing.T) {
			working(t, []*thaw.Tool{slow}, Options{MCTP: true, Limits: Limits{RequestTimeout: c.limit}}, func(t *testing.T, h *Handler) {
				began := time.Now()
				call := submit("/t", "")
				if c.prefer != "" {
					call = call.with("Prefer", c.prefer)
				}
				a := exchange(t, h, call)
				if took := time.Since(began); took > c.atMost || took < min(c.atMost, 3*time.Second) || a.header.Get("X-Task-Status") != c.status || a.header.Get("Preference-Applied") != c.applied {
					t.Errorf("%s after %s, applied %q", a.header.Get("X-Task-Status"), time.Since(began), a.header.Get("Preference-Applied"))
				}
			})
		})
	}
}

// What runs in the POST waits for nobody, whatever the client prefers.
func TestMCTPNothingToWaitFor(t *testing.T) {
	for _, prefer := range []string{"respond-async", "wait=10"} {
		never := tool1(func(context.Context) (any, error) { time.Sleep(5 * time.Second); return 1, nil }, &thaw.ToolOptions{Tasks: thaw.TaskNever})
		working(t, []*thaw.Tool{never}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
			began := time.Now()
			a := exchange(t, h, submit("/t", "").with("Prefer", prefer))
			if a.header.Get("Preference-Applied") != "" || a.header.Get("X-Task-Status") != "completed" || !strings.Contains(a.raw, began.UTC().Format("2006-01-02T15:04:05")) {
				t.Errorf("%s: %v %s, posted at %s", prefer, a.header, a.raw, began)
			}
		})
	}
}

// The names that something else has are refused as tools' at start, of those that are served.
func TestMCTPReservedNames(t *testing.T) {
	tool := func(name string) *thaw.Tool {
		return thaw.NewTool(name, "", func(context.Context, struct{}) (int, error) { return 1, nil }, nil)
	}
	for _, name := range []string{"mcp", "discovery", ".well-known", "health", "Discovery"} {
		s := thaw.Server{Name: "test", Tools: []*thaw.Tool{tool(name), tool("free")}}
		if _, err := New(s, &Options{MCTP: true, Store: memory(), Host: resident}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q: the name is reserved", name)) {
			t.Errorf("%s: %v", name, err)
		}
		for what, o := range map[string]*Options{"without MCTP": {Host: resident}, "not served": {MCTP: true, Store: memory(), Host: resident, Only: []string{"free"}}} {
			if _, err := New(s, o); err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}

// All that MCTP serves are tasks, so without a store, or without who works on them, it is refused.
func TestMCTPNeedsTasks(t *testing.T) {
	for name, c := range map[string]struct {
		o  Options
		ok bool
	}{
		"no store":             {Options{MCTP: true, Host: resident}, false},
		"nobody who works":     {Options{MCTP: true, Store: memory()}, false},
		"a process that stays": {Options{MCTP: true, Store: memory(), Host: resident}, true},
		"messages":             {Options{MCTP: true, Store: memory(), Dispatcher: &outbox{}}, true},
	} {
		if _, err := New(thaw.Server{Name: "test"}, &c.o); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "THAW_MCTP=on") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, _, errs := runProgram(t, thaw.Server{Name: "test"}, env("THAW_MCTP", "on"), "", "check"); code != 2 || !strings.Contains(errs, "THAW_STORE") {
		t.Errorf("%d %s", code, errs)
	}
	off, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{sentiment(nil)}}, Options{Host: resident, Store: memory()})
	for _, path := range []string{"/discovery", "/text_analysis", "/openapi.json"} {
		if a := do(t, off, get(path).request(t.Context())); a.status != http.StatusNotFound {
			t.Errorf("switched off, %s: %d", path, a.status)
		}
	}
}

// A trace goes on in the task.
func TestMCTPTrace(t *testing.T) {
	var seen json.RawMessage
	tool := tool1(func(ctx context.Context) (any, error) { seen = thaw.CallInfoFrom(ctx).Meta; return 1, nil }, nil)
	working(t, []*thaw.Tool{tool}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		made(t, h, submit("/t", "").with("Traceparent", parent).with("Tracestate", "a=\"\xff").with("Authorization", "Bearer hunter2"))
		if !json.Valid(seen) || !strings.Contains(string(seen), parent) || strings.Contains(string(seen), "hunter2") {
			t.Errorf("%s", seen)
		}
	})
}

// Every reason of a refusal that MCTP has of its own is in its table.
func TestMCTPReasonsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/mctp.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{reasonNotFinished, reasonKeyReused, reasonUnknownTask, reasonInvalidArguments, reasonInProgress, reasonParseError, reasonBodyTooLarge} {
		if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "| ") && strings.Contains(line, "`"+reason+"`") }) {
			t.Errorf("docs/mctp.md has no row of %s", reason)
		}
	}
}
