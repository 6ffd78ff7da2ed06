package oauth

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

// provider is a running authorization server.
type provider struct{ issuer string }

// startProvider starts one whose access tokens live for so long.
func startProvider(t *testing.T, lifetime time.Duration) *provider {
	t.Helper()
	lines := fixture.Start(t, npm.Command(packages, providerModule, strconv.Itoa(int(lifetime.Seconds()))))
	return &provider{await(t, linesAfter(lines, "issuer"))}
}

// rotate has it sign with a new key from now on.
func (p *provider) rotate(t *testing.T) {
	t.Helper()
	resp, err := http.Post(p.issuer+"/rotate", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("rotate: %s", resp.Status)
	}
}

// serve starts a server for the provider's users with no more settings than it takes on a
// laptop. env may have others.
func (p *provider) serve(t *testing.T, env ...string) (endpoint string) {
	t.Helper()
	return fixture.ServeIn(t, t.TempDir(), program, append([]string{
		"THAW_ADDR=" + fixture.FreeAddress(t), "THAW_AUTH=jwt", "THAW_JWT_ISSUER=" + p.issuer, "THAW_JWT_JWKS_URL=" + p.issuer + "/jwks",
		"THAW_SCOPES_SUPPORTED=files:read",
	}, env...)...)
}
