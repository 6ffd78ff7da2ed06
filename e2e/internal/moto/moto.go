// Package moto runs Moto's server, an emulator of AWS's services behind one endpoint.
package moto

import (
	"os"
	"os/exec"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/cloud"
	"github.com/thaw-mcp/thaw/e2e/internal/pypi"
)

// Start runs one until the test ends, installing it before the first time. It judges no
// permissions.
func Start(t testing.TB) *cloud.Server {
	t.Helper()
	python, err := pypi.Install(t.Context(), "moto")
	if err != nil {
		t.Fatal(err)
	}
	return cloud.Start(t, "/moto-api/", func(host, port string) *exec.Cmd {
		folder := t.TempDir()
		cmd := exec.Command(python, "-m", "moto.server", "-H", host, "-p", port)
		cmd.Dir = folder
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder, "PYTHONDONTWRITEBYTECODE=1"}
		return cmd
	})
}
