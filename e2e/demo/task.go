package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// A call that becomes a task, over plain HTTP: the Go SDK's client knows no tasks.

// task has an environment built: the client answers a form, gets a task in return, and the
// process is killed before the user approves. Another one brings the task to its end.
func task(ctx context.Context, folder, binary string) (err error) {
	section("a call that becomes a task")
	env := []string{"THAW_ADDR=localhost:0", "ENVIRONMENTS_ROOT=" + filepath.Join(folder, "environments")}
	server, url, err := serve(ctx, folder, env, binary)
	if err != nil {
		return err
	}
	defer func() {
		if server != nil {
			err = errors.Join(err, server.stop())
		}
	}()
	call := map[string]any{"name": "provision_environment", "arguments": map[string]any{"region": "eu-west1"}}
	asked, err := ask(ctx, url, "tools/call", "provision_environment", call)
	if err != nil {
		return err
	}
	fmt.Println("the user is asked:", asked.question("plan"))
	call["requestState"] = asked.RequestState
	call["inputResponses"] = map[string]any{"plan": map[string]any{"action": "accept", "content": map[string]any{"size": "small", "count": 2}}}
	made, err := ask(ctx, url, "tools/call", "provision_environment", call)
	if err != nil {
		return err
	}
	fmt.Println("the user fills the form in; the client gets a", made.ResultType, "and may leave")
	waits, err := poll(ctx, url, made.TaskID, "input_required")
	if err != nil {
		return err
	}
	fmt.Println("the task asks:", strings.ReplaceAll(waits.question("approve"), "\n", " "))

	section("kill the process (SIGKILL), and start another")
	if err := server.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = server.stop() // it was killed
	if server, url, err = serve(ctx, folder, env, binary); err != nil {
		return err
	}
	if _, err = ask(ctx, url, "tasks/update", made.TaskID, map[string]any{"taskId": made.TaskID, "inputResponses": map[string]any{
		"approve": map[string]any{"action": "accept", "content": map[string]any{}}}}); err != nil {
		return err
	}
	fmt.Println("the user agrees; the machines take some seconds, in which no worker waits")
	done, err := poll(ctx, url, made.TaskID, "completed")
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", done.Status, done.Result.StructuredContent)
	return nil
}

// serve starts the binary and waits until it says where it serves.
func serve(ctx context.Context, folder string, env []string, binary string) (*started, string, error) {
	server, err := start(ctx, folder, env, binary)
	if err != nil {
		return nil, "", err
	}
	for server.err.Scan() {
		fmt.Println(server.err.Text())
		if _, after, ok := strings.Cut(server.err.Text(), "serves MCP at "); ok {
			url, _, _ := strings.Cut(after, " ")
			return server, url, nil
		}
	}
	return nil, "", errors.Join(errors.New("the server did not start"), server.stop())
}

// state is what results of calls and tasks have in them.
type state struct {
	ResultType, TaskID, Status, StatusMessage, RequestState string

	InputRequests map[string]struct{ Params struct{ Message string } }
	Result        struct{ StructuredContent json.RawMessage }
}

func (s *state) question(key string) string { return s.InputRequests[key].Params.Message }

// poll asks for the task until it has the status, and tells what it says meanwhile.
func poll(ctx context.Context, url, id, status string) (*state, error) {
	said := ""
	for {
		s, err := ask(ctx, url, "tasks/get", id, map[string]any{"taskId": id})
		if err != nil || s.Status == status {
			return s, err
		}
		if s.Status != "working" {
			return nil, fmt.Errorf("the task is %s: %s", s.Status, s.StatusMessage)
		}
		if s.StatusMessage != said {
			said = s.StatusMessage
			fmt.Println(s.Status+":", said)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ask sends one request of a client that knows tasks.
func ask(ctx context.Context, url, method, name string, params map[string]any) (*state, error) {
	params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}}}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		r.Header.Set(key, value)
	}
	if method == "tools/call" {
		r.Header.Set("Mcp-Param-Region", "eu-west1") // which a gateway routes by, unread
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result *state
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil || answer.Result == nil {
		return nil, fmt.Errorf("%s: %s", method, text)
	}
	return answer.Result, nil
}
