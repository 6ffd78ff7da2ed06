package task

import (
	"context"
	"errors"
)

// Heads are those tasks of an owner among ids that there are, in the order of ids, for who
// watches several: what their client can see has changed if Updated has, and Show is what it
// sees then. It only reads: one that is looked at every second must not be healed by a
// process that perhaps reaches no worker, before a sweep does.
func (e *Engine) Heads(ctx context.Context, ids []string, owner [32]byte) ([]Head, error) {
	heads := make([]Head, 0, len(ids))
	for _, id := range ids {
		h, err := e.owned(ctx, id, owner)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		heads = append(heads, h)
	}
	return heads, nil
}

// Show is what the client of a task sees that has the head h.
func (e *Engine) Show(ctx context.Context, h Head) (Snapshot, error) { return e.snapshot(ctx, h) }
