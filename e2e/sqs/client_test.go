package sqs

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

// client is a client that knows tasks.
type client struct{ url string }

// taskResult is the part of a result about tasks that tests look at.
type taskResult struct {
	ResultType, TaskID, Status string
	InputRequests              map[string]json.RawMessage
	Result                     struct{ Content []struct{ Text string } }
}

// ask sends a request about name and returns its result.
func (c *client) ask(t *testing.T, method, name string, params map[string]any) taskResult {
	t.Helper()
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{
			"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": name} {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Result *taskResult }
	if err := json.Unmarshal(text, &m); err != nil || m.Result == nil {
		t.Fatalf("%s %s: %s %s (%v)", method, name, res.Status, text, err)
	}
	return *m.Result
}

// create calls a tool, which has to become a task, and returns its id.
func (c *client) create(t *testing.T, tool string, arguments map[string]any) string {
	t.Helper()
	r := c.ask(t, "tools/call", tool, map[string]any{"name": tool, "arguments": arguments})
	if r.ResultType != "task" || r.TaskID == "" {
		t.Fatalf("%s became no task: %+v", tool, r)
	}
	return r.TaskID
}

func (c *client) get(t *testing.T, id string) taskResult {
	t.Helper()
	return c.ask(t, "tasks/get", id, map[string]any{"taskId": id})
}

// endTime is what a task gets to come to a status.
const endTime = 60 * time.Second

// await polls until the task has a status.
func (c *client) await(t *testing.T, id, status string) taskResult {
	t.Helper()
	deadline := time.After(endTime)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		r := c.get(t, id)
		if r.Status == status {
			return r
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the task is %s after %v; want %s", r.Status, endTime, status)
		}
	}
}

// text is the text that a task ended in.
func (r *taskResult) text() string {
	if len(r.Result.Content) != 1 {
		return ""
	}
	return r.Result.Content[0].Text
}
