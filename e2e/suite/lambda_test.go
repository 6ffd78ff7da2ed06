package suite

import (
	"context"
	"net"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/internal/gatewaysim"
	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// notOnLambda are the checks that the suite skips there: what changes in one process reaches no
// stream of another, so it is not advertised.
var notOnLambda = []string{
	"SKIPPED server-stateless:sep-2575-server-sends-prompts-list-changed-on-subscription",
	"SKIPPED server-stateless:sep-2575-server-sends-tools-list-changed-on-subscription",
}

// TestLambda: nothing else of the suite fails at a Function URL that streams, with as many
// sandboxes as it takes, others for the tasks, and a schedule for what waits.
func TestLambda(t *testing.T) {
	program := fixture.BuildProgram(t, fixture.Program) // with a store that needs no cloud
	api := new(lambdasim.Async)
	invoke := httptest.NewServer(api)
	t.Cleanup(invoke.Close)
	front := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"THAW_AUTH=none", "THAW_STORE=sqlite:" + filepath.Join(t.TempDir(), "tasks.db"), "THAW_STATE_KEY=file:" + fixture.NewKey(t, program),
		"THAW_DISPATCH=lambda:worker", "AWS_ENDPOINT_URL_LAMBDA=" + invoke.URL, "THAW_LAMBDA_STREAMING=on",
		"THAW_ALLOWED_ORIGINS=http://localhost:" + port + ",http://127.0.0.1:" + port} // which the suite says that it is
	start := func(role string) *lambdasim.Function {
		f := lambdasim.New(lambdasim.Config{Program: program, Timeout: time.Minute, Env: append([]string{"THAW_ROLE=" + role}, env...)})
		t.Cleanup(f.Close)
		return f
	}
	worker := start("worker")
	api.Add("worker", worker)
	front.Config.Handler = gatewaysim.FunctionURL(start("api"), &gatewaysim.URLOptions{Streaming: true})
	front.Start()
	t.Cleanup(front.Close)
	sweep(t, worker)

	run := exec.CommandContext(t.Context(), "go", "run", "./conformance/run", "-url", front.URL+"/mcp")
	run.Dir = "../.."
	out, _ := run.CombinedOutput() // fails, and says in the last line how often
	var failed []string
	for line := range strings.Lines(string(out)) {
		if status, rest, _ := strings.Cut(line, " "); strings.ToUpper(status) == status && strings.Contains(rest, ": ") {
			key, _, _ := strings.Cut(rest, ": ")
			failed = append(failed, status+" "+key)
		}
	}
	slices.Sort(failed)
	if !slices.Equal(failed, notOnLambda) || !strings.HasSuffix(strings.TrimSpace(strings.TrimSuffix(string(out), "exit status 1\n")), " 2 failed") {
		t.Errorf("%q\n%s", failed, out)
	}
}

// sweep has a schedule find the tasks that wait, until the test ends.
func sweep(t *testing.T, worker *lambdasim.Function) {
	ctx, stop := context.WithCancel(t.Context())
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if _, err := worker.Invoke(ctx, []byte(`{"source":"aws.scheduler","detail-type":"Scheduled Event","detail":{}}`)); err != nil && ctx.Err() == nil {
				t.Errorf("a sweep: %v", err)
			}
		}
	})
	t.Cleanup(func() { stop(); sweeps.Wait() })
}
