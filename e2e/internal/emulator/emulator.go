// Package emulator runs functions under AWS's Lambda Runtime Interface Emulator.
package emulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

const program = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"

// Function is a function that runs under the emulator. It is safe for concurrent use;
// invocations go one after the other, which is all that the emulator can do.
type Function struct {
	url    string
	mu     sync.Mutex
	client http.Client
}

// startTime is what the emulator gets to listen.
const startTime = 30 * time.Second

// Start runs the function at path, built for Lambda, until the test ends. env is added
// to its environment. Both addresses of the emulator are loopback.
func Start(t testing.TB, path string, env ...string) *Function {
	t.Helper()
	emulator := fixture.BuildProgram(t, program)
	invoke, api := fixture.FreeAddress(t), fixture.FreeAddress(t)
	cmd := exec.Command(emulator,
		"--runtime-interface-emulator-address", invoke, "--runtime-api-address", api, "--log-level", "warn", path)
	// The function inherits the emulator's environment.
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "AWS_LAMBDA_FUNCTION_TIMEOUT=20", "AWS_LAMBDA_FUNCTION_NAME=fixture"}, env...)
	lines := fixture.Start(t, cmd)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() { // neither must block on a full pipe
		}
	}()
	f := &Function{url: "http://" + invoke + "/2015-03-31/functions/function/invocations"}
	deadline := time.After(startTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if conn, err := net.Dial("tcp", invoke); err == nil {
			_ = conn.Close()
			return f
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatal("the emulator ended before it listened")
		case <-deadline:
			t.Fatal("the emulator does not listen")
		}
	}
}

// Invoke hands the function one event and returns its answer. A function that fails is
// an answer too: the emulator says 200 to both.
func (f *Function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	f.mu.Lock() // two first calls at once crash the emulator, and it runs one at a time anyway
	defer f.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	res, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the emulator answers %s: %s", res.Status, b)
	}
	return b, nil
}
