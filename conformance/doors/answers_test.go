package doors

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// Every kind of answer gets through every door as it is.
func TestAnswers(t *testing.T) {
	everywhere(t, func(t *testing.T, d door) {
		if m := d.call(t, "echo", map[string]any{"text": "grüß\u2028 \"dich\""}); m.text() != "grüß\u2028 \"dich\"" || string(m.ID) != "7" {
			t.Errorf("echo: %+v", m)
		}
		if m := d.call(t, "test_error_handling", nil); m.Result == nil || !m.Result.IsError {
			t.Errorf("a tool's error: %+v", m)
		}
		if m, status := d.ask(t, request{method: "no/method"}); status != http.StatusNotFound || m.Error == nil || m.Error.Code != -32601 {
			t.Errorf("an unknown method: %d %+v", status, m)
		}
		if m := d.call(t, "panic_goexit", nil); m.text() != "panic" || m.Error.Code != -32603 {
			t.Errorf("a handler that ends its goroutine: %+v", m)
		}
		if r := d.send(t, http.MethodPost, "/mcp", "{", map[string]string{"Content-Type": "application/json"}); r.StatusCode != http.StatusBadRequest {
			t.Errorf("no JSON: %s %s", r.Status, all(t, r))
		}
		if r := d.send(t, http.MethodPut, "/mcp", "{}", nil); r.StatusCode != http.StatusMethodNotAllowed || r.Header.Get("Allow") == "" {
			t.Errorf("PUT: %s %v", r.Status, r.Header)
		}
		if r := d.send(t, http.MethodGet, "/no/path%20here?x=%20", "", nil); r.StatusCode != http.StatusNotFound {
			t.Errorf("another path: %s %s", r.Status, all(t, r))
		}
	})
}

// Answers without a body, and those to HEAD, end.
func TestEmptyBodies(t *testing.T) {
	everywhere(t, func(t *testing.T, d door) {
		r := d.send(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "notifications/cancelled"})
		body := all(t, r)
		if want := map[bool]string{true: "\n"}[d.streams]; r.StatusCode != http.StatusAccepted || body != want {
			t.Errorf("a notification: %s %q, want body %q", r.Status, body, want)
		}
		r = d.send(t, http.MethodOptions, "/mcp", "", map[string]string{"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST"})
		if r.StatusCode != http.StatusNoContent || all(t, r) != "" || r.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("a preflight: %s %v", r.Status, r.Header)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := d.send(t, method, "/health", "", nil)
			if body := all(t, r); r.StatusCode != http.StatusOK || (body != "") != (method == http.MethodGet) {
				t.Errorf("%s /health: %s %q", method, r.Status, body)
			}
		}
	}, "THAW_ALLOWED_ORIGINS=https://app.example.com")
}

// What a door cannot do is not advertised through it, although others of the same function can.
func TestCapabilities(t *testing.T) {
	everywhere(t, func(t *testing.T, d door) {
		m, _ := d.ask(t, request{method: "server/discover"})
		if m.Result == nil || m.Result.Capabilities["tools"] == nil {
			t.Fatalf("%+v", m)
		}
		if logs := m.Result.Capabilities["logging"] != nil; logs != d.streams {
			t.Errorf("logging is advertised: %t", logs)
		}
		// Without a store no other process has anything to tell.
		if m, status := d.ask(t, request{method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{}}}); status != http.StatusNotFound {
			t.Errorf("listen: %d %+v", status, m)
		}
	})
}

// A body goes through whole, or what is wrong with it is said, by thaw or by the door.
func TestLargeBodies(t *testing.T) {
	everywhere(t, func(t *testing.T, d door) {
		large := strings.Repeat("\"é", 100_000)
		if m := d.call(t, "echo", map[string]any{"text": large}); m.text() != large {
			t.Errorf("%d bytes came back as %d", len(large), len(m.text()))
		}
		shapes := map[string]bool{"text": d.streams} // and whether it fits
		switch d.name {
		case "Function URL":
			shapes["quotes"] = d.streams
		case "load balancer":
			shapes["alb"] = false
		}
		for shape, fits := range shapes {
			m := d.call(t, "big_result", map[string]any{"shape": shape})
			switch {
			case fits && (m.Error != nil || len(m.text()) < 1_000_000):
				t.Errorf("%s: %d bytes, error %+v", shape, len(m.text()), m.Error)
			case !fits && (m.Error == nil || m.text() != "response_too_large"):
				t.Errorf("%s: %d bytes, error %+v", shape, len(m.text()), m.Error)
			}
		}
		m := d.open(t, request{method: "tools/call", name: "echo", params: map[string]any{"arguments": map[string]any{"text": strings.Repeat("x", 5<<20)}}})
		if m.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a request of 5 MiB: %s", m.Status)
		}
	})
}

// Who has to log in is told so, under another name where the door renames it.
func TestChallenges(t *testing.T) {
	binary, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, "apikey", "new", "robot").Output()
	if err != nil {
		t.Fatal(err)
	}
	key, line, ok := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if !ok {
		t.Fatalf("%d bytes instead of a key and its line", len(out))
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	everywhere(t, func(t *testing.T, d door) {
		r := d.open(t, request{method: "tools/list"})
		plain, renamed := r.Header.Get("WWW-Authenticate"), r.Header.Get("X-Amzn-Remapped-WWW-Authenticate")
		if renames := d.name == "Function URL" || d.name == "REST API"; r.StatusCode != http.StatusUnauthorized || (plain == "") != renames || (renamed != "") != renames {
			t.Errorf("%s, WWW-Authenticate %q, renamed %q", r.Status, plain, renamed)
		}
		if m, status := d.ask(t, request{method: "tools/list", header: map[string]string{"Authorization": "Bearer " + key}}); status != http.StatusOK {
			t.Errorf("with a key: %d %+v", status, m)
		}
	}, "THAW_AUTH=apikey", "THAW_API_KEYS=file:"+file)
}

// A call that takes all the function's time is answered before the platform kills the function.
func TestTimeIsUp(t *testing.T) {
	for _, mode := range []string{"off", "on"} {
		t.Run("streaming "+mode, func(t *testing.T) {
			t.Parallel()
			f := start(t, deployed, lambdasim.Config{Env: []string{"THAW_LAMBDA_STREAMING=" + mode}, Timeout: lambdaTime})
			d := doorsOf(t, f, mode)[0]
			m, status := d.ask(t, request{method: "tools/call", name: "sleep", params: map[string]any{"arguments": map[string]any{"seconds": 60}}, progress: true})
			if m.Result == nil || !m.Result.IsError || !strings.Contains(m.text(), "timed out") {
				t.Errorf("%s: %d %q %+v", d.name, status, m.text(), m)
			}
			if m := d.call(t, "echo", map[string]any{"text": "still here"}); m.text() != "still here" || f.Started() != 1 {
				t.Errorf("%+v from sandbox %d", m, f.Started())
			}
		})
	}
}
