package serve

import (
	"context"
	"log/slog"
)

// replayHandler is silent while a handler runs again over what it has done before: every
// line would stand in the log once for each round.
type replayHandler struct {
	slog.Handler
	c *running
}

func (h replayHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.c.run.Replaying() && h.Handler.Enabled(ctx, level)
}

// Handle asks again: not every caller of a slog.Handler asks Enabled first.
func (h replayHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.c.run.Replaying() {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h replayHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return replayHandler{h.Handler.WithAttrs(attrs), h.c}
}

func (h replayHandler) WithGroup(name string) slog.Handler {
	return replayHandler{h.Handler.WithGroup(name), h.c}
}
