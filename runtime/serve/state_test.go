package serve

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/statecodec"
)

// testKey is a state key that can be out of reach.
type testKey struct {
	secret string
	mu     sync.Mutex
	err    error
	calls  int
}

func (k *testKey) ID() string { return "test:" + k.secret }

func (k *testKey) MAC(_ context.Context, message []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	if k.err != nil {
		return nil, k.err
	}
	h := hmac.New(sha256.New, []byte(k.secret))
	h.Write(message)
	return h.Sum(nil), nil
}

func keys(ks ...*testKey) (list []statecodec.Key) {
	for _, k := range ks {
		list = append(list, k)
	}
	return list
}

// transferServer has a tool that asks and then does something, and two others that ask.
func transferServer(done *[]string, opts *thaw.ToolOptions) thaw.Server {
	type in struct {
		To     string `json:"to"`
		Amount int    `json:"amount,omitempty"`
		Tries  int    `json:"tries,omitempty" default:"1"`
	}
	transfer := func(ctx context.Context, in in) (string, error) {
		ok, err := thaw.Confirm(ctx, "approve", fmt.Sprintf("Transfer %d to %s?", in.Amount, in.To))
		if err != nil {
			return "", err
		}
		if !ok {
			return "", thaw.Errorf("declined")
		}
		if err := thaw.Do(ctx, "transfer", func(context.Context) error { *done = append(*done, in.To); return nil }); err != nil {
			return "", err
		}
		return "transferred", nil
	}
	type form struct {
		Topic string `json:"topic"`
	}
	type topic struct {
		Mood string `json:"mood,omitempty"`
	}
	type file struct {
		ID string `json:"id"`
	}
	return thaw.Server{
		Tools: []*thaw.Tool{thaw.NewTool("transfer", "", transfer, opts), thaw.NewTool("other", "", transfer, opts),
			thaw.NewTool("never_asks", "", func(context.Context, struct{}) (string, error) { return "never", nil }, nil)},
		Prompts: []*thaw.Prompt{thaw.NewPrompt("p", "", func(ctx context.Context, in topic) ([]mcp.PromptMessage, error) {
			f, err := thaw.Elicit(ctx, "topic", "About what?", form{})
			return []mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: f.Topic + in.Mood}}}, err
		}, nil)},
		ResourceTemplates: []*thaw.ResourceTemplate{thaw.NewResourceTemplate("doc://{id}", "doc", func(ctx context.Context, in file) ([]mcp.ResourceContents, error) {
			if ok, err := thaw.Confirm(ctx, "read", "Read "+in.ID+"?"); err != nil || !ok {
				return nil, err
			}
			return []mcp.ResourceContents{mcp.TextResource("", "text/plain", "the text")}, nil
		}, &thaw.ResourceOptions{TTL: time.Hour, Public: true})},
	}
}

const canElicit = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// asks makes p a request of a client that can be asked.
func asks(p post) post {
	var meta map[string]any
	_ = json.Unmarshal([]byte(canElicit), &meta)
	p.meta = meta
	return p
}

func transferCall(args string) post {
	return asks(post{method: "tools/call", params: map[string]any{"name": "transfer", "arguments": json.RawMessage(args)}})
}

// retry is p with the answers and state that continue it.
func retry(p post, state any, responses string) post {
	params := map[string]any{"requestState": state}
	if responses != "" {
		params["inputResponses"] = json.RawMessage(responses)
	}
	for k, v := range p.params {
		params[k] = v
	}
	p.params = params
	return p
}

// stateOf is the state in an input_required result.
func stateOf(t testing.TB, a answer) string {
	t.Helper()
	r := a.result(t)
	state, _ := r["requestState"].(string)
	if r["resultType"] != "input_required" || state == "" {
		t.Fatalf("want a question, got %s", a.raw)
	}
	return state
}

const yes = `{"approve":{"action":"accept"}}`

func TestInputRequiredResult(t *testing.T) {
	h, _ := newHandler(t, transferServer(new([]string), nil), Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
	a := do(t, h, transferCall(`{"to":"A","amount":10}`).request(t))
	r := a.result(t)
	for _, absent := range []string{"ttlMs", "cacheScope", "content", "isError"} { // R-03, C-08
		if _, there := r[absent]; there {
			t.Errorf("the result has %s: %s", absent, a.raw)
		}
	}
	const asked = `"inputRequests":{"approve":{"method":"elicitation/create","params":{"mode":"form","message":"Transfer 10 to A?",` +
		`"requestedSchema":{"type":"object","properties":{}}}}}`
	if !strings.Contains(a.raw, asked) || !strings.Contains(a.raw, "serverInfo") {
		t.Errorf("%s", a.raw)
	}
	state := stateOf(t, a)
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(state, "t1."))
	if err != nil || strings.Contains(string(decoded), "approve") || strings.Contains(string(decoded), "Transfer") {
		t.Errorf("the state is readable: %v %q", err, decoded)
	}
}

