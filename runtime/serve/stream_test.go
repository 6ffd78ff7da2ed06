package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
)

// steps reports progress 1, 2, 2, 3 and writes log lines of two levels.
func steps() thaw.Server {
	//lint:ignore SA1019 deprecated by the protocol, and served until it is gone (D-03)
	return thaw.Server{ClientLogging: true, Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		for _, n := range []float64{1, 2, 2, 1.5, 3} {
			thaw.Progress(ctx, n, 3, "step")
		}
		//lint:ignore SA1019 deprecated by the protocol, and served until it is gone (D-03)
		log := thaw.ClientLogger(ctx).With("k", 1).WithGroup("g")
		log.Debug("quiet")
		log.Warn("loud", "n", 2)
		return "done", nil
	}, nil)}}
}

func withMeta(extra string) post {
	p := callT()
	p.meta = map[string]any{}
	_ = json.Unmarshal([]byte(goodMeta), &p.meta)
	var more map[string]json.RawMessage
	if err := json.Unmarshal([]byte(extra), &more); err != nil {
		panic(err)
	}
	for k, v := range more {
		p.meta[k] = v
	}
	return p
}

// F-46 to F-50, H-14 to H-19.
func TestNotifications(t *testing.T) {
	for _, c := range []struct {
		name, meta, accept string
		progress           string // the token as it has to come back; "": none
		logs               int
	}{
		{"nothing asked", `{}`, "", "", 0},
		{"token", `{"progressToken":"p"}`, "", `"p"`, 0},
		{"token 0", `{"progressToken":0}`, "", `0`, 0},
		{"token empty", `{"progressToken":""}`, "", `""`, 0},
		{"big token", `{"progressToken":9007199254740993}`, "", `9007199254740993`, 0},
		{"token with a separator", `{"progressToken":"` + "a\u2028b" + `"}`, "", `"a\u2028b"`, 0},
		{"warnings", `{"io.modelcontextprotocol/logLevel":"warning"}`, "", "", 1},
		{"everything", `{"io.modelcontextprotocol/logLevel":"debug","progressToken":1}`, "", `1`, 2},
		{"errors", `{"io.modelcontextprotocol/logLevel":"error"}`, "", "", 0},
		{"JSON only", `{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug"}`, "application/json", "", 0},
		{"stream only", `{}`, "text/event-stream", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := newHandler(t, steps(), Options{Host: resident})
			p := withMeta(c.meta)
			if c.accept != "" {
				p.headers = map[string]string{"Accept": c.accept}
			}
			got := do(t, h, p.request(t))
			stream := c.progress != "" || c.logs > 0 || c.accept == "text/event-stream"
			if ct := got.header.Get("Content-Type"); (ct == "text/event-stream") != stream {
				t.Errorf("Content-Type %s", ct)
			}
			if stream && (got.header.Get("X-Accel-Buffering") != "no" || got.header.Get("Cache-Control") != "no-store") {
				t.Errorf("headers %v", got.header)
			}
			if strings.Contains(got.raw, "\u2028") {
				t.Error("a raw separator is in the stream")
			}
			var progress []string
			logs := 0
			for _, m := range got.messages[:len(got.messages)-1] {
				switch m.Method {
				case mcp.NotificationProgress:
					var params struct {
						ProgressToken json.RawMessage
						Progress      float64
					}
					if err := json.Unmarshal(m.Params, &params); err != nil || string(params.ProgressToken) != c.progress {
						t.Errorf("%s: %v", m.Params, err)
					}
					progress = append(progress, fmt.Sprint(params.Progress))
				case mcp.NotificationMessage:
					logs++
					if !strings.Contains(string(m.Params), `"logger":"t"`) || !strings.Contains(string(m.Params), `"k":1`) || !strings.Contains(string(m.Params), `"message":"`) {
						t.Errorf("%s", m.Params)
					}
				default:
					t.Errorf("unexpected %+v", m)
				}
			}
			if want := map[bool]string{true: "1 2 3"}[c.progress != ""]; strings.Join(progress, " ") != want {
				t.Errorf("progress %q, want %q", progress, want)
			}
			if logs != c.logs {
				t.Errorf("%d log messages, want %d", logs, c.logs)
			}
			if string(got.last().ID) != "7" || !strings.Contains(string(got.last().Result), "done") {
				t.Errorf("the last message is %+v", got.last())
			}
		})
	}
}

