// Package dynalite runs Dynalite, an emulator of DynamoDB that judges requests as strictly as
// the service does.
package dynalite

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/cloud"
	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

// Start runs one until the test ends, installing it before the first time.
func Start(t testing.TB) *cloud.Server {
	t.Helper()
	packages, err := npm.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cloud.Start(t, "/", func(host, port string) *exec.Cmd {
		cmd := exec.Command("node", filepath.Join(packages, "node_modules", "dynalite", "cli.js"), "--host", host, "--port", port,
			"--createTableMs", "0", "--deleteTableMs", "0")
		cmd.Dir = t.TempDir()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		return cmd
	})
}
