package clients

import (
	"net/http"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/emulator"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/npm"
	"github.com/thaw-mcp/thaw/e2e/internal/wire"
	"github.com/thaw-mcp/thaw/internal/gatewaysim"
	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// TestClients: each client does everything it can, against each way to host the server.
func TestClients(t *testing.T) {
	schema, err := wire.LoadSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	packages, err := npm.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// With keys in a file, which the build for Lambda alone cannot open.
	program := fixture.BuildProgram(t, fixture.Program)
	env := []string{"THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=file:" + fixture.NewKey(t, program)}
	function := gatewaysim.Buffered(emulator.Start(t, program, env...).Invoke)
	streaming := lambdasim.New(lambdasim.Config{Program: program, Env: append(env, "THAW_LAMBDA_STREAMING=on"), Timeout: time.Minute})
	t.Cleanup(streaming.Close)
	hosts := []struct {
		name      string
		handler   http.Handler
		streaming bool // notifications arrive
	}{
		{"local", forward(t, fixture.Serve(t, program)), true},
		{"API Gateway", gatewaysim.HTTPAPI(function, nil), false},
		{"Function URL", gatewaysim.FunctionURL(function, nil), false},
		{"Function URL that streams", gatewaysim.FunctionURL(streaming, &gatewaysim.URLOptions{Streaming: true}), true},
	}
	clients := []struct {
		name string
		run  func(t *testing.T, endpoint string) *report
	}{
		{"go-sdk", goClient},
		{"typescript", func(t *testing.T, endpoint string) *report { return typescriptClient(t, packages, endpoint) }},
	}
	for _, h := range hosts {
		for _, c := range clients {
			t.Run(h.name+"/"+c.name, func(t *testing.T) {
				r, endpoint := record(t, h.handler)
				c.run(t, endpoint).check(t, h.streaming)
				r.check(t, schema)
			})
		}
	}
}
