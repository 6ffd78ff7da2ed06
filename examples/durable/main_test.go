package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/thawtest"
)

// asMain makes the test binary the program itself, so that main is tested as it is.
const asMain = "RUN_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// For a client that does not know tasks it is one call, which takes as long as it takes.
func TestBread(t *testing.T) {
	tool := thaw.NewTool("bread", "", bread, nil)
	for answer, want := range map[thawtest.Action]string{
		thawtest.Accept: "Bread from the dough of ", thawtest.Decline: "The dough was given away.", thawtest.Dismiss: "The dough was given away.",
	} {
		c := thawtest.Start(t, tool, map[string]int{"seconds": 0}, &thawtest.Options{NoTasks: true})
		if got := c.Answer(thawtest.Answers{"bake": answer}).Text(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

// Three processes work on one task; the first two are killed.
func TestKilled(t *testing.T) {
	folder := t.TempDir()
	first := begin(t, folder)
	id := first.send(t, "tools/call", "bread", `"name": "bread", "arguments": {"seconds": 3}`).TaskID
	first.until(t, id, func(r result) bool { return r.StatusMessage == "1 of 2: the dough rises" })
	first.kill(t)

	second := begin(t, folder)
	asked := second.until(t, id, func(r result) bool { return r.Status == "input_required" })
	if len(asked.InputRequests) != 1 || asked.InputRequests["bake"] == nil {
		t.Errorf("asked is %v", asked.InputRequests)
	}
	second.kill(t)

	third := begin(t, folder)
	third.send(t, "tasks/update", id, `"taskId": "`+id+`", "inputResponses": {"bake": {"action": "accept"}}`)
	end := third.until(t, id, func(r result) bool { return r.Status == "completed" })
	if text := end.Result.Content; len(text) != 1 || !strings.HasPrefix(text[0].Text, "Bread from the dough of ") {
		t.Errorf("the task ended in %+v", end)
	}
	third.kill(t)
}

// result has what is used of any result.
type result struct {
	TaskID, Status, StatusMessage string
	InputRequests                 map[string]any
	Result                        struct{ Content []struct{ Text string } }
}

type server struct {
	cmd    *exec.Cmd
	stderr *bufio.Scanner
	url    string
}

var address = regexp.MustCompile(`http://localhost(:\d+/mcp)`)

func begin(t *testing.T, folder string) *server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Env = folder, []string{asMain + "=1", "THAW_ADDR=127.0.0.1:0"}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, stderr: bufio.NewScanner(pipe)}
	for s.stderr.Scan() {
		if found := address.FindStringSubmatch(s.stderr.Text()); found != nil {
			s.url = "http://127.0.0.1" + found[1]
			return s
		}
	}
	t.Fatalf("the program ended without saying where it serves: %v", cmd.Wait())
	return nil
}

// send sends a request of a client that knows tasks.
func (s *server) send(t *testing.T, method, name, params string) result {
	t.Helper()
	body := `{"jsonrpc": "2.0", "id": 1, "method": "` + method + `", "params": {` + params + `, "_meta": {
		"io.modelcontextprotocol/protocolVersion": "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(header, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var message struct {
		Result *result
		Error  any
	}
	if err := json.NewDecoder(answer.Body).Decode(&message); err != nil || message.Result == nil {
		t.Fatalf("%s: %s, %v: %v", method, answer.Status, err, message.Error)
	}
	return *message.Result
}

// until polls the task until it is as wanted.
func (s *server) until(t *testing.T, id string, wanted func(result) bool) result {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(90 * time.Second)
	for {
		r := s.send(t, "tasks/get", id, `"taskId": "`+id+`"`)
		if wanted(r) {
			return r
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the task stays %+v", r)
		}
	}
}

// kill ends the process as the end of its machine would.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for s.stderr.Scan() { // Wait may only follow the end of the pipe.
	}
	_ = s.cmd.Wait() // it was killed, which is no success
}
