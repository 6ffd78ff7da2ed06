package host

import (
	"context"
	"errors"
)

type answeredKey struct{}

// WithAnswered lets a handler say that its answer is complete although it does not return
// now, for hosts that send an answer only when they have it whole. f is called at most once
// per Answered and must be safe for concurrent use.
func WithAnswered(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, answeredKey{}, f)
}

// Answered says that what has been written in answer to the request of this context is
// complete. Where no host listens it does nothing.
func Answered(ctx context.Context) {
	if f, ok := ctx.Value(answeredKey{}).(func()); ok {
		f()
	}
}

// ErrStopping is the cause of the end of a request's context when the host's time to drain
// is nearly over: there is still time to answer.
var ErrStopping = errors.New("the host is stopping")
