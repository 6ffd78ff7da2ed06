package cold

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// round is what a client sends in one round, and what it looks for in the answer.
type round struct {
	answers string
	want    string
}

// rounds are a call that asks twice, so it takes three requests.
var rounds = []round{
	{"", `"step1"`},
	{`{"step1":{"action":"accept","content":{"name":"Alice"}}}`, `"step2"`},
	{`{"step2":{"action":"accept","content":{"color":"blue"}}}`, "Alice likes blue"},
}

const tool = "test_input_required_result_multi_round"

// request is a tools/call.
type request struct {
	tool      string
	arguments string // "": none
	answers   string // "": none
	state     string // "": none
}

func (r request) body(t *testing.T) []byte {
	t.Helper()
	params := map[string]any{
		"name": r.tool,
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
		},
	}
	if r.arguments != "" {
		params["arguments"] = json.RawMessage(r.arguments)
	}
	if r.state != "" {
		params["requestState"] = r.state
	}
	if r.answers != "" {
		params["inputResponses"] = json.RawMessage(r.answers)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
	state  string // to send with the answers
	reason string // of an error
}

// send sends r. An error says that there was no answer.
func send(t *testing.T, url string, r request) (*answer, error) {
	t.Helper()
	return post(t.Context(), http.DefaultClient, url, r.tool, r.body(t))
}

// post sends a body. An error says that there was no answer.
func post(ctx context.Context, client *http.Client, url, tool string, body []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", tool)
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var message struct {
		Result struct{ RequestState string }
		Error  struct{ Data struct{ Reason string } }
	}
	if err := json.Unmarshal(text, &message); err != nil {
		return nil, fmt.Errorf("%w in %s %q", err, res.Status, text)
	}
	return &answer{res.StatusCode, res.Header, string(text), message.Result.RequestState, message.Error.Data.Reason}, nil
}

// must sends r to a server that has to answer.
func must(t *testing.T, url string, r request) *answer {
	t.Helper()
	a, err := send(t, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// play sends one round of the call that asks twice.
func play(t *testing.T, url string, i int, state string) *answer {
	t.Helper()
	return must(t, url, request{tool: tool, answers: rounds[i].answers, state: state})
}

// conversation plays the call with each round on the server that at gives, and returns the
// states that were on the way.
func conversation(t *testing.T, at func(round int) (url string)) (states []string) {
	t.Helper()
	state := ""
	for i, r := range rounds {
		a := play(t, at(i), i, state)
		if !strings.Contains(a.text, r.want) {
			t.Fatalf("round %d: %s", i+1, a.text)
		}
		if a.state == state {
			t.Fatalf("round %d: the state did not change", i+1)
		}
		if state = a.state; state != "" {
			states = append(states, state)
		}
	}
	return states
}

// refused wants the one answer that there is to a state that does not open.
func refused(t *testing.T, a *answer) {
	t.Helper()
	if a.status != http.StatusOK || a.reason != "requestState" || !strings.Contains(a.text, `"code":-32602`) {
		t.Errorf("the state was not refused: %d %s", a.status, a.text)
	}
}

// opensNothing sends every state of a conversation to a server that must refuse it.
func opensNothing(t *testing.T, url string, states []string) {
	t.Helper()
	for i, state := range states {
		refused(t, play(t, url, i+1, state))
	}
}

// later wants an answer that tells the client to come back.
func later(t *testing.T, a *answer, reason string) {
	t.Helper()
	if a.status != http.StatusServiceUnavailable || a.reason != reason || a.header.Get("Retry-After") != "2" || !strings.Contains(a.text, `"code":-32603`) {
		t.Errorf("want 503 %s: %d %v %s", reason, a.status, a.header, a.text)
	}
}

// patience is how long something may take that happens by itself.
const patience = 30 * time.Second

// eventually asks every now and then whether it is done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

// counter is the sum of the effects that happened in a process.
func counter(t *testing.T, url string) int64 {
	t.Helper()
	a := must(t, url, request{tool: "counter_add", arguments: `{"by":0}`})
	var message struct {
		Result struct{ StructuredContent struct{ Total *int64 } }
	}
	if err := json.Unmarshal([]byte(a.text), &message); err != nil || message.Result.StructuredContent.Total == nil {
		t.Fatalf("%v: %s", err, a.text)
	}
	return *message.Result.StructuredContent.Total
}

func wantCounter(t *testing.T, url string, want int64) {
	t.Helper()
	if got := counter(t, url); got != want {
		t.Errorf("the effects add up to %d, want %d", got, want)
	}
}
