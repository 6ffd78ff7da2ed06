// Package mctp uses servers made with thaw over MCTP 0.1, as others would: curl, a client in
// another language that was written from the protocol's document alone, a caching proxy, and a
// validator of OpenAPI documents. And it kills a server while hundreds of tasks are at work.
package mctp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// The programs, built once for all tests.
var functions, tools, killed string

func TestMain(m *testing.M) {
	os.Exit(fixture.Main(m, func(ctx context.Context, folder string) error {
		for program, path := range map[*string]string{&functions: "github.com/thaw-mcp/thaw/functions/server", &tools: fixture.Program, &killed: "./server"} {
			own, err := os.MkdirTemp(folder, "")
			if err == nil {
				*program, err = fixture.BuildIn(ctx, own, path)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// serve runs a program with MCTP and returns where its paths stand.
func serve(t *testing.T, program string, env ...string) string {
	t.Helper()
	folder := t.TempDir()
	env = append([]string{"THAW_MCTP=on", "ENVIRONMENTS_ROOT=" + filepath.Join(folder, "environments")}, env...)
	return strings.TrimSuffix(fixture.ServeIn(t, folder, program, env...), "/mcp")
}
