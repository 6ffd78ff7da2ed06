package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Verdict says what becomes of the message that had a worker look at a task.
type Verdict struct {
	// Ack: the message has done its work, or there is none. Otherwise it is kept and shows
	// again, not before After.
	Ack   bool
	After time.Duration
}

var acknowledged = Verdict{Ack: true}

// Work looks at a task, as a message said, and runs it if it can be claimed. The message is
// acknowledged only if the task is absent, expired, at its end or waiting for its client, or
// if the run that was claimed has ended in a committed write; in every other case it is kept.
// What failed is fails in for a run that a task cannot get any more.
func (e *Engine) Work(ctx context.Context, id string, run Run) Verdict {
	h, err := e.store.Head(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return acknowledged
	}
	if err != nil && ctx.Err() != nil { // the worker stops
		return Verdict{After: e.limits.Guard}
	}
	if err != nil {
		e.logger.LogAttrs(ctx, slog.LevelWarn, "a task cannot be read", slog.String("task", id), slog.String("error", err.Error()))
		return Verdict{After: e.limits.Guard}
	}
	now := e.clock()
	switch {
	case expired(&h, now), h.Phase == Done, h.Phase == Asking:
		return acknowledged
	case !e.claimable(&h, now):
		return Verdict{After: max(e.due(&h).Sub(now), time.Second)}
	}
	c, verdict := e.claim(ctx, h)
	if c == nil {
		return verdict
	}
	return e.hold(ctx, c, run)
}

// claim takes a claimable task, or fails one that was claimed often enough.
func (e *Engine) claim(ctx context.Context, h Head) (*Claim, Verdict) {
	next := h
	next.Version++
	next.Epoch++
	next.Claims++
	if h.Phase == Running { // over a dead lease
		next.Interrupted++
	}
	switch {
	case next.Interrupted >= e.limits.MaxInterrupted:
		return nil, e.giveUp(ctx, h, fmt.Sprintf("its workers died %d times in a row", next.Interrupted))
	case next.Claims > e.limits.MaxClaims:
		return nil, e.giveUp(ctx, h, fmt.Sprintf("it was claimed %d times", h.Claims))
	}
	now := e.clock()
	next.Phase, next.Worker = Running, freshName()
	next.LeaseUntil = now.Add(e.limits.Lease)
	e.postpone(&next, now)
	next.Sends = 0
	sent := e.now()
	c := &Claim{e: e, id: h.ID, began: h.Journal}
	err := e.commit(ctx, next)
	var conflict *Conflict
	if errors.As(err, &conflict) && conflict.Now.Epoch == next.Epoch && conflict.Now.Worker == next.Worker {
		next, err = conflict.Now, nil // its own write, of which the answer was lost
	}
	if err != nil {
		// Somebody else has it, or nobody knows: whoever looks next finds out.
		return nil, Verdict{After: e.limits.Guard}
	}
	if c.late = next.Status == Cancelled; c.late { // before, or since a claim whose answer was lost
		c.cancelled.Store(&next.Updated)
	}
	c.took(next, sent)
	return c, Verdict{}
}

// giveUp fails a task that no worker brings to its end. One that is cancelled already only
// ends.
func (e *Engine) giveUp(ctx context.Context, h Head, why string) Verdict {
	e.logger.LogAttrs(ctx, slog.LevelError, "a task is given up", slog.String("task", h.ID), slog.String("tool", h.Tool), slog.String("why", why))
	var err error
	if h.Status == Cancelled {
		err = e.commit(ctx, e.cleaned(h))
	} else {
		_, err = e.finish(ctx, h, interrupted)
	}
	if err != nil {
		return Verdict{After: e.limits.Guard}
	}
	return acknowledged
}

// interrupted is how a task ends that is given up.
var interrupted = Outcome{Status: Failed, Message: "The task was interrupted too often and was given up.",
	Data: []byte(`{"code":-32603,"message":"The task was interrupted too often and was given up","data":{"reason":"interrupted"}}`)}

// cleaned is a cancelled head after its clean-up run.
func (e *Engine) cleaned(h Head) Head {
	h.Version++
	h.Phase, h.Worker = Done, ""
	h.LeaseUntil, h.Wake, h.Asked = time.Time{}, time.Time{}, nil
	return h
}

// hold runs a claimed task and commits what became of it. It returns after the renewals of
// the lease have ended, so that none of them outlives the run.
func (e *Engine) hold(ctx context.Context, c *Claim, run Run) Verdict {
	held, end := context.WithCancelCause(ctx)
	ctx, cancel := context.WithCancelCause(held)
	c.held, c.end, c.cancel = held, end, cancel
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewals sync.WaitGroup
	renewals.Go(func() { c.keepAlive(alive) })
	result := run(ctx, c)
	stop()
	renewals.Wait()
	end(nil)
	// What the run ended in is written although the worker's own time may be over.
	ctx = context.WithoutCancel(ctx)
	if result.Last != nil && c.givesUp(result) {
		e.logger.LogAttrs(ctx, slog.LevelError, "a task is given up", slog.String("task", c.id), slog.String("why", result.Last.Message))
		result = Result{Outcome: result.Last}
	}
	if result.Release != "" {
		e.logger.LogAttrs(ctx, slog.LevelWarn, "a task is released", slog.String("task", c.id), slog.String("why", result.Release))
		last, lost := c.over()
		return Verdict{Ack: errors.Is(lost, ErrCancelled), After: max(e.due(&last).Sub(e.clock()), time.Second)}
	}
	next, err := c.conclude(ctx, result)
	switch {
	case errors.Is(err, ErrCancelled), errors.Is(err, ErrLost):
		// The head says what goes on; this message has no part in it.
		return acknowledgedIf(errors.Is(err, ErrCancelled))
	case err != nil:
		e.logger.LogAttrs(ctx, slog.LevelError, "the end of a run was not written", slog.String("task", c.id), slog.String("error", err.Error()))
		return Verdict{After: e.limits.Guard}
	}
	// Where a message is due and was not sent, the one that is there does its work.
	switch next.Phase {
	case Ready:
		if e.dispatch(ctx, &next, 0) != nil {
			return Verdict{After: time.Second}
		}
	case Sleeping:
		wait := max(next.Wake.Sub(e.clock()), 0)
		if wait <= MaxDelay && e.dispatch(ctx, &next, wait) != nil {
			return Verdict{After: max(wait, time.Second)}
		}
	}
	return acknowledged
}

