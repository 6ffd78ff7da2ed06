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

// localDispatcher implements task.Dispatcher within the process. It forgets what it has no room
// for: a task is due in the store until it is claimed.
type localDispatcher struct {
	mu      sync.Mutex
	waiting map[string]*localMessage
	queued  map[string]bool // in due
	due     chan string
}

// maxQueued bounds the messages that wait for a place.
const maxQueued = 1024

type localMessage struct {
	at    time.Time
	timer *time.Timer
}

func newLocalDispatcher() *localDispatcher {
	return &localDispatcher{waiting: map[string]*localMessage{}, queued: map[string]bool{}, due: make(chan string, maxQueued)}
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
		defer d.mu.Unlock()
		if d.waiting[id] != m {
			return
		}
		delete(d.waiting, id)
		if len(d.queued) < maxQueued && !d.queued[id] {
			d.queued[id] = true
			d.due <- id // has room for all that are queued
		}
	})
	return nil
}

// take notes that a message has left the queue.
func (d *localDispatcher) take(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.queued, id)
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
			if len(h.dispatcher.due) < maxQueued/2 { // else what would be found is there
				h.sweep(ctx)
			}
		case id := <-h.dispatcher.due:
			h.dispatcher.take(id)
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
