// Package cloud runs emulators of AWS's services.
package cloud

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// Region is that of all of them.
const Region = "eu-central-1"

// key is what they take for an account's, 000000000000 where they have accounts.
const key = "test"

// startTime is what an emulator gets to answer.
const startTime = 60 * time.Second

// Server is an emulator of a test's own: empty, and in memory.
type Server struct{ Endpoint string }

// Start runs the program that command makes for a free loopback address until the test ends,
// and waits until it answers 200 at path. A test that cannot have it fails. What the program
// writes goes to the log of a test that fails.
func Start(t testing.TB, path string, command func(host, port string) *exec.Cmd) *Server {
	t.Helper()
	address := fixture.FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(host, port)
	process := fixture.Launch(t, cmd, nil)
	s := &Server{"http://" + address}
	deadline := time.After(startTime)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.ready(t.Context(), path) {
		select {
		case <-tick.C:
		case <-process.Gone():
			t.Fatalf("%s ended before it answered", cmd)
		case <-deadline:
			t.Fatalf("%s does not answer", cmd)
		}
	}
	return s
}

func (s *Server) ready(ctx context.Context, path string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+path, nil)
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

// Config is what clients of the services are made of.
func (s *Server) Config() aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: &s.Endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: key}, nil
		}),
	}
}

// Env is Config for a process.
func (s *Server) Env() []string {
	return []string{"AWS_ENDPOINT_URL=" + s.Endpoint, "AWS_REGION=" + Region, "AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + key}
}