// givesUp reports whether r is one interruption too many.
func (c *Claim) givesUp(r Result) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost == nil && c.head.Interrupted+1 >= c.e.limits.MaxInterrupted && (r.Release != "" || r.Park != nil && c.fruitless(&c.head, r.Park))
}

// fruitless reports whether a run that ends in p has brought nothing. It counts like a death: the
// brake on a task that is continued for ever.
func (c *Claim) fruitless(h *Head, p *Park) bool {
	return len(p.Questions) == 0 && p.Until.IsZero() && len(p.Entries) == 0 && h.Journal == c.began && !p.Stopping
}

// over ends the use of a claim, whoever still has it: last is its last head, and lost why it
// was over.
func (c *Claim) over() (last Head, lost error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost = c.lose(ErrLost)
	return c.head, lost
}

func acknowledgedIf(ack bool) Verdict { return Verdict{Ack: ack, After: time.Second} }

// conclude writes what became of a run.
func (c *Claim) conclude(ctx context.Context, r Result) (Head, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { _ = c.lose(ErrLost) }() // for a handler that did not end with its run
	epoch := c.head.Epoch
	var phase Phase
	err := c.swap(ctx, func(h *Head) (parts []Part) {
		switch {
		case h.Status == Cancelled && (r.Park == nil || c.late && len(r.Park.Questions) > 0):
			*h = c.e.cleaned(c.head)
		case h.Status == Cancelled:
			parts = c.park(h, c.cleanUp(r.Park))
		case r.Outcome != nil:
			*h, parts = c.e.ended(c.head, *r.Outcome)
		default:
			parts = c.park(h, r.Park)
		}
		phase = h.Phase
		return parts
	}, func(now *Head) bool {
		// Nobody but this claim takes the worker from a head of its epoch; or who gives the task
		// up, which is its end as well; or the client by cancelling, which is no end that this
		// run has written.
		return now.Epoch == epoch && now.Worker == "" && (now.Status != Cancelled || phase == Done && now.Phase == Done)
	})
	return c.head, err
}

// cleanUp is what becomes of a wait that was cancelled. One that was begun before gets a run to
// clean up now; one that only needs another worker gets that.
func (c *Claim) cleanUp(p *Park) *Park {
	next := *p
	if next.Questions = nil; !p.Stopping {
		next.Until, next.Stopping = time.Time{}, !c.late && (len(p.Questions) > 0 || !p.Until.IsZero())
	}
	return &next
}

// park changes a claimed head into one that waits.
func (c *Claim) park(h *Head, p *Park) (parts []Part) {
	now := c.e.clock()
	fruitless := c.fruitless(h, p)
	h.Worker, h.LeaseUntil = "", time.Time{}
	h.Sends = 0
	if c.message != "" && c.message != h.Message && h.Status == Working {
		h.Message = c.message
		touch(h, now)
	}
	for i, entry := range p.Entries {
		parts = append(parts, Part{Kind: PartEntry, Epoch: h.Epoch, Seq: h.Journal + uint32(i), Data: entry})
	}
	h.Journal += uint32(len(p.Entries))
	if len(parts) > 0 {
		h.Interrupted = 0
	}
	switch {
	case len(p.Questions) > 0:
		h.Status, h.Phase, h.Wake, h.Interrupted = InputRequired, Asking, time.Time{}, 0
		touch(h, now)
		room := maxInline
		for _, q := range p.Questions {
			a := Asked{Key: q.Key, Digest: q.Digest, Epoch: h.Epoch}
			if room -= len(q.Data); room >= 0 {
				a.Inline = append([]byte{}, q.Data...)
			} else {
				room += len(q.Data)
				parts = append(parts, Part{Kind: PartQuestion, Name: q.Key, Epoch: h.Epoch, Data: q.Data})
			}
			h.Asked = append(h.Asked, a)
		}
	case !p.Until.IsZero():
		h.Phase, h.Wake, h.Interrupted = Sleeping, p.Until.UTC().Truncate(time.Millisecond), 0
		if h.Sent = (time.Time{}); c.e.sends() && h.Wake.Sub(now) <= MaxDelay {
			h.Sent = h.Wake // a message comes then; else the sweep does
		}
	default:
		if fruitless {
			h.Interrupted++
		}
		h.Phase = Ready
		if c.e.tell(h, now); p.Stopping {
			h.Sent, h.Wake = time.Time{}, now // this process may be the one that would get the message
		}
	}
	return parts
}
