// Package cold shows the promise of thaw on real processes: any cold instance continues
// any call.
package cold

import (
	"context"
	"os"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// program is the conformance fixture, built once for all tests.
var program string

func TestMain(m *testing.M) {
	os.Exit(fixture.Main(m, func(ctx context.Context, folder string) (err error) {
		program, err = fixture.BuildIn(ctx, folder, fixture.Program)
		return err
	}))
}

// serve starts a server with a working directory of its own: what two of them share is in env.
func serve(t *testing.T, env ...string) (url string) {
	t.Helper()
	return fixture.ServeIn(t, t.TempDir(), program, append([]string{"THAW_STORE=none"}, env...)...)
}
