package thaw

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Doing.

// Step runs fn and keeps its JSON result under key: when the handler runs again, Step
// returns what was kept and fn is not run. In a plain call a result is kept only across a
// later question of the same call, and what a call keeps has to fit into 24 KB, or the call
// ends there. A crash between effect and record runs fn again: hand IdempotencyKey to the
// other side.
//
// The value comes back as its JSON says, also on the first run, so that what JSON loses is
// lost at once. An error of fn is kept like a value, since the handler would take another
// way otherwise: it comes back with its text, and as the Errorf, *mcp.Error,
// *UnsupportedError or ErrNotFound that it wraps, but errors.Is finds nothing else in it.
// Not kept are the end of ctx, RetryAfter and ErrNoCall. A panic in fn ends the call.
//
// After a suspension nothing further starts: a step that is not kept returns ErrSuspended. When
// a task is cancelled the first step that is not kept returns ErrCancelled, and those after it run
// again, to clean up. So do steps on context.WithoutCancel(ctx), whatever the handler was told;
// those on a ctx that it made to end with its own do not.
//
// Steps may run in parallel, each under its own key and on its own ctx; a key is used once
// in a run, and never inside fn. Outside a handler Step fails with ErrNoCall.
func Step[T any](ctx context.Context, key string, fn func(context.Context) (T, error)) (T, error) {
	at := call.Here(1)
	var v T
	out, err := step(ctx, key, at, func(ctx context.Context) ([]byte, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		b, err := strictjson.Marshal(v)
		if err != nil {
			return nil, misuse(ctx, key, at, fmt.Sprintf("the step gave a %v that JSON cannot hold: %v", reflect.TypeFor[T](), err))
		}
		return b, nil
	})
	if err != nil {
		return v, err
	}
	if err := strictjson.Unmarshal(out, &v); err != nil {
		var zero T
		return zero, misuse(ctx, key, at, fmt.Sprintf("the call has a JSON %s recorded for the step, which is no %v: %v",
			kindName(out), reflect.TypeFor[T](), err))
	}
	return v, nil
}

// Do is Step for a function without a result.
func Do(ctx context.Context, key string, fn func(context.Context) error) error {
	_, err := step(ctx, key, call.Here(1), func(ctx context.Context) ([]byte, error) {
		if err := fn(ctx); err != nil {
			return nil, err
		}
		return []byte("null"), nil
	})
	return err
}

func step(ctx context.Context, key string, at call.Site, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	c := call.FromContext(ctx)
	if c == nil {
		return nil, ErrNoCall
	}
	out, err := c.Step(ctx, key, at, recordable(fn))
	if err != nil {
		return nil, err
	}
	if out.Failed {
		return nil, decodeFailure(out.JSON)
	}
	return out.JSON, nil
}

// recordable is fn with its errors sorted: what is to be recorded of them, and what is not.
func recordable(fn func(context.Context) ([]byte, error)) call.StepFunc {
	return func(ctx context.Context, attempt int) (call.Outcome, error) {
		value, err := fn(ctx)
		if err == nil {
			return call.Outcome{JSON: value}, nil
		}
		var again *call.Retry
		if errors.As(err, &again) && attempt >= again.Max {
			err = again.Err
		} else if again != nil || ended(ctx, err) || errors.Is(err, ErrNoCall) || errors.Is(err, ErrSuspended) {
			return call.Outcome{}, cancelled(ctx, err)
		}
		failure, encodeErr := encodeFailure(err)
		if encodeErr != nil {
			return call.Outcome{}, &call.Unrecordable{Err: encodeErr}
		}
		return call.Outcome{JSON: failure, Failed: true}, nil
	}
}

// ended reports whether err is the end of ctx and no finding of the step.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// cancelled is err, which matches ErrCancelled where that is why ctx has ended: what a step
// calls knows of context.Canceled alone.
func cancelled(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrCancelled) && !errors.Is(err, ErrCancelled) {
		return fmt.Errorf("%w: %w", ErrCancelled, err)
	}
	return err
}

func kindName(value []byte) string {
	switch strictjson.Kind(value) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 'n':
		return "null"
	case '0':
		return "number"
	default:
		return "boolean"
	}
}

// IdempotencyKey, on the ctx of a step's function, is the same on every try of that step of
// that call and differs from every other: 32 hex digits, to be handed to the other side. On
// the handler's ctx it is the call's own. Outside a handler it is "".
func IdempotencyKey(ctx context.Context) string {
	if c := call.FromContext(ctx); c != nil {
		return c.IdempotencyKey()
	}
	return ""
}

// RetryAfter makes the error of a step's function one to try again after d, up to max tries
// in all; the last one's err is then the step's. A task gives its worker up meanwhile, like in
// Sleep, and keeps how often it has tried: return the error at once, it is ErrSuspended. A plain
// call waits in place, and so does a task for a second at most. Where the time does not suffice,
// Step returns err and keeps nothing. RetryAfter of nil is nil; outside a step it is err.
func RetryAfter(err error, d time.Duration, max int) error {
	if err == nil {
		return nil
	}
	return &call.Retry{Err: err, After: d, Max: max}
}

// Now is the time at which the call first came here: the same on every run. Outside a
// handler it is time.Now.
func Now(ctx context.Context, key string) time.Time {
	var now time.Time
	record(ctx, key, call.Here(1), &now, func() time.Time { return time.Now().UTC() })
	return now
}

// NewID is a random id of 26 letters and digits, the same on every run of the call.
func NewID(ctx context.Context, key string) string {
	var id string
	record(ctx, key, call.Here(1), &id, rand.Text)
	return id
}

func record[T any](ctx context.Context, key string, at call.Site, v *T, make func() T) {
	c := call.FromContext(ctx)
	if c == nil {
		*v = make()
		return
	}
	b := c.Record(key, at, func() []byte {
		b, _ := strictjson.Marshal(make()) // a time or a text
		return b
	})
	if err := strictjson.Unmarshal(b, v); err != nil {
		_ = c.Misuse(key, at, fmt.Sprintf("the call has a JSON %s recorded under it: %v", kindName(b), err))
		*v = make()
	}
}