// The three methods that may ask, and their ends.
func TestAskingMethods(t *testing.T) {
	h, _ := newHandler(t, transferServer(new([]string), nil), Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
	for name, tt := range map[string]struct {
		first     post
		responses string
		want      string
	}{
		"tools/call":     {transferCall(`{"to":"A"}`), yes, `"text":"transferred"`},
		"prompts/get":    {asks(post{method: "prompts/get", params: map[string]any{"name": "p", "arguments": json.RawMessage(`{"mood":"!"}`)}}), `{"topic":{"action":"accept","content":{"topic":"ice"}}}`, `"text":"ice!"`},
		"resources/read": {asks(read("doc://1")), `{"read":{"action":"accept"}}`, `"text":"the text"`},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(t, do(t, h, tt.first.request(t)))
			// A new id, and members that no one asked for.
			again := retry(tt.first, state, strings.TrimSuffix(tt.responses, "}")+`,"nobody":{"asked":1}}`)
			again.id = `"another"`
			a := do(t, h, again.request(t))
			if a.result(t)["resultType"] != "complete" || !strings.Contains(a.raw, tt.want) {
				t.Errorf("%s", a.raw)
			}
			if name == "resources/read" && !strings.Contains(a.raw, `"ttlMs":0,"cacheScope":"private"`) { // C-07
				t.Errorf("a retry may be cached: %s", a.raw)
			}
			// Without any answer the question comes again, with another state.
			b := do(t, h, retry(tt.first, state, "").request(t))
			if second := stateOf(t, b); second == state {
				t.Error("the state is the same")
			}
			// Answers on a first call count for its first questions.
			if c := do(t, h, early(tt.first, tt.responses).request(t)); c.result(t)["resultType"] != "complete" {
				t.Errorf("%s", c.raw)
			}
		})
	}
	for _, p := range []post{{method: "tools/list"}, {method: "server/discover"}} {
		if a := do(t, h, retry(p, 12345, `7`).request(t)); a.code() != 0 {
			t.Errorf("%s reads a state: %s", p.method, a.raw)
		}
	}
}