// Wrong optional _meta fields are refused, wrong trace fields are not (F-50, O-05).
func TestMetaValues(t *testing.T) {
	h, _ := newHandler(t, steps(), Options{Host: resident})
	for _, meta := range []string{`{"progressToken":1.5}`, `{"progressToken":null}`, `{"progressToken":{}}`,
		`{"io.modelcontextprotocol/logLevel":"loud"}`, `{"io.modelcontextprotocol/logLevel":3}`} {
		if got := do(t, h, withMeta(meta).request(t)); got.code() != -32602 || got.reason() != "invalid_meta" {
			t.Errorf("%s: %d %s", meta, got.status, got.raw)
		}
	}
}

// O-01 to O-05 (B-69 of the case list).
func TestTraceContext(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	var got trace.SpanContext
	var bag baggage.Baggage
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		got, bag = trace.SpanContextFromContext(ctx), baggage.FromContext(ctx)
		return 1, nil
	}, nil)}}, Options{})
	for _, c := range []struct {
		meta    string
		traceID string
		state   string
		bag     string
	}{
		{`{"traceparent":"` + good + `","tracestate":"a=1"}`, "0af7651916cd43dd8448eb211c80319c", "a=1", ""},
		{`{"traceparent":"` + strings.ToUpper(good) + `"}`, "", "", ""},
		{`{"traceparent":"00-00000000000000000000000000000000-00f067aa0ba902b7-01"}`, "", "", ""},
		{`{"traceparent":"ff` + good[2:] + `"}`, "", "", ""},
		{`{"traceparent":{"a":1}}`, "", "", ""},
		{`{"traceparent":""}`, "", "", ""},
		{`{"traceparent":"junk","tracestate":"a=1"}`, "", "", ""},
		{`{"tracestate":"a=1"}`, "", "", ""},
		{`{"traceparent":"` + good + `","tracestate":"a=1,a=2,,"}`, "0af7651916cd43dd8448eb211c80319c", "", ""},
		{`{"baggage":"k=v"}`, "", "", "k=v"},
		{`{"baggage":"k=v\r\nX-Evil: 1"}`, "", "", ""},
		{`{"baggage":"k=` + strings.Repeat("v", 9000) + `"}`, "", "", ""},
		{`{"baggage":["k=v"]}`, "", "", ""},
	} {
		got, bag = trace.SpanContext{}, baggage.Baggage{}
		answer := do(t, h, withMeta(c.meta).request(t))
		if answer.status != 200 || answer.last().Error != nil {
			t.Errorf("%.80s: %d %s", c.meta, answer.status, answer.raw)
		}
		id := ""
		if got.IsValid() {
			id = got.TraceID().String()
		}
		if id != c.traceID || got.TraceState().String() != c.state || bag.String() != c.bag || got.IsValid() && !got.IsRemote() {
			t.Errorf("%.80s: trace %q, state %q, baggage %q", c.meta, id, got.TraceState(), bag)
		}
	}
}

// H-20, H-21 over a real connection: the handler's ctx ends, and no goroutine stays.
func TestClientLeaves(t *testing.T) {
	entered, ended := make(chan struct{}, 1), make(chan error, 1)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		thaw.Progress(ctx, 1, 0, "started")
		entered <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}, nil)}}, Options{Host: resident, Limits: Limits{RequestTimeout: time.Hour}})
	server := httptest.NewServer(h)
	defer server.Close()
	before := 0
	for i := range 30 {
		if i == 5 {
			before = runtime.NumGoroutine()
		}
		ctx, leave := context.WithCancel(t.Context())
		r := withMeta(`{"progressToken":1}`).request(t).WithContext(ctx)
		r.URL.Scheme, r.URL.Host, r.RequestURI, r.Host = "http", strings.TrimPrefix(server.URL, "http://"), "", ""
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		<-entered
		leave()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("the handler's ctx did not end")
		}
		_ = resp.Body.Close()
	}
	server.CloseClientConnections()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before+5 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+5 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// A silent stream says that it lives (H-18), and is silent after its end.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
			thaw.Progress(ctx, 1, 0, "")
			<-release
			return "done", nil
		}, nil)}}, Options{Host: resident})
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() { defer close(done); h.ServeHTTP(w, withMeta(`{"progressToken":1}`).request(t)) }()
		time.Sleep(keepAlive*3 + time.Second)
		synctest.Wait()
		close(release)
		<-done
		body := w.Body.String()
		if n := strings.Count(body, "\n:\n"); n != 3 {
			t.Errorf("%d comments in %q", n, body)
		}
		time.Sleep(10 * keepAlive)
		synctest.Wait()
		if w.Body.String() != body {
			t.Error("something followed the response")
		}
	})
}

