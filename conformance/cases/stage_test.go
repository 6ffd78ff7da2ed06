package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
	"go.yaml.in/yaml/v3"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/conformance/fixture"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// production is how a case wants its server to differ from the plain fixture.
type production struct {
	server  func(*thaw.Server)
	options func(*serve.Options)
	// identified: it takes the tokens of the authorization server, and no request without one.
	// What names nobody and comes from a test is alice's.
	identified bool
	// keys are those that the authorization server publishes; nil: k1.
	keys []*signer
	// trustsOther: it takes the tokens of the other issuer too.
	trustsOther bool
	// as is who sends a case's own requests that name nobody; "": nobody.
	as string
	// declares is what the clients of a case's own requests can; "": what these say.
	declares string
	// tasks: it has a store and workers, the same behind every door.
	tasks bool
}

// stage is the fixture server behind every door. Both hosts share its counter.
type stage struct {
	expansion *expansion
	handler   *serve.Handler // as a resident, streaming host has it
	http      wire           // to handler
	lambdas   []*lambda
	runs      *runBook
	user      string // who sends what a test makes; "": nobody
	store     task.Store
	workers   *workers // nil: no tasks
}

// processLog is all that is logged: by the server, net/http and the Lambda host.
var processLog logBook

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(&processLog, nil)))
	os.Exit(m.Run())
}

// newStage makes a server for one case.
func newStage(t *testing.T, p *expansion, how production) *stage {
	t.Helper()
	s := &stage{expansion: p, runs: &runBook{}}
	server := fixture.New().Server()
	server.Middleware = append([]thaw.Middleware{s.runs.note}, server.Middleware...)
	if how.server != nil {
		how.server(&server)
	}
	var schemes []auth.Scheme
	if how.identified {
		if how.keys == nil {
			how.keys = []*signer{k1()}
		}
		schemes, s.user = []auth.Scheme{keySet(t, issuer, how.keys...)}, "alice"
		if how.trustsOther {
			schemes = append([]auth.Scheme{fromElsewhere{keySet(t, otherIssuer, how.keys...)}}, schemes...)
		}
	}
	if how.tasks {
		s.store, s.workers = memstore.New(nil), newWorkers(t)
	}
	handler := func(facts host.Facts) *serve.Handler {
		o := &serve.Options{Host: facts, StateKeys: []statecodec.Key{stateKey("k1")}}
		if o.Auth = schemes; schemes != nil {
			o.AuthorizationServers, o.PublicURLs = []string{issuer}, []string{audience}
		}
		if how.tasks {
			o.Store, o.Dispatcher = s.store, s.workers
		}
		if how.options != nil {
			how.options(o)
		}
		h, err := serve.New(server, o)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}

	// A public address, such as Cloud Run's: what holds on loopback is no part of the cases.
	s.handler = handler(host.Facts{Resident: true, Streaming: true})
	if s.workers != nil {
		s.workers.start(s.handler)
	}
	live := httptest.NewUnstartedServer(s.handler)
	live.Start()
	t.Cleanup(live.Close)
	s.http = wire{live.Listener.Addr().String()}

	invoker := lambdahost.NewInvoker(handler(lambdahost.Host().Facts))
	for _, shell := range shells {
		s.lambdas = append(s.lambdas, &lambda{p, shell, invoker})
	}
	return s
}

// doors are those that an exchange goes through: an event has its own, and one that says
// nothing of where it comes from is taken for an HTTP API's.
func (s *stage) doors(x *exchange) []door {
	var all []door
	if x.event == nil {
		all = append(all, s.http)
	}
	for _, l := range s.lambdas {
		if x.event == nil || l.shell == x.shell || x.shell == "" && l.shell == "V2" {
			all = append(all, l)
		}
	}
	return all
}

// play sends x through a door and holds the answer to what is common to all cases.
func (s *stage) play(t *testing.T, d door, x *exchange) *answer {
	t.Helper()
	a := s.provoke(t, d, x)
	if err := wellFormed(a); err != nil {
		t.Errorf("%v\n%s: %s", err, d.name(), a)
	}
	if strings.Contains(a.log, "panic") {
		t.Errorf("something panicked:\n%s", a.log)
	}
	return a
}

// expect plays x at every door that takes it.
func (s *stage) expect(t *testing.T, x *exchange, holds check) {
	t.Helper()
	for _, d := range s.doors(x) {
		s.expectAt(t, d, x, holds)
	}
}

// expectAt plays x at one door.
func (s *stage) expectAt(t *testing.T, d door, x *exchange, holds check) {
	t.Helper()
	a := s.play(t, d, x)
	if err := holds(a); err != nil {
		t.Errorf("%v\n%s: %s", err, d.name(), a)
	}
}

