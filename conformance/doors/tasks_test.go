package doors

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// canDoTasks are the capabilities of a client that knows tasks.
var canDoTasks = map[string]any{"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}}

// fleet is two functions of one server, one that answers and one that works on tasks, each in
// sandboxes of its own, with a store between them.
func fleet(t *testing.T, c lambdasim.Config) *lambdasim.Function {
	t.Helper()
	settings := []string{"THAW_STORE=sqlite:" + filepath.Join(t.TempDir(), "tasks.db"), "THAW_DISPATCH=lambda:worker"}
	api := new(lambdasim.Async)
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	settings = append(settings, "AWS_ENDPOINT_URL_LAMBDA="+s.URL)
	api.Add("worker", start(t, withSQLite, lambdasim.Config{Env: append([]string{"THAW_ROLE=worker"}, settings...)}))
	t.Cleanup(api.Wait)
	c.Env = append(append([]string{"THAW_ROLE=api"}, settings...), c.Env...)
	return start(t, withSQLite, c)
}

// begin has a tool become a task and returns its id.
func (d door) begin(t *testing.T, tool string, arguments map[string]any) string {
	t.Helper()
	m, _ := d.ask(t, request{method: "tools/call", name: tool, params: map[string]any{"arguments": arguments}, capabilities: canDoTasks})
	if m.Result == nil || m.Result.ResultType != "task" || m.Result.TaskID == "" {
		t.Fatalf("%s became no task: %+v", tool, m)
	}
	return m.Result.TaskID
}

// listen listens to a task.
func (d door) listen(t *testing.T, id string) (*stream, *http.Response) {
	t.Helper()
	r := d.open(t, request{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{"taskIds": []string{id}}}, capabilities: canDoTasks})
	s := newStream(r.Body)
	if m, err := s.next(); err != nil || m.Method != "notifications/subscriptions/acknowledged" || !strings.Contains(string(m.Params), id) {
		t.Fatalf("%s: %s %+v, %v", d.name, r.Status, m, err)
	}
	return s, r
}

// until reads a stream until it tells of a task that has a status.
func (s *stream) until(t *testing.T, status string) {
	t.Helper()
	for {
		m, err := s.next()
		if err != nil {
			t.Fatalf("waiting for %s: %v", status, err)
		}
		var p struct{ Status string }
		if err := json.Unmarshal(m.Params, &p); err != nil || m.Method != "notifications/tasks" {
			t.Fatalf("waiting for %s: %+v, %v", status, m, err)
		}
		if p.Status == status {
			return
		}
	}
}

// Who listens through a door that streams is told of a task that another function works on, while
// that waits for an answer and when it has ended. Through the others nobody can listen.
func TestListen(t *testing.T) {
	t.Parallel()
	f := fleet(t, lambdasim.Config{Env: []string{"THAW_LAMBDA_STREAMING=on"}})
	for _, d := range doorsOf(t, f, "on") {
		if !d.streams {
			m, status := d.ask(t, request{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{"taskIds": []string{}}}, capabilities: canDoTasks})
			if status != http.StatusNotFound || m.Error == nil || m.Error.Code != -32601 {
				t.Errorf("%s: %d %+v", d.name, status, m)
			}
			continue
		}
		id := d.begin(t, "confirm_delete", map[string]any{"filename": "a.txt"})
		s, r := d.listen(t, id)
		s.until(t, "input_required")
		answers := map[string]any{"confirm": map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}}
		m, status := d.ask(t, request{method: "tasks/update", name: id, params: map[string]any{"taskId": id, "inputResponses": answers}, capabilities: canDoTasks})
		if m.Error != nil {
			t.Fatalf("%s: %d %+v", d.name, status, m)
		}
		s.until(t, "completed")
		_ = r.Body.Close()
	}
}

// A stream that nobody ends is ended in order before the function's time is up.
func TestListenersAreSentHome(t *testing.T) {
	t.Parallel()
	f := fleet(t, lambdasim.Config{Env: []string{"THAW_LAMBDA_STREAMING=on"}, Timeout: lambdaTime})
	d := doorsOf(t, f, "on")[0]
	s, _ := d.listen(t, d.begin(t, "slow_compute", map[string]any{"seconds": 600}))
	for {
		m, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		if m.Result != nil {
			break
		}
	}
	if m, err := s.next(); err != io.EOF {
		t.Errorf("%+v, %v after the end", m, err)
	}
	// The sandbox that listened lives.
	started := f.Started()
	if d.call(t, "noargs", nil); f.Started() != started {
		t.Errorf("%d sandboxes, want %d", f.Started(), started)
	}
}
