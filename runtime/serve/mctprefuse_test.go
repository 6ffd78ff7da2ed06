package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// limited is a server on which everything can be refused.
func limited(t testing.TB, ran *int) *Handler {
	t.Helper()
	tool := thaw.NewTool("t", "", func(context.Context, struct {
		N int `json:"n" minimum:"1"`
	}) (int, error) {
		*ran++
		return 1, nil
	}, &thaw.ToolOptions{Scopes: []string{"files:read"}, Rate: &thaw.Rate{PerMinute: 1}})
	o := Options{MCTP: true, Host: resident, Store: memory(), Auth: []auth.Scheme{people()}, AllowedOrigins: []string{"https://app.example"},
		PublicURLs: []string{publicURL}, AuthorizationServers: []string{"https://idp.example.com"}, Limits: Limits{BodyBytes: 1000}, BasePath: "/base"}
	h, err := New(thaw.Server{Name: "test", Tools: []*thaw.Tool{tool}}, &o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const goodN = `{"parameters":{"n":1}}`

// Whatever is wrong: a problem with the right status, Allow where due, and HEAD without a body.
func TestMCTPRefusals(t *testing.T) {
	ran := 0
	h := limited(t, &ran)
	post := func(body string) mctpCall { return submit("/t", body).as("alice-token") }
	const id = "/t/00000000-0000-8000-8000-000000000000"
	for _, c := range []struct {
		name   string
		call   mctpCall
		status int
		reason string
		header string // NAME: VALUE
		detail string
	}{
		{"unknown task", post(goodN).to("/nope"), 404, "not_found", "", "/base/discovery"},
		{"unknown task, below the base", post(goodN).to("/base/nope"), 404, "not_found", "", ""},
		{"unknown id", get(id).as("alice-token"), 404, "unknown_task", "", "never was"},
		{"unknown id, its result", get(id + "/result").as("alice-token"), 404, "unknown_task", "", ""},
		{"nowhere", get("/a/b/c/d").as("alice-token"), 404, "not_found", "", "/base/mcp"},
		{"nowhere, by nobody", get("/.well-known/openid-configuration"), 404, "not_found", "", ""},
		{"wrong method", get("/t").as("alice-token"), 405, "method_not_allowed", "Allow: POST, OPTIONS", "POST, OPTIONS"},
		{"wrong method of a task", mctpCall{verb: "PATCH", path: id}.as("alice-token"), 405, "method_not_allowed", "Allow: GET, HEAD, OPTIONS", ""},
		{"wrong method of a result", mctpCall{verb: "DELETE", path: id + "/result"}.as("alice-token"), 405, "method_not_allowed", "Allow: GET, HEAD, OPTIONS", ""},
		{"wrong method of discovery", submit("/discovery", "").as("alice-token"), 405, "method_not_allowed", "Allow: GET, HEAD, OPTIONS", ""},
		{"no credential", submit("/t", goodN), 401, "unauthorized", "WWW-Authenticate: Bearer scope=\"files:read\", " + metadataParam, ""},
		{"no credential for discovery", get("/discovery"), 401, "unauthorized", "WWW-Authenticate: Bearer scope=\"files:read\", " + metadataParam, ""},
		{"a wrong credential", get(id).as("mallory-token"), 401, "unauthorized", "WWW-Authenticate: Bearer error=\"invalid_token\"", ""},
		{"too few scopes", submit("/t", goodN).as("guest-token"), 403, "insufficient_scope", "WWW-Authenticate: Bearer error=\"insufficient_scope\"", "files:read"},
		{"a foreign origin", get("/discovery").with("Origin", "https://evil.example"), 403, "forbidden_origin", "", ""},
		{"a foreign host", get("/discovery").at("evil.example"), 403, "forbidden_host", "", ""},
		{"large headers", get("/discovery").with("X-Big", strings.Repeat("x", 40<<10)), 431, "headers_too_large", "", ""},
		{"no JSON", post(`{"parameters":`), 400, "parse_error", "", "Parse error"},
		{"a member twice", post(`{"parameters":{},"parameters":{}}`), 400, "parse_error", "", ""},
		{"bad UTF-8", post("{\"parameters\":{\"n\":\"\xff\"}}"), 400, "parse_error", "", ""},
		{"too deep", post(`{"parameters":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), 400, "parse_error", "", ""},
		{"a list", post(`[]`), 400, "invalid_request", "", `{"parameters": {…}}`},
		{"the parameters alone", post(`{"n":1}`), 400, "invalid_request", "", `{"parameters": {…}}`},
		{"parameters that are no object", post(`{"parameters":[1]}`), 400, "invalid_request", "", ""},
		{"no parameters", post(`{}`), 422, "invalid_arguments", "", "not those of t"},
		{"no body", post(``), 422, "invalid_arguments", "", ""},
		{"bad parameters", post(`{"parameters":{"n":0,"m":"hunter2"}}`), 422, "invalid_arguments", "", "not those of t"},
		{"too large", post(`{"parameters":{"n":"` + strings.Repeat("x", 1000) + `"}}`), 413, "body_too_large", "", "1000 bytes"},
		{"another media type", post(goodN).with("Content-Type", "text/plain"), 415, "unsupported_media_type", "", "application/json"},
		{"a form, which curl sends", post(goodN).with("Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media_type", "", ""},
		{"packed", post(goodN).with("Content-Encoding", "gzip"), 415, "unsupported_media_type", "", ""},
		{"an empty key", post(goodN).with("Idempotency-Key", " "), 400, "invalid_request", "", "Idempotency-Key"},
		{"a key with a space", post(goodN).with("Idempotency-Key", "a b"), 400, "invalid_request", "", "Idempotency-Key"},
		{"a long key", post(goodN).with("Idempotency-Key", strings.Repeat("k", 256)), 400, "invalid_request", "", "255"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.catalog.Load().tools["t"].rate = nil
			verbs := []string{c.call.verb}
			if c.call.verb == http.MethodGet {
				verbs = append(verbs, http.MethodHead)
			}
			for _, verb := range verbs {
				call := c.call
				call.verb = verb
				a, p := refused(t, h, call, c.status, c.reason)
				name, value, _ := strings.Cut(c.header, ": ")
				if name != "" && !strings.HasPrefix(a.header.Get(name), value) {
					t.Errorf("%s: %q", name, a.header.Values(name))
				}
				if verb != http.MethodHead && (!strings.Contains(p.Detail, c.detail) || strings.Contains(a.raw, "hunter2")) {
					t.Errorf("%s", a.raw)
				}
			}
		})
	}
	// All that is wrong with parameters is said at once, each with its place.
	_, p := refused(t, h, post(`{"parameters":{"n":0,"m":1}}`), 422, "invalid_arguments")
	if len(p.Errors) != 2 || p.Errors[0].Pointer != "/n" || p.Errors[1].Pointer != "" || !strings.Contains(p.Errors[1].Detail, `"m"`) {
		t.Errorf("%+v", p.Errors)
	}
	if ran != 0 {
		t.Errorf("the tool ran %d times", ran)
	}
}

// The order of MCP's checks: of two faults in one request, the earlier check answers.
func TestMCTPChecksInOrder(t *testing.T) {
	type fault struct {
		name   string
		spoil  func(mctpCall) mctpCall
		status int
		reason string
	}
	with := func(header, value string) func(mctpCall) mctpCall {
		return func(c mctpCall) mctpCall { return c.with(header, value) }
	}
	faults := []fault{
		{"host", func(c mctpCall) mctpCall { return c.at("evil.example") }, 403, "forbidden_host"},
		{"origin", with("Origin", "https://evil.example"), 403, "forbidden_origin"},
		{"headers", with("X-Big", strings.Repeat("x", 40<<10)), 431, "headers_too_large"},
		{"credentials", with("Authorization", "Bearer mallory"), 401, "unauthorized"},
		{"tool", func(c mctpCall) mctpCall { return c.to("/nope") }, 404, "not_found"},
		{"verb", func(c mctpCall) mctpCall { c.verb = http.MethodPut; return c }, 405, "method_not_allowed"},
		{"scopes", with("Authorization", "Bearer guest-token"), 403, "insufficient_scope"},
		{"media type", with("Content-Type", "text/plain"), 415, "unsupported_media_type"},
		{"size", func(c mctpCall) mctpCall { return c.saying(strings.Repeat(" ", 2000)) }, 413, "body_too_large"},
		{"key", with("Idempotency-Key", "a b"), 400, "invalid_request"},
		{"JSON", func(c mctpCall) mctpCall { return c.saying("{") }, 400, "parse_error"},
		{"rate, which the first has used up", func(c mctpCall) mctpCall { return c }, 429, "rate_limited"},
	}
	ran := 0
	h := limited(t, &ran)
	good := submit("/t", `{"parameters":{"n":0}}`).as("alice-token")
	refused(t, h, good, 422, "invalid_arguments") // which is judged last
	for i, first := range faults {
		for _, second := range faults[i:] {
			t.Run(first.name+" before "+second.name, func(t *testing.T) {
				a, _ := refused(t, h, first.spoil(second.spoil(good)), first.status, first.reason)
				if first.reason == "rate_limited" && a.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			})
		}
	}
}

// A page of an allowed origin may ask, and reads what tasks say in headers; another may not.
func TestMCTPPages(t *testing.T) {
	ran := 0
	h := limited(t, &ran)
	for path, allow := range map[string]string{"/t": "POST, OPTIONS", "/discovery": "GET, HEAD, OPTIONS", "/base/t/1/result": "GET, HEAD, OPTIONS"} {
		ask := mctpCall{verb: http.MethodOptions, path: path, headers: map[string]string{"Origin": "https://app.example", "Access-Control-Request-Headers": "authorization,idempotency-key"}}
		a := exchange(t, h, ask)
		if a.status != http.StatusNoContent || a.header.Get("Access-Control-Allow-Methods") != allow || a.header.Get("Allow") != allow ||
			a.header.Get("Access-Control-Allow-Origin") != "https://app.example" || a.header.Get("Access-Control-Allow-Headers") != "authorization,idempotency-key" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		refused(t, h, ask.with("Origin", "https://evil.example"), http.StatusForbidden, "forbidden_origin")
	}
	a := exchange(t, h, get("/discovery").as("alice-token").with("Origin", "https://app.example"))
	if exposed := a.header.Get("Access-Control-Expose-Headers"); a.status != 200 || !strings.Contains(exposed, "X-Task-Status") || !strings.Contains(exposed, "ETag") || len(a.header.Values("Vary")) != 2 {
		t.Errorf("%v", a.header)
	}
}

// brokenStore is out of reach.
type brokenStore struct{ task.Store }

var errBroken = errors.New("hunter2 is out of reach")

func (brokenStore) Create(context.Context, task.Head, ...task.Part) error { return errBroken }
func (brokenStore) Head(context.Context, string) (task.Head, error)       { return task.Head{}, errBroken }
func (brokenStore) Claim(context.Context, task.Use) (bool, task.Used, error) {
	return false, task.Used{}, errBroken
}

// A store that fails is 503 and to be tried again, and what it said stays in the log.
func TestMCTPStoreFails(t *testing.T) {
	tools := []*thaw.Tool{sentiment(nil), tool1(func(context.Context) (any, error) { return 1, nil }, &thaw.ToolOptions{Tasks: thaw.TaskNever})}
	h, log := newHandler(t, thaw.Server{Tools: tools}, Options{MCTP: true, Host: resident, Store: brokenStore{memory()}})
	for _, c := range []mctpCall{
		submit("/text_analysis", hello), submit("/text_analysis", hello).with("Idempotency-Key", "k"), submit("/t", ""), submit("/t", "").with("Idempotency-Key", "k"),
		get("/t/1"), head("/t/1"), get("/t/1/result"),
	} {
		a, _ := refused(t, h, c, http.StatusServiceUnavailable, "store_unavailable")
		if a.header.Get("Retry-After") != "2" || strings.Contains(a.raw, "hunter2") {
			t.Errorf("%v %s", a.header, a.raw)
		}
	}
	if !strings.Contains(log.String(), "hunter2 is out of reach") {
		t.Error(log)
	}
}

// What the host cannot deliver is said in a problem that no cache keeps.
func TestMCTPTooLargeForTheHost(t *testing.T) {
	working(t, []*thaw.Tool{sentiment(nil)}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
		id, _ := made(t, h, submit("/text_analysis", hello))
		small := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fits := func(b []byte) bool { return strings.Contains(string(b), "too large") }
			h.ServeHTTP(w, r.WithContext(host.WithResponseLimit(r.Context(), 100, fits)))
		})
		for _, path := range []string{"/discovery", "/openapi.json", "/text_analysis/" + id + "/result"} {
			if a, _ := refused(t, small, get(path), http.StatusInternalServerError, "response_too_large"); a.header.Get("ETag") != "" {
				t.Errorf("%s: %v", path, a.header)
			}
		}
	})
}

// How large a result may be counts where it is read, not where it is made: there are other doors.
func TestMCTPLargeResults(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			large := tool1(func(context.Context) (any, error) { return strings.Repeat("x", 5000), nil }, &thaw.ToolOptions{Tasks: mode})
			working(t, []*thaw.Tool{large}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
				small := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fits := func(b []byte) bool { return len(b) < 1000 }
					h.ServeHTTP(w, r.WithContext(host.WithResponseLimit(r.Context(), 1000, fits)))
				})
				id, status := made(t, small, submit("/t", ""))
				if status != "completed" {
					t.Error(status)
				}
				refused(t, small, get("/t/"+id+"/result"), http.StatusInternalServerError, "response_too_large")
				if a := exchange(t, h, get("/t/"+id+"/result")); !strings.Contains(a.raw, "xxx") {
					t.Errorf("%.300s", a.raw)
				}
			})
		})
	}
}

// Without a public URL addresses are made of Host, so there has to be one.
func TestMCTPWithoutHost(t *testing.T) {
	for name, urls := range map[string][]string{"no public URL": nil, "a public URL": {publicURL}} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{sentiment(nil)}}, Options{MCTP: true, Host: offLoopback, Store: memory(), role: roleAPI, PublicURLs: urls})
			r := get("/discovery").request(t.Context())
			r.Host = ""
			want := http.StatusBadRequest
			if urls != nil {
				want = http.StatusOK
			}
			if a := do(t, h, r); a.status != want {
				t.Errorf("%d %s", a.status, a.raw)
			}
		})
	}
}

// A base path may be escaped as any path may, and is no other one for it.
func TestMCTPBelowABasePath(t *testing.T) {
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{sentiment(nil)}}, Options{MCTP: true, Host: resident, Store: memory(), BasePath: "/a/b/c"})
	for path, status := range map[string]int{
		"/a/b/c/discovery": 200, "/%61/b/%63/discovery": 200, "/a/b/c/%64iscovery": 200, "/discovery": 200, // a gateway may have taken it away
		"/a/b/discovery": 404, "/a%2Fb/c/discovery": 404, "/a%2Fb%2Fc/": 404, "/a/b/c": 404, "/a/b/c/": 404, "/a%2Fb%2Fc%2F": 404,
	} {
		if a := do(t, h, get(path).request(t.Context())); a.status != status {
			t.Errorf("%s: %d, want %d: %s", path, a.status, status, a.raw)
		}
	}
}

// A panic where schemas are made costs the client no answer, and tells it nothing.
func TestMCTPPanics(t *testing.T) {
	h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{sentiment(nil)}}, Options{MCTP: true, Host: resident, Store: memory()})
	h.catalog.Load().lists[listTools] = nil // any use of it panics
	for _, verb := range []string{"GET", "HEAD"} {
		a, _ := refused(t, h, mctpCall{verb: verb, path: "/discovery"}, http.StatusInternalServerError, "panic")
		if strings.Contains(a.raw, "nil pointer") {
			t.Error(a.raw)
		}
	}
	if !strings.Contains(log.String(), "nil pointer") {
		t.Error(log)
	}
}

// A client that leaves while it is answered for has its task.
func TestMCTPClientLeaves(t *testing.T) {
	slow := tool1(func(ctx context.Context) (any, error) {
		return map[string]int{"n": 1}, thaw.Sleep(ctx, "nap", time.Minute)
	}, nil)
	working(t, []*thaw.Tool{slow}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, leave)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, submit("/t", "").with("Prefer", "wait=20").request(ctx))
		var made struct{ ID string }
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		time.Sleep(2 * time.Minute)
		if a := exchange(t, h, get("/t/"+made.ID+"/result")); !strings.Contains(a.raw, `{"n":1}`) {
			t.Error(a.raw)
		}
	})
}

// FuzzMCTPBody sends any body to a tool: a task or a problem comes back, never a fault of ours.
func FuzzMCTPBody(f *testing.F) {
	log := &lockedBuffer{}
	h, err := New(thaw.Server{Name: "test", Tools: []*thaw.Tool{sentiment(nil)}}, &Options{MCTP: true, Store: memory(), Dispatcher: &outbox{}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{hello, ``, ` `, `{}`, `[]`, `{"parameters":null}`, `{"parameters":{"text":"\ud83d"}}`, `{"x":1,"parameters":{"text":"a"}}`, `{"parameters":{"text":"a","text":"b"}}`} {
		f.Add(seed, "")
		f.Add(seed, "key")
	}
	f.Fuzz(func(t *testing.T, body, key string) {
		c := submit("/text_analysis", body).with("Prefer", "respond-async")
		if key != "" {
			c.headers["Idempotency-Key"] = key
		}
		a := exchange(t, h, c)
		if a.status >= 500 {
			t.Fatalf("%d %s\n%s", a.status, a.raw, log)
		}
	})
}
