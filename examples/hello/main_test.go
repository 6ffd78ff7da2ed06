package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// asMain makes the test binary the program itself, so that main is tested as it is.
const asMain = "RUN_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = []string{asMain + "=1", "THAW_ADDR=127.0.0.1:0"}
	return cmd
}

func TestCall(t *testing.T) {
	for args, want := range map[string]string{`{"name": "Ada"}`: "Hello, Ada!", `{}`: "Hello, world!"} {
		out, err := program(t, "call", "greet", args).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("call greet %s: got %q and %v, want %q", args, out, err, want)
		}
	}
}

var address = regexp.MustCompile(`http://localhost(:\d+/mcp)`)

func TestServe(t *testing.T) {
	cmd := program(t)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var found []string
	for found == nil && lines.Scan() {
		found = address.FindStringSubmatch(lines.Text())
	}
	if found == nil {
		t.Fatalf("the program ended without saying where it serves: %v", cmd.Wait())
	}

	const body = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": "Ada"},
		"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+found[1], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "greet",
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"text":"Hello, Ada!"`) {
		t.Errorf("status %d, body %s, error %v", response.StatusCode, answer, err)
	}

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // Wait may only follow the end of the pipe.
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM the program ended in %v, want exit code 0", err)
	}
}
