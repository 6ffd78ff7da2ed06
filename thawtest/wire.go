package thawtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
)

// send makes the next request of the call, with the answers it brings, and has a task that
// came of it worked on.
func (c *Call) send(answers []byte) {
	c.tb.Helper()
	c.request(answers)
	if c.IsTask() {
		c.work()
	}
}

// request makes the next request of the call.
func (c *Call) request(answers []byte) {
	c.tb.Helper()
	params := map[string]any{
		"name":      c.tool.Definition().Name,
		"arguments": c.args,
		"_meta":     c.meta(),
	}
	if c.state != "" {
		params["requestState"] = c.state
	}
	if answers != nil {
		params["inputResponses"] = json.RawMessage(answers)
	}
	c.last = c.encode(params)
	c.rounds++
	c.resend()
}

// resend makes the last request, on a fresh instance.
func (c *Call) resend() {
	c.tb.Helper()
	result := c.exchange(mcp.MethodCallTool, c.tool.Definition().Name, c.last)
	if c.killed {
		return // nobody got the answer
	}
	if result != nil {
		c.readResult(result)
	}
	c.over = c.state == "" && c.taskID == ""
}

func (c *Call) meta() map[string]any {
	return map[string]any{
		mcp.MetaProtocolVersion:    mcp.Version,
		mcp.MetaClientInfo:         mcp.Implementation{Name: "thawtest", Version: "0"},
		mcp.MetaClientCapabilities: c.capabilities(),
		mcp.MetaProgressToken:      "thawtest",
	}
}

func (c *Call) capabilities() json.RawMessage {
	if c.opts.Capabilities != nil {
		return c.opts.Capabilities
	}
	all := `{"sampling":{"tools":{},"context":{}},"roots":{}`
	if !c.opts.NoElicit {
		all += `,"elicitation":{"form":{},"url":{}}`
	}
	if !c.opts.NoTasks {
		all += `,"extensions":{"io.modelcontextprotocol/tasks":{}}`
	}
	return json.RawMessage(all + "}")
}

func (c *Call) encode(v any) []byte {
	c.tb.Helper()
	raw, err := strictjson.Marshal(v)
	if err != nil {
		c.tb.Fatalf("thawtest: encode the request: %v", err)
	}
	return raw
}

// instance is a handler that knows nothing of any request before, over a view of the store.
func (c *Call) instance(p *process) *serve.Handler {
	c.tb.Helper()
	h, err := serve.New(thaw.Server{Name: "thawtest", Version: "0", Tools: []*thaw.Tool{c.tool}, Middleware: c.opts.Middleware}, &serve.Options{
		Host:       host.Facts{Resident: true, Streaming: true, Loopback: true}, // at this machine, errors come with their text
		StateKeys:  []statecodec.Key{c.key},
		StateTTL:   statecodec.MaxTTL,
		Auth:       c.opts.schemes(),
		Logger:     testLogger(c.tb),
		Store:      p,
		Dispatcher: p,
		Now:        c.world.now,
	})
	if err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	return h
}

// exchange makes a request, on a fresh instance, and is the result that came back, nil if there
// is none: then c.err says why.
func (c *Call) exchange(method, name string, params []byte) json.RawMessage {
	c.tb.Helper()
	p := c.process()
	body := append(append([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`), params...), '}')
	r := httptest.NewRequestWithContext(journal.WithProbe(c.tb.Context(), p), http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(mcp.HeaderProtocolVersion, mcp.Version)
	r.Header.Set(mcp.HeaderMethod, method)
	r.Header.Set(mcp.HeaderName, name)
	if method == mcp.MethodCallTool {
		serve.MirrorArguments(r.Header, c.tool, c.args)
	}
	w := httptest.NewRecorder()
	c.instance(p).ServeHTTP(w, r)
	if c.killed = p.dead.Load(); c.killed {
		return nil
	}
	return c.read(w)
}

// read takes the answer apart, a JSON body or a stream of messages.
func (c *Call) read(w *httptest.ResponseRecorder) (result json.RawMessage) {
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
			Error  json.RawMessage
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
			c.readError(message.Error)
		case message.Result != nil:
			result = message.Result
		}
	}
	if result == nil && c.err == nil {
		c.tb.Fatalf("thawtest: no answer (status %d): %s", w.Code, w.Body)
	}
	return result
}

func (c *Call) readError(raw json.RawMessage) {
	c.tb.Helper()
	var e struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	c.err = &mcp.Error{Code: e.Code, Message: e.Message, Data: e.Data}
	if strictjson.Is(strictjson.Member(e.Data, "reason"), "misuse") {
		c.tb.Errorf("thawtest: %s", e.Message)
	}
}

// readResult reads a final result, what the call asks, or which task it became.
func (c *Call) readResult(raw json.RawMessage) {
	c.tb.Helper()
	switch kind, _ := strictjson.String(strictjson.Member(raw, "resultType")); kind {
	case "input_required":
		c.state, _ = strictjson.String(strictjson.Member(raw, "requestState"))
		c.readQuestions(raw)
	case "task":
		c.taskID, _ = strictjson.String(strictjson.Member(raw, "taskId"))
		c.world.stop()
	default:
		c.readOutcome(raw)
	}
}

// readOutcome reads what the tool returned.
func (c *Call) readOutcome(raw json.RawMessage) {
	c.tb.Helper()
	if err := json.Unmarshal(raw, &c.result); err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	if c.result != nil && !c.result.IsError {
		c.checkOutput(c.tool, c.tool.Definition().Name)
	}
}

func (c *Call) readQuestions(raw json.RawMessage) {
	for key, request := range strictjson.Members(strictjson.Member(raw, "inputRequests")) {
		method, _ := strictjson.String(strictjson.Member(request, "method"))
		c.asked = append(c.asked, question{string(key), method, strictjson.Member(request, "params")})
	}
}
