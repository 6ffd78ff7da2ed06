package host

import (
	"context"
	"time"
)

// Visibility shows the message that is being worked on to other workers after d from now, and
// not before.
type Visibility func(ctx context.Context, d time.Duration) error

type visibilityKey struct{}

// WithVisibility hands the visibility of the message that RunTask is called for to the app. v
// must be safe for concurrent use.
func WithVisibility(ctx context.Context, v Visibility) context.Context {
	return context.WithValue(ctx, visibilityKey{}, v)
}

// VisibilityFrom is the visibility of this context's message; nil if its host cannot change
// that.
func VisibilityFrom(ctx context.Context) Visibility {
	v, _ := ctx.Value(visibilityKey{}).(Visibility)
	return v
}
