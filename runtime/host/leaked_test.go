package host_test

import (
	"testing"

	"github.com/thaw-mcp/thaw/runtime/host"
)

func TestLeaked(t *testing.T) {
	host.Leaked(t.Context()) // nobody listens
	leaked := 0
	ctx := host.WithLeaked(t.Context(), func() { leaked++ })
	if host.Leaked(ctx); leaked != 1 {
		t.Errorf("told %d times", leaked)
	}
}
