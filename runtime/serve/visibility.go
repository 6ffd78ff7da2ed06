package serve

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// The message of a run is kept out of others' sight for as long as the run goes on, and not
// for much longer, so that it brings another worker soon after this one's death.

const (
	// hideFor is a lease, the guard after it, and some time to be late.
	hideFor = 70 * time.Second
	// hideEvery is as often as the lease is renewed.
	hideEvery = 20 * time.Second
)

// hiding is run with its message hidden, where the host can do that.
func (h *Handler) hiding(run task.Run) task.Run {
	return func(ctx context.Context, c *task.Claim) task.Result {
		show := host.VisibilityFrom(ctx)
		if show == nil {
			return run(ctx, c)
		}
		beat, stop := context.WithCancel(c.Held())
		var hidden sync.WaitGroup
		hidden.Go(func() { h.hide(beat, c.Head().ID, show) })
		// The last word on the message is the host's, so nothing of this may come after it.
		defer hidden.Wait()
		defer stop()
		return run(ctx, c)
	}
}

func (h *Handler) hide(ctx context.Context, id string, show host.Visibility) {
	tick := time.NewTicker(hideEvery)
	defer tick.Stop()
	for {
		if err := show(ctx, hideFor); err != nil && ctx.Err() == nil {
			h.logger.LogAttrs(ctx, slog.LevelWarn, "the message of a task is not hidden", slog.String("task", id), slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
