package task

import (
	"context"
	"errors"
	"sync"
)

// readsAtOnce bounds the heads that one call reads from the store at a time.
const readsAtOnce = 10

// Heads are those tasks of an owner among ids that there are, in the order of ids, for who
// watches several: what their client can see has changed if Updated has, and Show is what it
// sees then. It only reads: one that is looked at every second must not be healed by a
// process that perhaps reaches no worker, before a sweep does.
func (e *Engine) Heads(ctx context.Context, ids []string, owner [32]byte) ([]Head, error) {
	found, errs := make([]Head, len(ids)), make([]error, len(ids))
	next := make(chan int)
	var readers sync.WaitGroup
	for range min(readsAtOnce, len(ids)) {
		readers.Go(func() {
			for i := range next {
				found[i], errs[i] = e.owned(ctx, ids[i], owner)
			}
		})
	}
	for i := range ids {
		next <- i
	}
	close(next)
	readers.Wait()
	heads := make([]Head, 0, len(ids))
	for i, err := range errs {
		switch {
		case err == nil:
			heads = append(heads, found[i])
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
	}
	return heads, nil
}

// Show is what the client of a task sees that has the head h.
func (e *Engine) Show(ctx context.Context, h Head) (Snapshot, error) { return e.snapshot(ctx, h) }
