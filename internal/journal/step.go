package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
)

// StepWith is call.Call's Step for a keeper. outer is the call as the handler has it: inside
// fn only what has no key of its own works.
func (r *Run) StepWith(ctx context.Context, k Waiter, outer call.Call, key string, at call.Site, fn call.StepFunc) (call.Outcome, error) {
	r.mu.Lock()
	recorded, err := r.enter(key, at)
	var before tries
	if err == nil && recorded != nil {
		r.pass()
		if recorded.recorded() {
			defer r.mu.Unlock()
			return call.Outcome{JSON: recorded.Data, Failed: recorded.Kind == Failure}, nil
		}
		before = readTries(recorded)
	}
	if err == nil {
		r.fresh = true
		switch {
		case r.suspendedLocked():
			err = &suspended{key}
		case r.ended != nil:
			err = r.ended
		default:
			err = r.overfull(k)
		}
	}
	if err == nil {
		var done context.CancelFunc
		ctx, done, err = r.permit(ctx, k) // else whoever asked was told that the time is over
		defer done()
	}
	if err == nil && before.next.After(k.Now()) {
		r.parkUntil(before.next)
		err = &suspended{key}
	}
	if err != nil {
		r.mu.Unlock()
		return call.Outcome{}, err
	}
	begin := r.launch(k, key)
	r.mu.Unlock()
	defer r.landed()
	if err := begin(ctx); err != nil {
		return call.Outcome{}, err
	}
	out, err := r.try(ctx, k, outer, key, before.n+1, fn)
	if err != nil {
		return call.Outcome{}, r.unrecorded(key, at, err)
	}
	if err := probe(ctx, key); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.end(err)
		return call.Outcome{}, err
	}
	return out, r.keepOutcome(ctx, k, key, out)
}

func (r *Run) keepOutcome(ctx context.Context, k Keeper, key string, out call.Outcome) error {
	e := Entry{Key: key, Kind: Value, Data: out.JSON}
	if out.Failed {
		e.Kind = Failure
	}
	return r.keep(ctx, k, e)
}

// late reports whether the run has ended while a step that was not begun got ready.
func (r *Run) late() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// unrecorded is a step's error that is not recorded, or the misuse that it shows.
func (r *Run) unrecorded(key string, at call.Site, err error) error {
	var not *call.Unrecordable
	var parked *later
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.As(err, &parked):
		return &parked.suspended
	case errors.Is(err, call.ErrSuspended):
		return r.misuse(key, fmt.Sprintf("the function of the step asked on the handler's context, at %v", at))
	case errors.As(err, &not):
		return r.misuse(key, fmt.Sprintf("the step's error cannot be recorded: %v, at %v", not.Err, at))
	}
	return r.note(err)
}

// landed notes that a step has ended, however it did.
func (r *Run) landed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	if r.inFlight == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// launch counts a step that is about to begin. begin is nil if it may. r.mu is held, and not when
// begin is called; landed has to follow.
func (r *Run) launch(k Keeper, key string) (begin func(ctx context.Context) error) {
	r.inFlight++
	first, ready := r.effects == 0, r.ready
	r.effects++
	return func(ctx context.Context) error {
		if !ready {
			if err := r.makeReady(ctx, k); err != nil {
				return err
			}
		}
		if r.late() {
			return call.ErrNoCall
		}
		ok, err := k.Start(first)
		if ok && err == nil {
			return nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.effects--
		if err != nil {
			r.end(err)
			return err
		}
		r.elsewhere = true
		return &suspended{key}
	}
}

// again reports by an error that a step or a poll which waited may not be tried again.
func (r *Run) again(k Keeper) error {
	_, err := k.Start(true)
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.end(err)
	}
	return err
}

func (r *Run) makeReady(ctx context.Context, k Keeper) error {
	err := k.Ready(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.end(err)
		return err
	}
	r.ready = true
	return nil
}

// try runs fn until it gives something to record, or an error that is none. attempt is the one
// that this is.
func (r *Run) try(ctx context.Context, k Waiter, outer call.Call, key string, attempt int, fn call.StepFunc) (call.Outcome, error) {
	for ; ; attempt++ {
		out, err := r.contained(call.NewContext(ctx, &inside{outer, key, k}), k, key, attempt, fn)
		var again *call.Retry
		if err == nil || !errors.As(err, &again) {
			return out, err
		}
		if k.Durable() && again.After > shortWait {
			return out, r.tryLater(k, key, attempt, again)
		}
		if r.Suspended() {
			return out, again.Err
		}
		if err := k.Wait(ctx, again.After); err != nil {
			if errors.Is(err, call.ErrCancelled) {
				return out, fmt.Errorf("%w: %w", err, again.Err)
			}
			return out, again.Err
		}
		if err := r.again(k); err != nil {
			return out, err
		}
	}
}

// contained runs fn. A panic ends the run: in a goroutine of the author's nothing else
// would stop it from ending the process.
func (r *Run) contained(ctx context.Context, k Keeper, key string, attempt int, fn call.StepFunc) (out call.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = k.Recovered(key, p, debug.Stack())
			r.mu.Lock()
			r.end(err)
			r.mu.Unlock()
		}
	}()
	return fn(ctx, attempt)
}

// inside is the call as a step's function has it. What would be recorded by itself cannot
// be done there: it would be done again when only the step's result was lost.
type inside struct {
	call.Call
	key  string
	keep Keeper
}

func (i *inside) Ask(q call.Question, at call.Site) ([]byte, error) {
	return nil, i.misuse(q.Key, at)
}

func (i *inside) Step(_ context.Context, key string, at call.Site, _ call.StepFunc) (call.Outcome, error) {
	return call.Outcome{}, i.misuse(key, at)
}

func (i *inside) Record(key string, at call.Site, value func() []byte) []byte {
	_ = i.misuse(key, at)
	return value()
}

func (i *inside) Sleep(_ context.Context, key string, at call.Site, _ time.Duration) error {
	return i.misuse(key, at)
}

func (i *inside) Poll(_ context.Context, key string, at call.Site, _ time.Duration, _ call.StepFunc) (call.Outcome, error) {
	return call.Outcome{}, i.misuse(key, at)
}

func (i *inside) Continue(at call.Site) error { return i.misuse("ContinueAsTask", at) }

func (i *inside) misuse(key string, at call.Site) error {
	return i.Misuse(key, at, "used inside the function of step "+strconv.Quote(i.key))
}

func (i *inside) IdempotencyKey() string { return i.keep.IdempotencyKey(i.key) }
