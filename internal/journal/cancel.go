package journal

import (
	"context"
	"errors"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
)

// What is left to a call that its client has cancelled. The first operation that would bring it
// further tells the handler, by ErrCancelled, and ends the handler's ctx. From then on steps run
// again, to clean up, and nothing is waited for.

// Canceller is a Keeper whose call can be cancelled.
type Canceller interface {
	Keeper
	// Cancelled is when the client has cancelled the call; zero if it has not. It is called under
	// the run's lock.
	Cancelled() time.Time
	// Stop ends the handler's ctx with ErrCancelled, unless it has ended, and returns it. It is
	// called under the run's lock.
	Stop() context.Context
	// CleanUp is ctx as long as whoever runs the call has time for it.
	CleanUp(ctx context.Context) (context.Context, context.CancelFunc)
}

// cancelledAt is when k's call was cancelled; zero: it was not, or cannot be.
func cancelledAt(k Keeper) time.Time {
	if c, ok := k.(Canceller); ok {
		return c.Cancelled()
	}
	return time.Time{}
}

// stopped is what a wait ends with in a call that is cancelled; nil if it is not. r.mu is held.
func (r *Run) stopped(k Keeper) error {
	if cancelledAt(k).IsZero() {
		return nil
	}
	k.(Canceller).Stop()
	r.told = true
	return call.ErrCancelled
}

// permit is ctx as a step gets it, or why the step may not begin. In a call that is cancelled
// those may that are on a ctx which outlives the cancellation, and once the handler was told also
// those on its own: another one that has ended was to end with it. r.mu is held.
func (r *Run) permit(ctx context.Context, k Keeper) (context.Context, context.CancelFunc, error) {
	if cancelledAt(k).IsZero() {
		return ctx, func() {}, context.Cause(ctx)
	}
	c := k.(Canceller)
	own := c.Stop()
	switch {
	case ctx.Err() == nil:
	case r.told && ctx.Done() == own.Done():
		ctx = context.WithoutCancel(ctx)
	default:
		return ctx, func() {}, r.note(context.Cause(ctx))
	}
	ctx, cancel := c.CleanUp(ctx)
	return ctx, cancel, nil
}

// note is err, of which the handler learns of a cancellation if that is what it is. r.mu is held.
func (r *Run) note(err error) error {
	if errors.Is(err, call.ErrCancelled) {
		r.told = true
	}
	return err
}
