package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
)

// Waiter is what a run needs of its keeper for waiting.
type Waiter interface {
	Keeper
	// Now is the time by which waits are judged.
	Now() time.Time
	// Durable reports whether a wait gives the instance up, and the run goes on elsewhere when
	// it is over. Otherwise it is waited in place, as long as there is time.
	Durable() bool
	// Ends is when the call is over whatever it waits for; zero: nobody knows.
	Ends() time.Time
	// Promote reports whether the rest of the call can become a task.
	Promote() bool
}

// shortWait is waited in place also where a wait could be durable: giving up the instance
// costs more.
const shortWait = time.Second

// SleepWith is call.Call's Sleep for a keeper. Kept is when the sleep is over.
func (r *Run) SleepWith(ctx context.Context, k Waiter, key string, at call.Site, d time.Duration) error {
	r.mu.Lock()
	recorded, err := r.enter(key, at)
	if err != nil {
		r.mu.Unlock()
		return err
	}
	var over time.Time
	if recorded != nil {
		r.pass()
		if ms, err := strconv.ParseInt(string(recorded.Data), 10, 64); err == nil && recorded.Kind == Value {
			over = time.UnixMilli(ms)
		}
	}
	known := !over.IsZero()
	if !known {
		over = k.Now().Add(d)
	}
	left := over.Sub(k.Now())
	cancelled := cancelledAt(k)
	if known && left <= 0 && (cancelled.IsZero() || !over.After(cancelled) || r.unread > 0) {
		r.mu.Unlock()
		return nil
	}
	entry := Entry{Key: key, Kind: Value, Data: strconv.AppendInt(nil, over.UnixMilli(), 10)}
	r.fresh = true
	switch {
	case !cancelled.IsZero():
		err = r.stopped(k)
	case r.suspendedLocked():
		err = &suspended{key}
	case r.ended != nil:
		err = r.ended
	case !k.Ends().IsZero() && over.After(k.Ends()):
		err = fmt.Errorf("a sleep of %v ends after the task's time to live", d)
	case k.Durable() && left > shortWait:
		if known {
			r.parkUntil(over)
		} else {
			r.wait(entry, over)
		}
		err = &suspended{key}
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if left > 0 {
		if k.Wait(ctx, left) != nil {
			return r.cannotWait(ctx)
		}
	}
	if known {
		return nil
	}
	return r.keep(ctx, k, entry)
}

// cannotWait is the error of a wait that there is no time for: the end of the call if that
// is what came, else that such a wait needs a task.
func (r *Run) cannotWait(ctx context.Context) error {
	if ctx.Err() == nil {
		return call.ErrNoTime
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.note(context.Cause(ctx))
}

// PollWith is call.Call's Poll for a keeper: fn is asked now and then again and again until
// it says that it is done, which is recorded.
func (r *Run) PollWith(ctx context.Context, k Waiter, outer call.Call, key string, at call.Site, every time.Duration, fn call.StepFunc) (call.Outcome, error) {
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
			if err = r.stopped(k); err == nil {
				err = r.overfull(k)
			}
		}
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
	for attempt := before.n + 1; ; attempt = 1 {
		out, err := r.try(ctx, k, outer, key, attempt, fn)
		if err != nil {
			return call.Outcome{}, r.unrecorded(key, at, err)
		}
		if out.Failed || !notYet(out.JSON) {
			return out, r.keepOutcome(ctx, k, key, out)
		}
		if k.Durable() && every > shortWait {
			r.mu.Lock()
			defer r.mu.Unlock()
			if next := k.Now().Add(every); before.n > 0 {
				r.wait(tries{0, next}.entry(key), next) // it was not in vain
			} else {
				r.parkUntil(next)
			}
			return call.Outcome{}, &suspended{key}
		}
		if k.Wait(ctx, every) != nil {
			return call.Outcome{}, r.cannotWait(ctx)
		}
		if err := r.again(k); err != nil {
			return call.Outcome{}, err
		}
	}
}

// notYet reports whether a poll gave false.
func notYet(value []byte) bool {
	var done bool
	return json.Unmarshal(value, &done) == nil && !done
}

// parkUntil has the call go on at a time, the earliest of those that it waits for.
func (r *Run) parkUntil(t time.Time) {
	if r.until.IsZero() || t.Before(r.until) {
		r.until = t
	}
}

// Until is when a call that waits for a time goes on; zero if it does not.
func (r *Run) Until() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until
}

// Waits are the entries of this run that are kept with what it waits for.
func (r *Run) Waits() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits
}

// ContinueWith is call.Call's Continue for a keeper.
func (r *Run) ContinueWith(k Waiter) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return call.ErrNoCall
	case r.suspendedLocked():
		return &suspended{"ContinueAsTask"}
	case r.ended != nil:
		return r.ended
	case !k.Promote():
		return nil
	}
	r.promoted = true
	return &suspended{"ContinueAsTask"}
}

// Promoted reports whether the rest of the call is to become a task.
func (r *Run) Promoted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.promoted
}

func (r *Run) suspendedLocked() bool {
	return len(r.questions) > 0 || !r.until.IsZero() || r.promoted || r.elsewhere
}
