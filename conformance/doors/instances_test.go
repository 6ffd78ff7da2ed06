package doors

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
)

// The rounds of a call that asks may each meet a cold instance: what it needs travels with the client.
func TestRoundsOverColdInstances(t *testing.T) {
	env := kms(t)
	for _, mode := range []string{"off", "on"} {
		f := start(t, deployed, lambdasim.Config{Env: append([]string{"THAW_LAMBDA_STREAMING=" + mode}, env...)})
		for n, d := range doorsOf(t, f, mode) {
			q := request{method: "tools/call", name: "test_input_required_result_multi_round", capabilities: map[string]any{"elicitation": map[string]any{}}}
			for round, answer := range []map[string]any{
				nil,
				{"step1": map[string]any{"action": "accept", "content": map[string]any{"name": "Ada"}}},
				{"step2": map[string]any{"action": "accept", "content": map[string]any{"color": "red"}}},
			} {
				if answer != nil {
					q.params["inputResponses"] = answer
				}
				f.Recycle()
				m, _ := d.ask(t, q)
				switch {
				case m.Result == nil:
					t.Fatalf("streaming %s, %s, round %d: %+v", mode, d.name, round, m)
				case round < 2 && (m.Result.ResultType != "input_required" || m.Result.RequestState == ""):
					t.Fatalf("streaming %s, %s, round %d: %+v", mode, d.name, round, m.Result)
				case round == 2 && (m.text() == "" || m.Result.IsError):
					t.Errorf("streaming %s, %s: %+v", mode, d.name, m.Result)
				}
				q.params = map[string]any{"requestState": m.Result.RequestState}
			}
			if want := 3 * (n + 1); f.Started() != want {
				t.Errorf("streaming %s, %s: %d sandboxes, want %d", mode, d.name, f.Started(), want)
			}
		}
	}
}

// asLeaver makes the tests' own binary a function whose handler goes on after its answer.
const asLeaver = "THAW_DOORS_TEST_LEAVER"

// leave serves it. What the handler of /early has not done when it has answered it does in the
// next invocation, /next, which tells what came of it.
func leave() {
	thawed, outcome := make(chan struct{}, 1), make(chan string)
	mux := http.NewServeMux()
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "early")
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		host.Answered(r.Context())
		<-thawed
		n, err := io.WriteString(w, "late")
		outcome <- fmt.Sprintf("%d bytes late, %v, %v", n, err, r.Context().Err())
	})
	mux.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		thawed <- struct{}{}
		_, _ = io.WriteString(w, <-outcome)
	})
	h := host.Pick(os.Getenv, lambdahost.Host())
	fmt.Println(h.Serve(context.Background(), host.App{HTTP: mux}))
}

// What goes on after an answer is frozen and thawed with its sandbox: it is not lost, and it
// does not reach the answer of the next invocation.
func TestWorkAfterTheAnswer(t *testing.T) {
	for _, mode := range []string{"off", "on"} {
		f := start(t, func() (string, error) { return os.Executable() }, lambdasim.Config{Timeout: 10 * time.Second, Concurrency: 1,
			Env: []string{asLeaver + "=1", "THAW_LAMBDA_STREAMING=" + mode}})
		for _, d := range doorsOf(t, f, mode) {
			for range 3 {
				if got := all(t, d.send(t, http.MethodGet, "/early", "", nil)); got != "early" {
					t.Fatalf("streaming %s, %s: %q", mode, d.name, got)
				}
				want := "0 bytes late, http: Handler timeout, context canceled"
				if got := all(t, d.send(t, http.MethodGet, "/next", "", nil)); got != want {
					t.Fatalf("streaming %s, %s: %q, want %q", mode, d.name, got, want)
				}
			}
		}
		if f.Started() != 1 {
			t.Errorf("streaming %s: %d sandboxes", mode, f.Started())
		}
	}
}
