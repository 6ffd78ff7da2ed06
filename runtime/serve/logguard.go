package serve

import (
	"context"
	"errors"
	"log/slog"
)

// logGuard is an operator's slog.Handler that cannot take a call, or the process, with it
// when it panics: answers do not depend on the log.
type logGuard struct{ slog.Handler }

func (g logGuard) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the log's handler panicked")
		}
	}()
	return g.Handler.Handle(ctx, r)
}

func (g logGuard) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logGuard{g.Handler.WithAttrs(attrs)}
}

func (g logGuard) WithGroup(name string) slog.Handler { return logGuard{g.Handler.WithGroup(name)} }
