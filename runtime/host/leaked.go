package host

import "context"

type leakedKey struct{}

// WithLeaked lets the app say that what it began for this context goes on and cannot be
// ended, for hosts that freeze the process between events: it would wake in the next one. f is
// called at most once per Leaked and must be safe for concurrent use.
func WithLeaked(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, leakedKey{}, f)
}

// Leaked says that something goes on which was begun for this context. Where no host listens
// it does nothing: in a process that stays, such a goroutine only wastes what it uses.
func Leaked(ctx context.Context) {
	if f, ok := ctx.Value(leakedKey{}).(func()); ok {
		f()
	}
}