// Every refusal looks alike outside; the log says which it was.
func TestRefusedStates(t *testing.T) {
	var done []string
	key, old := &testKey{secret: "k"}, &testKey{secret: "old"}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	server := transferServer(&done, &thaw.ToolOptions{Revision: 1})
	options := Options{StateKeys: keys(key), Host: resident, PublicURLs: []string{"https://mcp.example.com/mcp"}, Now: clock}
	h, _ := newHandler(t, server, options)
	first := transferCall(`{"to":"A","amount":10}`)
	state := stateOf(t, do(t, h, first.request(t)))

	other := func(change func(o *Options)) *Handler {
		o := options
		change(&o)
		h, _ := newHandler(t, server, o)
		return h
	}
	raised := transferServer(&done, &thaw.ToolOptions{Revision: 2, MinRevision: 2})
	restated := retry(first, state, yes)
	restated.params["name"] = "other"
	rewritten := retry(first, state, yes)
	rewritten.params["arguments"] = json.RawMessage(`{"to":"B","amount":10}`)
	spelled := retry(first, state, yes)
	spelled.params["arguments"] = json.RawMessage(`{"to":"A"}`)
	prompt := asks(post{method: "prompts/get", params: map[string]any{"name": "p"}})
	later := now.Add(time.Hour)

	type refusal struct {
		p    post
		on   *Handler // nil: an instance like the first
		at   time.Time
		want error
	}
	refusals := map[string]refusal{
		"cut in half":             {p: retry(first, state[:len(state)/2], yes), want: statecodec.ErrMalformed},
		"a trailing =":            {p: retry(first, state+"=", yes), want: statecodec.ErrMalformed},
		"spaces around":           {p: retry(first, " "+state+" ", yes), want: statecodec.ErrMalformed},
		"a line end inside":       {p: retry(first, state[:50]+"\n"+state[50:], yes), want: statecodec.ErrMalformed},
		"tampered":                {p: retry(first, state+"-TAMPERED", yes), want: statecodec.ErrMalformed},
		"hand-made JSON":          {p: retry(first, base64.StdEncoding.EncodeToString([]byte(`{"approve":true}`)), yes), want: statecodec.ErrMalformed},
		"hand-made token":         {p: retry(first, "t1."+base64.RawURLEncoding.EncodeToString(make([]byte, 8+24+144+16)), yes), want: statecodec.ErrUnknownKey},
		"empty":                   {p: retry(first, "", yes), want: statecodec.ErrMalformed},
		"a number":                {p: retry(first, 12345, yes), want: statecodec.ErrMalformed},
		"null":                    {p: retry(first, nil, yes), want: statecodec.ErrMalformed},
		"an object":               {p: retry(first, map[string]any{}, yes), want: statecodec.ErrMalformed},
		"200 kB":                  {p: retry(first, strings.Repeat("A", 200_000), yes), want: statecodec.ErrTooLarge},
		"another key":             {p: retry(first, state, yes), on: other(func(o *Options) { o.StateKeys = keys(old) }), want: statecodec.ErrUnknownKey},
		"no key":                  {p: retry(first, state, yes), on: other(func(o *Options) { o.StateKeys = nil }), want: statecodec.ErrUnknownKey},
		"another audience":        {p: retry(first, state, yes), on: other(func(o *Options) { o.PublicURLs = []string{"https://b.example/mcp"} }), want: statecodec.ErrAudience},
		"another tool":            {p: restated, want: statecodec.ErrRequest},
		"other arguments":         {p: rewritten, want: statecodec.ErrRequest},
		"an argument less":        {p: spelled, want: statecodec.ErrRequest},
		"another method":          {p: retry(prompt, state, yes), want: statecodec.ErrRequest},
		"of a tool that asks not": {p: retry(asks(post{method: "tools/call", params: map[string]any{"name": "never_asks"}}), state, yes), want: statecodec.ErrRequest},
		"expired":                 {p: retry(first, state, yes), at: later, want: statecodec.ErrExpired},
		"from the future":         {p: retry(first, state, yes), at: now.Add(-2 * time.Minute), want: statecodec.ErrForged},
		"of a revision long gone": {p: retry(first, state, yes), want: statecodec.ErrStale},
		"of a listed key, forged": {p: retry(first, flip(state, len(state)/2), yes), want: statecodec.ErrForged},
		"its last character":      {p: retry(first, flip(state, len(state)-1), yes), want: statecodec.ErrForged},
	}
	stale, _ := newHandler(t, raised, options)
	r := refusals["of a revision long gone"]
	r.on = stale
	refusals["of a revision long gone"] = r

	bland := map[string]string{}
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			at := now
			if !r.at.IsZero() {
				at = r.at
			}
			on := r.on
			if on == nil {
				on = other(func(o *Options) { o.Now = func() time.Time { return at } })
			}
			log := &lockedBuffer{}
			on.logger = testLog(log)
			a := do(t, on, r.p.request(t))
			bland[a.raw] = name
			if a.code() != mcp.CodeInvalidParams || a.reason() != "requestState" || a.status != 200 {
				t.Errorf("%d %s", a.status, a.raw)
			}
			if !strings.Contains(log.String(), r.want.Error()) {
				t.Errorf("the log has %s, want %v", log, r.want)
			}
			if strings.Contains(log.String(), state[:60]) {
				t.Errorf("the log has the state: %s", log)
			}
		})
	}
	if len(bland) != 1 || len(done) != 0 {
		t.Errorf("answers differ or something was done: %v %v", bland, done)
	}
	// The one that was not changed is still good on another instance, and so it is after a
	// rotation that keeps its key.
	for name, ring := range map[string][]*testKey{"cold": {key}, "rotated": {old, key}} {
		on := other(func(o *Options) { o.StateKeys = keys(ring...) })
		if a := do(t, on, retry(first, state, yes).request(t)); !strings.Contains(a.raw, "transferred") {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
}

// flip changes one character of a token to its neighbour in the alphabet.
func flip(token string, at int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	i := strings.IndexByte(alphabet, token[at])
	return token[:at] + string(alphabet[(i+16)%64]) + token[at+1:] // the last character has two spare bits
}

// A flood of bad states is one line a second and reason.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	h, log := newHandler(t, transferServer(new([]string), nil), Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident, Now: func() time.Time { return now }})
	for range 100 {
		do(t, h, retry(transferCall(`{"to":"A"}`), "nonsense", yes).request(t))
	}
	now = now.Add(time.Second)
	do(t, h, retry(transferCall(`{"to":"A"}`), "nonsense", yes).request(t))
	if n := strings.Count(log.String(), "request state refused"); n != 2 || !strings.Contains(log.String(), "suppressed=99") {
		t.Errorf("%d lines: %s", n, log)
	}
}

