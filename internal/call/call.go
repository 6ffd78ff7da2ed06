// Package call carries the running call in a context. The author's package and the
// server meet here, so it knows neither.
package call

import (
	"context"
	"log/slog"
)

// Call is one run of a handler, as the server implements it. All methods are safe for
// concurrent use and harmless after the handler has returned.
type Call interface {
	// Info is the author package's description of the call.
	Info() any
	// Progress reports done of total to the caller, where the caller asked for it.
	Progress(done, total float64, message string)
	// Logger writes to the operator's log.
	Logger() *slog.Logger
	// ClientLogger writes to the caller, where the caller asked for it.
	ClientLogger() *slog.Logger
}

type key struct{}

// NewContext returns a context that carries c.
func NewContext(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// FromContext returns the call that ctx carries, or nil.
func FromContext(ctx context.Context) Call {
	c, _ := ctx.Value(key{}).(Call)
	return c
}
