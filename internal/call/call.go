// Package call carries the running call in a context. The author's package and the
// server meet here, so it knows neither.
package call

import (
	"context"
	"log/slog"
	"time"
)

// Call is one run of a handler, as the server implements it. All methods are safe for
// concurrent use and harmless after the handler has returned: those that can fail then
// fail with ErrNoCall.
type Call interface {
	// Info is the author package's description of the call.
	Info() any
	// RequireScopes is nil if the caller has all of scopes, or the error that the call is to
	// end with; ErrNoCall after the handler has returned.
	RequireScopes(scopes []string) error
	// Progress reports done of total to the caller, where the caller asked for it.
	Progress(done, total float64, message string)
	// Logger writes to the operator's log.
	Logger() *slog.Logger
	// ClientLogger writes to the caller, where the caller asked for it.
	ClientLogger() *slog.Logger

	// Ask is the answer to q: the client's bare result, judged against q. Without one it is
	// ErrSuspended, and q goes to the client when the handler has returned.
	Ask(q Question, at Site) (answer []byte, err error)
	// Step is what fn gave under key, now or on an earlier run of the call. fn's ctx is for
	// fn alone; an error of fn is not recorded and comes back as it is.
	Step(ctx context.Context, key string, at Site, fn StepFunc) (Outcome, error)
	// Record is what value gave under key, now or on an earlier run. Unlike a step it has no
	// effect, so it also runs where a step would not start.
	Record(key string, at Site, value func() []byte) []byte
	// Sleep returns when d has passed since the call first came here. ErrNoTime says that it
	// would have to be a task for that.
	Sleep(ctx context.Context, key string, at Site, d time.Duration) error
	// Poll is Step for an fn that gives a boolean, asked now and then every so often until it is
	// true.
	Poll(ctx context.Context, key string, at Site, every time.Duration, fn StepFunc) (Outcome, error)
	// Continue makes the rest of the call a task, where it can be one.
	Continue(at Site) error
	// IdempotencyKey is the same on every try of the step whose ctx carries the call;
	// elsewhere it is the call's own.
	IdempotencyKey() string
	// Misuse ends the call: what was done with key cannot be right.
	Misuse(key string, at Site, what string) error
}

// StepFunc does the work of a step. attempt counts from 1 over the tries that Retry asked for.
type StepFunc func(ctx context.Context, attempt int) (Outcome, error)

// Outcome is what a step recorded: the JSON of its value, or of its failure.
type Outcome struct {
	JSON   []byte
	Failed bool
}

// Question is a request to the client: one entry of inputRequests.
type Question struct {
	Key    string
	Method string
	Params []byte // a JSON object
	// Fits says what is wrong with an answer that its form alone does not say, or "". Nil:
	// nothing.
	Fits func(answer []byte) string
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