// The key service's own failures are not the client's.
func TestKeyOutOfReach(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		status int
		reason string
	}{
		"unavailable": {statecodec.ErrKeyUnavailable, 503, "key_unavailable"},
		"denied":      {statecodec.ErrKeyDenied, 200, "key_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			good := &testKey{secret: "k"}
			h, _ := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(good), Host: resident})
			first := transferCall(`{"to":"A"}`)
			state := stateOf(t, do(t, h, first.request(t)))
			cold, log := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(&testKey{secret: "k", err: tt.err}), Host: resident})
			for what, p := range map[string]post{"sealing": first, "opening": retry(first, state, yes)} {
				a := do(t, cold, p.request(t))
				if a.code() != mcp.CodeInternalError || a.status != tt.status || a.reason() != tt.reason || (tt.status == 503) != (a.header.Get("Retry-After") == "2") {
					t.Errorf("%s: %d %s", what, a.status, a.raw)
				}
			}
			if len(done) > 0 || log.String() == "" {
				t.Errorf("%v %s", done, log)
			}
		})
	}
}

// An outage fails a call before its first step has an effect.
func TestKeyIsReadyBeforeTheFirstStep(t *testing.T) {
	ran := false
	tool := tool1(func(ctx context.Context) (any, error) {
		err := thaw.Do(ctx, "s", func(context.Context) error { ran = true; return nil })
		return "fine", errorsIgnored(err)
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k", err: statecodec.ErrKeyUnavailable}), Host: resident})
	if a := do(t, h, callT().request(t)); a.status != 503 || ran {
		t.Errorf("%d %s, ran %v", a.status, a.raw, ran)
	}
	without, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{Host: resident})
	if a := do(t, without, callT().request(t)); a.code() != 0 || !ran {
		t.Errorf("%s, ran %v", a.raw, ran)
	}
}

// errorsIgnored swallows an error, as a handler that must not.
func errorsIgnored(error) error { return nil }

// Without a key nothing can ask: that is a lack of the deployment, which the operator reads.
func TestAskingWithoutKey(t *testing.T) {
	h, log := newHandler(t, transferServer(new([]string), nil), Options{Host: offLoopback})
	a := do(t, h, transferCall(`{"to":"A"}`).request(t))
	if a.code() != mcp.CodeInternalError || a.reason() != "cannot_ask" || !strings.Contains(log.String(), "THAW_STATE_KEY") || strings.Contains(a.raw, "THAW_STATE_KEY") {
		t.Errorf("%s\n%s", a.raw, log)
	}
}

// A completion may not ask.
func TestCompletionCannotAsk(t *testing.T) {
	type in struct {
		Topic string `json:"topic"`
	}
	prompt := thaw.NewPrompt("p", "", func(context.Context, in) ([]mcp.PromptMessage, error) { return nil, nil },
		&thaw.PromptOptions{Complete: map[string]thaw.CompleteFunc{"topic": func(ctx context.Context, _ string, _ map[string]string) ([]string, error) {
			_, err := thaw.Confirm(ctx, "q", "?")
			return nil, err
		}}})
	h, _ := newHandler(t, thaw.Server{Prompts: []*thaw.Prompt{prompt}}, Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
	a := do(t, h, asks(post{method: "completion/complete", params: map[string]any{
		"ref": map[string]any{"type": "ref/prompt", "name": "p"}, "argument": map[string]any{"name": "topic", "value": ""}}}).request(t))
	if a.code() != mcp.CodeInternalError || strings.Contains(a.raw, "input_required") {
		t.Errorf("%s", a.raw)
	}
}

// What an answer or a result adds to the journal is judged before anything starts that could
// not be kept any more (B-39).
func TestFullJournal(t *testing.T) {
	runs := 0
	tool := thaw.NewTool("t", "", func(ctx context.Context, in struct {
		Bytes int `json:"bytes"`
	}) (string, error) {
		if in.Bytes > 0 {
			if _, err := thaw.Step(ctx, "keep", func(context.Context) (string, error) { return strings.Repeat("k", in.Bytes), nil }); err != nil {
				return "", err
			}
			if err := thaw.Do(ctx, "after", func(context.Context) error { runs++; return nil }); err != nil {
				return "", err
			}
		}
		if _, err := thaw.Confirm(ctx, "approve", "?"); err != nil {
			return "", err
		}
		return "end", errorsIgnored(thaw.Do(ctx, "effect", func(context.Context) error { runs++; return nil }))
	}, nil)
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident})
	call := func(n int) post {
		p := asks(callT())
		p.params["arguments"] = map[string]int{"bytes": n}
		return p
	}
	large := `{"approve":{"action":"accept","content":{"x":"` + strings.Repeat("j", 24400) + `"}}}`
	state := stateOf(t, do(t, h, call(0).request(t)))
	for name, p := range map[string]post{"on a retry": retry(call(0), state, large), "on a first call": early(call(0), large)} {
		a := do(t, h, p.request(t))
		if a.reason() != "state_too_large" || !strings.Contains(a.raw, `answer to \"approve\"`) || runs != 0 {
			t.Errorf("%s: %s after %d steps", name, a.raw, runs)
		}
	}
	if a := do(t, h, retry(call(0), state, yes).request(t)); !strings.Contains(a.raw, "end") || runs != 1 {
		t.Errorf("%s after %d steps", a.raw, runs)
	}
	// Near the limit a call either goes on or has not begun what it cannot keep.
	fits, refused := 0, 0
	for n := maxKept - 60; n < maxKept+60; n++ {
		runs = 0
		a := do(t, h, call(n).request(t))
		switch {
		case a.code() == 0:
			fits++
			stateOf(t, a)
		case a.reason() == "state_too_large":
			refused++
			if strings.Contains(a.raw, `step \"keep\"`) != (runs == 0) {
				t.Errorf("%d bytes: %s after %d steps", n, a.raw, runs)
			}
		default:
			t.Errorf("%d bytes: %s", n, a.raw)
		}
	}
	if fits == 0 || refused == 0 {
		t.Errorf("%d fit, %d did not", fits, refused)
	}
}

