// Package dynalite runs Dynalite, an emulator of DynamoDB that judges requests as strictly as
// the service does.
package dynalite

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

// Server is a Dynalite of a test's own: empty, and in memory.
type Server struct{ Endpoint string }

const (
	region = "eu-central-1"
	key    = "test"
)

// startTime is what it gets to answer.
const startTime = 60 * time.Second

// Start runs one on a free loopback port until the test ends, installing it before the
// first time. A test that cannot have it fails. What it writes goes to the log of a test
// that fails.
func Start(t testing.TB) *Server {
	t.Helper()
	packages, err := npm.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := fixture.FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", filepath.Join(packages, "node_modules", "dynalite", "cli.js"), "--host", host, "--port", port,
		"--createTableMs", "0", "--deleteTableMs", "0")
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	lines := fixture.Start(t, cmd)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() { // it must not block on a full pipe
		}
	}()
	s := &Server{"http://" + address}
	deadline := time.After(startTime)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.ready(t.Context()) {
		select {
		case <-tick.C:
		case <-ended:
			t.Fatal("Dynalite ended before it answered")
		case <-deadline:
			t.Fatal("Dynalite does not answer")
		}
	}
	return s
}

// ready reports whether it answers.
func (s *Server) ready(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// Config is what clients of the service are made of.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region:       region,
		BaseEndpoint: &s.Endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: key}, nil
		}),
	}
}
