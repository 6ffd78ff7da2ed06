package serve

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// The worker of a process that stays: messages are in memory, and what they leave undone a
// sweep of the store finds, also after a restart and for other processes on the same store.

const (
	// maxRuns bounds the tasks that one process runs at a time.
	maxRuns = 64
	// sweepEvery is how often the store is asked for what is due.
	sweepEvery = time.Second
)

// localDispatcher implements task.Dispatcher within the process.
type localDispatcher struct {
	mu      sync.Mutex
	waiting map[string]*localMessage
	due     chan string
}

type localMessage struct {
	at    time.Time
	timer *time.Timer
}

func newLocalDispatcher() *localDispatcher {
	return &localDispatcher{waiting: map[string]*localMessage{}, due: make(chan string, 1024)}
}

// Dispatch implements task.Dispatcher. Of two messages about one task the earlier stays.
func (d *localDispatcher) Dispatch(_ context.Context, id string, after time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := time.Now().Add(after)
	if before := d.waiting[id]; before != nil {
		if !before.at.After(at) {
			return nil
		}
		before.timer.Stop()
	}
	m := &localMessage{at: at}
	d.waiting[id] = m
	m.timer = time.AfterFunc(after, func() {
		d.mu.Lock()
		current := d.waiting[id] == m
		if current {
			delete(d.waiting, id)
		}
		d.mu.Unlock()
		if !current {
			return
		}
		select {
		case d.due <- id:
		default: // full: the sweep finds it
		}
	})
	return nil
}

func (d *localDispatcher) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.waiting {
		m.timer.Stop()
	}
}

// Work runs tasks until ctx ends: those that this process is told of, and those that the
// store lists as due. It returns when the runs have ended, which then are left to others.
func (h *Handler) Work(ctx context.Context) error {
	if h.engine == nil || h.dispatcher == nil {
		<-ctx.Done()
		return nil
	}
	defer h.dispatcher.stop()
	var runs sync.WaitGroup
	defer runs.Wait()
	places := make(chan struct{}, maxRuns)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	h.sweep(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweep.C:
			h.sweep(ctx)
		case id := <-h.dispatcher.due:
			select {
			case places <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			runs.Go(func() {
				defer func() { <-places }()
				if ack, after := h.RunTask(ctx, id); !ack && ctx.Err() == nil {
					_ = h.dispatcher.Dispatch(ctx, id, after) // never fails
				}
			})
		}
	}
}

var errSweep = errors.New("sweep")

func (h *Handler) sweep(ctx context.Context) {
	if _, err := h.engine.Sweep(ctx); err != nil && ctx.Err() == nil {
		h.refusals.log(h.now(), errSweep, func(int) {
			h.logger.LogAttrs(ctx, slog.LevelWarn, "the sweep for due tasks failed", slog.String("error", err.Error()))
		})
	}
}