// listenStream opens subscriptions/listen over a real connection.
func listenStream(t *testing.T, server *httptest.Server, id, filter string) (lines *bufio.Scanner, leave func()) {
	t.Helper()
	return openStream(t, server, post{method: "subscriptions/listen", id: id, params: map[string]any{"notifications": json.RawMessage(filter)}})
}

func openStream(t *testing.T, server *httptest.Server, p post) (lines *bufio.Scanner, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := p.request(t).WithContext(ctx)
	r.URL.Scheme, r.URL.Host, r.RequestURI, r.Host = "http", strings.TrimPrefix(server.URL, "http://"), "", ""
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	return bufio.NewScanner(resp.Body), cancel
}

func next(t *testing.T, lines *bufio.Scanner) string {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

// Group L.
func TestListen(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	server := httptest.NewServer(h)
	defer server.Close()
	tools, _ := listenStream(t, server, `"sub"`, `{"toolsListChanged":true,"promptsListChanged":false,"unknown":true}`)
	// An acknowledgement is one line, however the client wrote its list (H-19).
	uris, _ := listenStream(t, server, `41`, "{\"resourceSubscriptions\":[\n \"docs://a\",\n \"docs://dir/\"\n]}")
	left, leave := listenStream(t, server, `1`, `{}`)

	want := func(lines *bufio.Scanner, text string) {
		t.Helper()
		if got := next(t, lines); got != text {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
	const sub = `"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}`
	const sub41 = `"_meta":{"io.modelcontextprotocol/subscriptionId":41}`
	want(tools, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+sub+`}}`)
	want(uris, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["docs://a","docs://dir/"]},`+sub41+`}}`)
	want(left, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`)
	leave()

	// L-06: only what was asked for. A replacement that changes nothing tells nobody.
	s := testServer(&ran)
	if err := h.Replace(s); err != nil {
		t.Fatal(err)
	}
	s.Prompts = nil
	if err := h.Replace(s); err != nil {
		t.Fatal(err)
	}
	s.Tools = s.Tools[:1]
	if err := h.Replace(s); err != nil {
		t.Fatal(err)
	}
	want(tools, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+sub+`}}`)
	for _, uri := range []string{"docs://b", "docs://aa", "docs://a"} {
		if err := h.ResourceUpdated(t.Context(), uri); err != nil {
			t.Fatal(err)
		}
	}
	want(uris, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"docs://a",`+sub41+`}}`)
	_ = h.ResourceUpdated(t.Context(), "docs://dir/x")
	want(uris, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"docs://dir/x",`+sub41+`}}`)
	if err := h.ResourceUpdated(t.Context(), "no uri"); err == nil {
		t.Error("a relative URI was taken")
	}

	// A replacement that is wrong changes nothing.
	s.Tools = append(s.Tools, s.Tools[0])
	if err := h.Replace(s); err == nil {
		t.Error("a tool declared twice was taken")
	}

	// L-12: the server ends its streams with a result each, and new ones at once.
	h.Drain()
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}`
	want(tools, `{"jsonrpc":"2.0","id":"sub","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"sub",`+info+`}}}`)
	want(uris, `{"jsonrpc":"2.0","id":41,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":41,`+info+`}}}`)
	if got := next(t, tools); got != "" {
		t.Errorf("after the result: %s", got)
	}
	late, _ := listenStream(t, server, `9`, `{}`)
	_ = next(t, late)
	if got := next(t, late); !strings.Contains(got, `"id":9,"result"`) {
		t.Errorf("a late stream got %s", got)
	}
}

