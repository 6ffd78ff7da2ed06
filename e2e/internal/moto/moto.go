// Package moto runs Moto's server, an emulator of AWS's services behind one endpoint.
package moto

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/pypi"
)

// Server is a Moto of a test's own: empty, and in memory. It does not judge permissions.
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
	python, err := pypi.Install(t.Context(), "moto")
	if err != nil {
		t.Fatal(err)
	}
	address := fixture.FreeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd := exec.Command(python, "-m", "moto.server", "-H", host, "-p", port)
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder, "PYTHONDONTWRITEBYTECODE=1"}
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
			t.Fatal("Moto ended before it answered")
		case <-deadline:
			t.Fatal("Moto does not answer")
		}
	}
	return s
}

// ready reports whether it answers.
func (s *Server) ready(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/moto-api/", nil)
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
		Region:       region,
		BaseEndpoint: &s.Endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: key}, nil
		}),
	}
}

// Env is Config for a process.
func (s *Server) Env() []string {
	return []string{"AWS_ENDPOINT_URL=" + s.Endpoint, "AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + key}
}
