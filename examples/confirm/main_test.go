package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

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

func TestOrder(t *testing.T) {
	tool := thaw.NewTool("order", "", order, nil)
	for answer, want := range map[thawtest.Action]string{
		thawtest.Accept: "Ordered, number of cups: 2.", thawtest.Decline: "Nothing was ordered.", thawtest.Dismiss: "Nothing was ordered.",
	} {
		c := thawtest.Start(t, tool, orderIn{Cups: 2}, nil)
		if got, want := c.Message("agree"), "Order coffee, number of cups: 2?"; got != want {
			t.Errorf("asks %q, want %q", got, want)
		}
		if got := c.Answer(thawtest.Answers{"agree": answer}).Text(); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

// The process that asks is another than the one that gets the answer.
func TestAnswerAfterRestart(t *testing.T) {
	folder := t.TempDir()
	first := begin(t, folder)
	asked := first.call(t, "")
	if len(asked.Result.InputRequests) != 1 || asked.Result.RequestState == "" {
		t.Fatalf("%+v is no question", asked)
	}
	first.stop(t)

	state, err := json.Marshal(asked.Result.RequestState)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(action string) string {
		return `, "requestState": ` + string(state) + `, "inputResponses": {"agree": {"action": "` + action + `"}}`
	}
	second := begin(t, folder)
	for range 2 { // a client that lost the first answer asks for it again
		if got := second.call(t, answer("accept")).Result.Content; len(got) != 1 || got[0].Text != "Ordered, number of cups: 2." {
			t.Errorf("the answer gives %+v", got)
		}
	}
	if other := second.call(t, answer("decline")); other.Error.Code != -32602 {
		t.Errorf("another answer to the same question gives %+v", other)
	}
	second.stop(t)
}

type response struct {
	Result struct {
		Content       []struct{ Text string }
		InputRequests map[string]any
		RequestState  string
	}
	Error struct{ Code int }
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

// call calls the tool; more is what a later round adds to the parameters.
func (s *server) call(t *testing.T, more string) response {
	t.Helper()
	body := `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "order", "arguments": {"cups": 2}, "_meta": {
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}` + more + `}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "order",
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out response
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for s.stderr.Scan() { // Wait may only follow the end of the pipe.
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM the program ended in %v, want exit code 0", err)
	}
}
