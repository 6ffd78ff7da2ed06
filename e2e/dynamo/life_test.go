package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

// TestLongLife is a call with an argument of 1 MB whose task has a thousand steps. Its worker has to
// stop in the middle; another process, which knows nothing but the table, goes on.
func TestLongLife(t *testing.T) {
	t.Parallel()
	const steps, stopsAt = 1000, 500
	m := &meter{}
	cfg := m.on(emulatorNamed("ministack").start(t))
	table := newTable(t, cfg)
	large := strings.Repeat("sesame! ", 1<<17)
	ran := make([]int, steps)
	stop := func() {}
	type in struct {
		Text string `json:"text"`
	}
	start := func() *serve.Handler {
		tool := thaw.NewTool("long", "Takes a thousand steps.", func(ctx context.Context, in in) (string, error) {
			sum := 0
			for i := range steps {
				n, err := thaw.Step(ctx, fmt.Sprint(i), func(context.Context) (int, error) {
					ran[i]++
					if i == stopsAt && ran[i] == 1 {
						stop()
					}
					return len(in.Text) + i, nil
				})
				if err != nil {
					return "", err
				}
				sum += n
			}
			return fmt.Sprint(sum), nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
		h, err := serve.New(thaw.Server{Name: "long", Version: "1", Tools: []*thaw.Tool{tool}},
			&serve.Options{Store: open(t, cfg, table).Store, Host: host.Facts{Resident: true}, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		return h
	}
	h := start()
	id := post(t, h, "tools/call", "long", map[string]any{"name": "long", "arguments": in{large}}).TaskID
	t.Logf("%-32s %v", "create with 1 MB", m.take())

	ctx, cancel := context.WithCancel(t.Context())
	stop = cancel
	h.RunTask(ctx, id)
	t.Logf("%-32s %v", "the first half", m.take())
	if got := post(t, h, "tasks/get", id, map[string]any{"taskId": id}).Status; got != "working" || ran[steps-1] != 0 {
		t.Fatalf("%s when the first worker stopped, and the last step ran %d times", got, ran[steps-1])
	}
	m.take()
	if ack, _ := start().RunTask(t.Context(), id); !ack {
		t.Fatal("the second worker did not end it")
	}
	spent := m.take()
	t.Logf("%-32s %v", "the second half", spent)
	end := post(t, start(), "tasks/get", id, map[string]any{"taskId": id})
	if want := fmt.Sprint(len(large)*steps + steps*(steps-1)/2); end.Status != "completed" || len(end.Result.Content) != 1 || end.Result.Content[0].Text != want {
		t.Errorf("it ended %+v, want %s", end, want)
	}
	for i, n := range ran {
		if n != 1 && i != stopsAt {
			t.Errorf("step %d ran %d times", i, n)
		}
	}
	// Two units a step, claim and end; the index is written about once a lease.
	if most := 2*float64(steps-stopsAt) + 4; spent.writes > most || spent.index > 10 {
		t.Errorf("the second half took %v, want %g of writing and 10 of the index at most", spent, most)
	}
}

type answered struct {
	TaskID, Status string
	Result         struct{ Content []struct{ Text string } }
}

// post sends a request of a client that knows tasks.
func post(t *testing.T, h http.Handler, method, name string, params map[string]any) answered {
	t.Helper()
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	must(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(string(body)))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": method, "Mcp-Name": name} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var m struct{ Result *answered }
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || m.Result == nil {
		t.Fatalf("%s: %d %.300s (%v)", method, w.Code, w.Body, err)
	}
	return *m.Result
}