// early is p with answers that nobody asked for yet.
func early(p post, responses string) post {
	params := map[string]any{"inputResponses": json.RawMessage(responses)}
	for k, v := range p.params {
		params[k] = v
	}
	p.params = params
	return p
}

// A state opens for its caller and nobody else: each member of the caller counts, and
// what a token may change between two rounds does not.
func TestStateOfAnotherCaller(t *testing.T) {
	alice := thaw.Principal{Scheme: "jwt", Issuer: "https://idp.example.com", Subject: "alice", Tenant: "t1", Client: "c1",
		Scopes: []string{"a", "b"}, Claims: map[string]any{"jti": "1"}}
	with := func(change func(p *thaw.Principal)) thaw.Principal {
		p := alice
		change(&p)
		return p
	}
	callers := map[string]thaw.Principal{
		"alice":          alice,
		"alice, renewed": with(func(p *thaw.Principal) { p.Scopes, p.Claims = []string{"c"}, map[string]any{"jti": "2"} }),
		"bob":            with(func(p *thaw.Principal) { p.Subject = "bob" }),
		"other issuer":   with(func(p *thaw.Principal) { p.Issuer = "https://idp.example.org" }),
		"other client":   with(func(p *thaw.Principal) { p.Client = "c2" }),
		"no client":      with(func(p *thaw.Principal) { p.Client = "" }),
		"other tenant":   with(func(p *thaw.Principal) { p.Tenant = "t2" }),
		"other scheme":   with(func(p *thaw.Principal) { p.Scheme = "gateway" }),
		"shifted":        with(func(p *thaw.Principal) { p.Issuer, p.Subject = p.Issuer+"a", "lice" }),
		"anonymous":      {Scheme: "none"},
	}
	tokens := map[string]thaw.Principal{}
	for name, p := range callers {
		tokens[strings.ReplaceAll(name, " ", "-")] = p
	}
	scheme := schemeFunc(func(r *http.Request) (thaw.Principal, bool, error) {
		p, known := tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		return p, known, nil
	})
	var done []string
	h, log := newHandler(t, transferServer(&done, nil), Options{StateKeys: keys(&testKey{secret: "k"}), Host: resident, Auth: []auth.Scheme{scheme}})
	as := func(p post, name string) post {
		p.headers = map[string]string{"Authorization": "Bearer " + strings.ReplaceAll(name, " ", "-")}
		return p
	}
	first := transferCall(`{"to":"A"}`)
	state := stateOf(t, do(t, h, as(first, "alice").request(t)))
	for name := range callers {
		a := do(t, h, as(retry(first, state, yes), name).request(t))
		own := strings.HasPrefix(name, "alice")
		if own != strings.Contains(a.raw, "transferred") || !own && a.reason() != "requestState" {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
	if len(done) != 2 || !strings.Contains(log.String(), statecodec.ErrPrincipal.Error()) {
		t.Errorf("%v %s", done, log)
	}
}
