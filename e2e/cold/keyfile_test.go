package cold

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// Two processes that share nothing but a key file take turns; then each round has a process
// of its own.
func TestTurnsWithAKeyFile(t *testing.T) {
	newKey := func() string { return "THAW_STATE_KEY=file:" + fixture.NewKey(t, program) }
	shared := newKey()
	both := []string{serve(t, shared), serve(t, shared)}
	states := conversation(t, func(round int) string { return both[round%2] })
	conversation(t, func(int) string { return serve(t, shared) })
	opensNothing(t, serve(t, newKey()), states)
	opensNothing(t, serve(t, "THAW_STATE_KEY=none"), states)
}

// A key file that is rotated under running servers: what was sealed before opens after, on
// servers that were up and on new ones.
func TestRotationUnderWay(t *testing.T) {
	path := fixture.NewKey(t, program)
	old := serve(t, "THAW_STATE_KEY=file:"+path)
	first := play(t, old, 0, "")
	fixture.Keys(t, program, "rotate", path)
	fresh := serve(t, "THAW_STATE_KEY=file:"+path)
	second := play(t, fresh, 1, first.state)
	if !strings.Contains(second.text, rounds[1].want) {
		t.Fatalf("a new server does not open what the old key sealed: %s", second.text)
	}
	if a := play(t, old, 2, second.state); !strings.Contains(a.text, rounds[2].want) {
		t.Fatalf("a running server does not open what the new key sealed: %s", a.text)
	}
	fixture.Keys(t, program, "retire", "-now", path)
	opensNothing(t, serve(t, "THAW_STATE_KEY=file:"+path), []string{first.state})
}

// On Lambda every instance would make a key of its own, so none makes any.
func TestNoKeyFileIsMadeOnLambda(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.key")
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=file:" + path}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "THAW_STATE_KEY") || !strings.Contains(string(out), "does not exist") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}
