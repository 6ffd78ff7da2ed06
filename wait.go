package thaw

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
)

// Going on later.

// ContinueAsTask makes the rest of this call a task: the client gets its id at once and may
// leave, and the handler runs again from the top on a worker, over all that was recorded. Return
// the error at once; it is ErrSuspended. In a task, and where the client or the tool's Tasks says
// no, ContinueAsTask does nothing and returns nil. Outside a handler it is ErrNoCall.
func ContinueAsTask(ctx context.Context) error {
	c := call.FromContext(ctx)
	if c == nil {
		return ErrNoCall
	}
	return c.Continue(call.Here(1))
}

// Sleep waits until d has passed since the call first came here. In a task the worker is given
// up meanwhile, so that a sleep of hours costs nothing: return the error at once, it is
// ErrSuspended. Elsewhere Sleep waits in place if the call's time allows, else its error matches
// ErrUnsupported. In a task that was cancelled before the sleep was over it is ErrCancelled. A
// sleep that ends after the task's time to live is refused with an error.
func Sleep(ctx context.Context, key string, d time.Duration) error {
	c := call.FromContext(ctx)
	if c == nil {
		return ErrNoCall
	}
	return lackOfTime(c.Sleep(ctx, key, call.Here(1), d))
}

// WaitUntil calls fn now and then every so often until it says done; however often that is,
// one entry is kept. It waits like Sleep and fails like Step. fn is called again when only
// the knowledge of its answer was lost.
func WaitUntil(ctx context.Context, key string, every time.Duration, fn func(context.Context) (done bool, err error)) error {
	c := call.FromContext(ctx)
	if c == nil {
		return ErrNoCall
	}
	at := call.Here(1)
	out, err := c.Poll(ctx, key, at, every, recordable(func(ctx context.Context) ([]byte, error) {
		done, err := fn(ctx)
		return strconv.AppendBool(nil, done), err
	}))
	if err != nil {
		return lackOfTime(err)
	}
	if out.Failed {
		return decodeFailure(out.JSON)
	}
	return nil
}

func lackOfTime(err error) error {
	if errors.Is(err, call.ErrNoTime) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
