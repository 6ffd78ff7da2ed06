package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
)

func TestVisibility(t *testing.T) {
	if host.VisibilityFrom(t.Context()) != nil {
		t.Error("a visibility out of nowhere")
	}
	var got time.Duration
	ctx := host.WithVisibility(t.Context(), func(_ context.Context, d time.Duration) error { got = d; return nil })
	if err := host.VisibilityFrom(ctx)(ctx, time.Minute); err != nil || got != time.Minute {
		t.Errorf("%v, %v", got, err)
	}
}
