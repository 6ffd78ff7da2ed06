// Package crash kills the processes of a server at every point of a task's life, and at
// random, and looks at what others make of it: no task is lost, and none is done twice.
package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// program is the server, built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "crash-")
	if err == nil {
		defer os.RemoveAll(folder)
		program, err = fixture.BuildIn(context.Background(), folder, "./server")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// place is what the processes of a server share: a store, a key and a log.
type place struct{ store, key, log string }

func newPlace(t *testing.T) place {
	t.Helper()
	folder := t.TempDir()
	return place{filepath.Join(folder, "tasks.db"), fixture.NewKey(t, program), filepath.Join(folder, "log")}
}

// start starts a process that dies at a point; "": at none.
func (p place) start(t *testing.T, point string) *fixture.Server {
	t.Helper()
	return fixture.Run(t, t.TempDir(), program,
		"THAW_STORE=sqlite:"+p.store, "THAW_STATE_KEY=file:"+p.key, "CRASH_LOG="+p.log, "CRASH_AT="+point)
}
