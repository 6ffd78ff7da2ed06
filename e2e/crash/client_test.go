package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// view is a task as a client sees it.
type view struct {
	TaskID, Status string
	InputRequests  map[string]any
	Result         *struct {
		IsError           bool
		StructuredContent out
	}
}

type out struct {
	Job   string
	Steps []string
}

// client is fresh for each request, so that a connection to the dead is none to the living.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// send sends a request. errGone says that there was no answer.
func send(ctx context.Context, url, method, name string, params map[string]any) (view, error) {
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{
			"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}},
		},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return view{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return view{}, err
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return view{}, fmt.Errorf("%w: %w", errGone, err)
	}
	defer answer.Body.Close()
	var message struct {
		Result *view
		Error  *struct{ Code int }
	}
	if err := json.NewDecoder(answer.Body).Decode(&message); err != nil {
		return view{}, fmt.Errorf("%w: %w", errGone, err)
	}
	switch {
	case message.Result != nil:
		return *message.Result, nil
	case message.Error != nil && message.Error.Code == -32602:
		return view{}, errUnknown
	}
	return view{}, fmt.Errorf("%s: %s, %+v", method, answer.Status, message.Error)
}

var (
	errGone    = errors.New("no answer")
	errUnknown = errors.New("no such task")
)

// create calls the tool.
func create(ctx context.Context, url, job string) (id string, err error) {
	v, err := send(ctx, url, "tools/call", "work", map[string]any{"name": "work", "arguments": map[string]any{"job": job}})
	return v.TaskID, err
}

// get looks at a task.
func get(ctx context.Context, url, id string) (view, error) {
	return send(ctx, url, "tasks/get", id, map[string]any{"taskId": id})
}

// advance looks at a task, and answers what it asks.
func advance(ctx context.Context, url, id string) (view, error) {
	v, err := get(ctx, url, id)
	if err != nil || v.Status != "input_required" {
		return v, err
	}
	answers := map[string]any{}
	for key := range v.InputRequests {
		answers[key] = map[string]any{"action": "accept"}
	}
	_, err = send(ctx, url, "tasks/update", id, map[string]any{"taskId": id, "inputResponses": answers})
	return v, err
}

func (v view) ended() bool { return v.Status != "working" && v.Status != "input_required" }