// provoke is play without a judgement of the answer. The server has to go on answering,
// and to have executed nothing on the way but what x is for.
func (s *stage) provoke(t *testing.T, d door, x *exchange) *answer {
	t.Helper()
	before := s.counter(t, d)
	s.runs.take()
	processLog.take()
	a := d.send(t, x)
	a.ran, a.log = s.runs.take(), processLog.take()
	if slices.ContainsFunc(x.credentials(), func(c string) bool { return strings.Contains(a.log, c) }) {
		t.Errorf("the log holds a credential:\n%s", a.log)
	}
	if after := s.counter(t, d); after != before+x.adds {
		t.Errorf("the counter went from %d to %d, want %d more", before, after, x.adds)
	}
	return a
}

// counter reads the counter through a door, which shows that the server still serves.
func (s *stage) counter(t *testing.T, d door) int64 {
	t.Helper()
	a := d.send(t, s.call("counter_add", `{"by":0}`, ""))
	total, err := strconv.ParseInt(string(at(a.result("structuredContent"), "total")), 10, 64)
	if a.status != 200 || err != nil {
		t.Fatalf("counter_add by 0: %s", a)
	}
	return total
}

// call is a tools/call made by a test; meta are further members of _meta, or "".
func (s *stage) call(tool, arguments, meta string) *exchange {
	return s.request("tools/call", `"name":"`+tool+`","arguments":`+arguments, meta)
}

// request is a request made by a test with members of its params.
func (s *stage) request(method, members, meta string) *exchange {
	e := &encoder{}
	raw, err := e.value(nil, &s.expansion.d.Common.Meta)
	if err != nil {
		panic(err) // the document has been expanded before
	}
	if meta != "" {
		raw = append(append(raw[:len(raw)-1], ','), meta+"}"...)
	}
	if members != "" {
		members = "," + members
	}
	body := []byte(`{"jsonrpc":"2.0","id":"of-the-test","method":"` + method + `","params":{"_meta":` + string(raw) + members + `}}`)
	return s.post(body)
}

// bearer is the credential of a user.
func bearer(user string) header { return header{"Authorization", "Bearer " + goodToken(user)} }

// bearing is x with another credential.
func (x *exchange) bearing(token string) *exchange {
	y := *x
	y.headers = slices.DeleteFunc(slices.Clone(x.headers), func(h header) bool { return h.name == "Authorization" })
	y.headers = append(y.headers, header{"Authorization", "Bearer " + token})
	return &y
}

// post is a plain request with the headers of a conforming client.
func (s *stage) post(body []byte, own ...header) *exchange {
	defaults := &s.expansion.d.Common.DefaultRequest
	x := &exchange{method: defaults.Method, path: defaults.Path, body: body}
	var err error
	if x.headers, err = s.expansion.headers(&encoder{}, new(yaml.Node), body); err != nil {
		panic(err)
	}
	if s.user != "" {
		own = append([]header{bearer(s.user)}, own...)
	}
	for _, h := range own {
		x.headers = slices.DeleteFunc(x.headers, func(old header) bool { return strings.EqualFold(old.name, h.name) })
		x.headers = append(x.headers, h)
	}
	return x
}

// run is one run of a tool's handler.
type run struct {
	tool    string
	caller  thaw.Principal
	span    trace.SpanContext
	baggage baggage.Baggage
}

// runBook notes every tool handler that runs. It is a middleware: nothing that the server
// executes gets past it.
type runBook struct {
	mu   sync.Mutex
	runs []run
	// each is told of every run with its context, before the handler; nil: nobody.
	each func(ctx context.Context, tool string)
}

func (b *runBook) note(next thaw.HandlerFunc) thaw.HandlerFunc {
	return func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		info := thaw.CallInfoFrom(ctx)
		tool := info.Tool
		b.mu.Lock()
		b.runs = append(b.runs, run{tool, info.Principal, trace.SpanContextFromContext(ctx), baggage.FromContext(ctx)})
		each := b.each
		b.mu.Unlock()
		if each != nil {
			each(ctx, tool)
		}
		return next(ctx, args)
	}
}

func (b *runBook) take() []run {
	b.mu.Lock()
	defer b.mu.Unlock()
	runs := b.runs
	b.runs = nil
	return runs
}

// watch has fn told of every run until the test ends.
func (b *runBook) watch(t *testing.T, fn func(ctx context.Context, tool string)) {
	set := func(fn func(context.Context, string)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.each = fn
	}
	set(fn)
	t.Cleanup(func() { set(nil) })
}

// logBook keeps what the server logs.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()
	b.text.Reset()
	return text
}
