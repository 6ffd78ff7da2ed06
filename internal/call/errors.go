package call

import (
	"errors"
	"time"
)

// The author's package shows these under its own name.
var (
	ErrSuspended = errors.New("thaw: suspended: the handler runs again, from the top, when there is what it waits for")
	ErrCancelled = errors.New("thaw: the client has cancelled the task")
	ErrNoTime    = errors.New("thaw: the call has not the time to wait so long, and is no task")
	ErrNoCall    = errors.New("thaw: no running call: the context is not one that a handler was given, or the handler has returned")
)

// Unrecordable is a step's outcome that JSON cannot hold.
type Unrecordable struct{ Err error }

func (u *Unrecordable) Error() string { return u.Err.Error() }

// Retry is a step's error that asks for the step to be tried again.
type Retry struct {
	Err   error
	After time.Duration
	Max   int // tries in all
}

func (r *Retry) Error() string { return r.Err.Error() }

// Unwrap is the error itself.
func (r *Retry) Unwrap() error { return r.Err }
