// Package ministack runs MiniStack, an emulator of AWS's services: S3, DynamoDB, SQS, KMS
// and more behind one endpoint.
package ministack

import (
	"os"
	"os/exec"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/cloud"
	"github.com/thaw-mcp/thaw/e2e/internal/pypi"
)

// Start runs one until the test ends, installing it before the first time. It speaks for
// every service, and judges no permissions unless it is told to: more settings of it are
// environment variables, and with AUTH=true functions may do what their roles say.
func Start(t testing.TB, settings ...string) *cloud.Server {
	t.Helper()
	python, err := pypi.Install(t.Context(), "ministack")
	if err != nil {
		t.Fatal(err)
	}
	return cloud.Start(t, "/_ministack/health", func(host, port string) *exec.Cmd {
		folder := t.TempDir()
		cmd := exec.Command(python, "-m", "ministack")
		cmd.Dir = folder
		cmd.Env = append([]string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder, "PYTHONDONTWRITEBYTECODE=1",
			"BIND_HOST=" + host, "GATEWAY_PORT=" + port, "MINISTACK_HOST=" + host, "MINISTACK_REGION=" + cloud.Region,
			"IOT_MTLS_ENABLED=0",                           // which would listen on every interface
			"AWS_ENDPOINT_URL=http://" + host + ":" + port, // functions have it too, and so find the other services here
		}, settings...)
		return cmd
	})
}
