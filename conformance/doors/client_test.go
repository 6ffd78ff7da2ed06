package doors

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// client is the client of all tests: its patience is short, so that what hangs fails.
var client = &http.Client{Timeout: 20 * time.Second}

// message is a JSON-RPC message from the server.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result *result
	Error  *struct {
		Code int
		Data struct{ Reason string }
	}
}

type result struct {
	ResultType    string
	IsError       bool
	Content       []struct{ Type, Text, Data string }
	Capabilities  map[string]json.RawMessage
	InputRequests map[string]json.RawMessage
	RequestState  string
	TaskID        string
	Status        string
}

// text is what a message says: its result's first text, or the reason of its error.
func (m *message) text() string {
	switch {
	case m.Error != nil:
		return m.Error.Data.Reason
	case m.Result != nil && len(m.Result.Content) > 0:
		return m.Result.Content[0].Text
	}
	return ""
}

// request is one of a client; capabilities are what it can do.
type request struct {
	method, name string
	params       map[string]any
	capabilities map[string]any
	progress     bool
	header       map[string]string
}

// open sends a request and returns the response with its body to be read.
func (d door) open(t *testing.T, q request) *http.Response {
	t.Helper()
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": q.capabilities,
	}
	if q.capabilities == nil {
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
	}
	if q.progress {
		meta["progressToken"] = "p"
	}
	params := map[string]any{"_meta": meta}
	for name, value := range q.params {
		params[name] = value
	}
	if q.name != "" && params["taskId"] == nil {
		params["name"] = q.name
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": q.method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": q.method}
	if q.name != "" {
		header["Mcp-Name"] = q.name
	}
	for name, value := range q.header {
		header[name] = value
	}
	return d.send(t, http.MethodPost, "/mcp", string(body), header)
}

// send sends any request.
func (d door) send(t *testing.T, method, path, body string, header map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// all is the whole body of a response.
func all(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

// ask sends a request and returns the answer, whatever form it comes in.
func (d door) ask(t *testing.T, q request) (answer message, status int) {
	t.Helper()
	r := d.open(t, q)
	messages := read(t, r)
	if len(messages) == 0 {
		t.Fatalf("%s: no answer", r.Status)
	}
	return messages[len(messages)-1], r.StatusCode
}

// call calls a tool.
func (d door) call(t *testing.T, tool string, arguments map[string]any) message {
	t.Helper()
	m, _ := d.ask(t, request{method: "tools/call", name: tool, params: map[string]any{"arguments": arguments}})
	return m
}

// read reads all messages of a response.
func read(t *testing.T, r *http.Response) (messages []message) {
	t.Helper()
	if r.Header.Get("Content-Type") != "text/event-stream" {
		var m message
		if body := all(t, r); json.Unmarshal([]byte(body), &m) != nil {
			t.Fatalf("%s: %.500s", r.Status, body)
		}
		return []message{m}
	}
	s := newStream(r.Body)
	for {
		m, err := s.next()
		if err == io.EOF {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
}

// stream is an event stream.
type stream struct{ lines *bufio.Reader }

func newStream(r io.Reader) *stream { return &stream{bufio.NewReader(r)} }

// next waits for the next message.
func (s *stream) next() (m message, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return m, err
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return m, json.Unmarshal([]byte(data), &m)
		}
	}
}
