package task

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Redrive has workers told of a task again, for an operator who does not want to wait for the
// sweep. It returns the head, and whether they were told: not of a task that no worker may
// claim now, as Phase, LeaseUntil and Wake say. The task is due then too, so that a sweep of any
// process finds it where messages do not leave this one.
func (e *Engine) Redrive(ctx context.Context, id string) (h Head, told bool, err error) {
	for {
		h, err := e.store.Head(ctx, id)
		if err != nil {
			return Head{}, false, err
		}
		now := e.clock()
		if expired(&h, now) {
			return Head{}, false, ErrNotFound
		}
		if !e.claimable(&h, now) {
			return h, false, nil
		}
		next := h
		next.Asked = slices.Clone(h.Asked)
		next.Version++
		next.Sent, next.Sends = time.Time{}, 0 // what was sent before holds the sweep off no more
		next.Wake = now
		err = e.commit(ctx, next)
		if conflict := (*Conflict)(nil); errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return Head{}, false, err
		}
		if err := e.dispatch(ctx, &next, 0); err != nil {
			return next, false, err
		}
		return next, true, nil
	}
}