func TestListenParams(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	for _, filter := range []string{`null`, `[]`, `"x"`, `{"toolsListChanged":1}`, `{"resourceSubscriptions":"x"}`, `{"resourceSubscriptions":[1]}`,
		`{"resourceSubscriptions":[` + strings.Repeat(`"a:b",`, 1000) + `"a:b"]}`} {
		got := do(t, h, post{method: "subscriptions/listen", params: map[string]any{"notifications": json.RawMessage(filter)}}.request(t))
		if got.code() != -32602 {
			t.Errorf("%.60s: %d %.200s", filter, got.status, got.raw)
		}
	}
	got := do(t, h, post{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{}}, headers: map[string]string{"Accept": "application/json"}}.request(t))
	if got.status != 406 || got.reason() != "not_acceptable" {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

// S-12: streams are bounded, in number and in what one that nobody reads can pile up.
func TestListenIsBounded(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident, Limits: Limits{Streams: 1}})
	server := httptest.NewServer(h)
	defer server.Close()
	first, leave := listenStream(t, server, `1`, `{}`)
	_ = next(t, first)
	p := post{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{}}}
	if got := overHTTP(t, server, p); got.status != 503 || got.reason() != reasonTooManyStreams || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.raw)
	}
	leave()
	h.Drain()

	l := &listener{uris: []string{"docs://dir/"}, wake: make(chan struct{}, 1)}
	full := hub{listeners: map[*listener]struct{}{l: {}}}
	for i := range 3 * maxPending {
		full.resourceUpdated(fmt.Sprintf("docs://dir/%d", i), nil)
	}
	if _, updated, _ := l.take(); len(updated) != maxPending+1 || updated[maxPending] != "docs://dir/" {
		t.Errorf("%d pending, the last %q", len(updated), updated[len(updated)-1])
	}
}

type badLogValuer struct{}

func (badLogValuer) LogValue() slog.Value { panic("secret-panic") }

// F-51: what a client may read of a log, whatever the author logs.
func TestClientLogValues(t *testing.T) {
	//lint:ignore SA1019 deprecated by the protocol, and served until it is gone (D-03)
	s := thaw.Server{ClientLogging: true, Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		//lint:ignore SA1019 as above
		log := thaw.ClientLogger(ctx)
		log.Warn("x", "err", errors.New("own text"), slog.Group("g", "a", 1, "d", time.Second), "twice", 1, "twice", 2, "message", "y")
		log.With("outer", 1).WithGroup("in").With("b", 2).Warn("x", "c", 3)
		log.Warn("x", "panics", badMarshaler{}, "resolves", badLogValuer{}, "channel", make(chan int))
		return 1, nil
	}, nil)}}
	h, _ := newHandler(t, s, Options{Host: resident})
	got := do(t, h, withMeta(`{"io.modelcontextprotocol/logLevel":"debug"}`).request(t))
	want := []string{
		`{"err":"own text","g":{"a":1,"d":"1s"},"message":"x","twice":2}`,
		`{"in":{"b":2,"c":3},"message":"x","outer":1}`,
		`{"channel":"(not shown)","message":"x","panics":"(not shown)","resolves":"(not shown)"}`,
	}
	if len(got.messages) != len(want)+1 || strings.Contains(got.raw, "secret") {
		t.Fatalf("%s", got.raw)
	}
	for i, data := range want {
		if params := `{"level":"warning","logger":"t","data":` + data + `}`; string(got.messages[i].Params) != params {
			t.Errorf("got  %s\nwant %s", got.messages[i].Params, params)
		}
	}
}

// B-30: a client that reads nothing but streams still gets an error's status.
func TestStreamOnlyKeepsStatuses(t *testing.T) {
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(context.Context) (any, error) {
		return nil, &thaw.UnsupportedError{Needs: mcp.ClientCapabilities{Raw: json.RawMessage(`{"sampling":{}}`)}}
	}, nil)}}, Options{Host: resident})
	p := callT()
	p.headers = map[string]string{"Accept": "text/event-stream"}
	if got := do(t, h, p.request(t)); got.status != 400 || got.code() != -32021 {
		t.Errorf("%d %s", got.status, got.raw)
	}
	p = post{method: "tools/list", headers: p.headers}
	if got := do(t, h, p.request(t)); got.status != 200 || got.header.Get("Content-Type") != "text/event-stream" || got.last().Result == nil {
		t.Errorf("%d %v %s", got.status, got.header, got.raw)
	}
}
