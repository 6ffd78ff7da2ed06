package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// What the client of a task can do. A task that is not the owner's, one that has expired and
// one that never was are the same: ErrNotFound.

// Snapshot is a task as its client may see it.
type Snapshot struct {
	Head      Head
	Questions []Question // outstanding
	Outcome   []byte     // of a task that has ended; nil for one that was cancelled
}

// Get reads a task. It heals one that should be worked on and is not.
func (e *Engine) Get(ctx context.Context, id string, owner [32]byte) (Snapshot, error) {
	h, err := e.owned(ctx, id, owner)
	if err != nil {
		return Snapshot{}, err
	}
	e.heal(ctx, h)
	return e.snapshot(ctx, h)
}

func (e *Engine) snapshot(ctx context.Context, h Head) (Snapshot, error) {
	s := Snapshot{Head: h}
	if h.Status == InputRequired {
		for _, a := range h.Asked {
			data, err := e.question(ctx, &h, a)
			if err != nil {
				return Snapshot{}, err
			}
			s.Questions = append(s.Questions, Question{Key: a.Key, Digest: a.Digest, Data: data})
		}
	}
	if h.Outcome == nil || h.Status == Cancelled {
		return s, nil
	}
	if s.Outcome = h.Outcome.Inline; s.Outcome == nil {
		parts, err := e.store.Parts(ctx, h.ID, PartOutcome, "", h.Outcome.Epoch, 0)
		if err != nil {
			return Snapshot{}, err
		}
		if len(parts) != 1 {
			return Snapshot{}, ErrCorrupt
		}
		s.Outcome = parts[0].Data
	}
	return s, nil
}

func (e *Engine) question(ctx context.Context, h *Head, a Asked) ([]byte, error) {
	if a.Inline != nil {
		return a.Inline, nil
	}
	parts, err := e.store.Parts(ctx, h.ID, PartQuestion, a.Key, a.Epoch, 0)
	if err != nil {
		return nil, err
	}
	if len(parts) != 1 {
		return nil, ErrCorrupt
	}
	return parts[0].Data, nil
}

// owned is the head of an owner's task.
func (e *Engine) owned(ctx context.Context, id string, owner [32]byte) (Head, error) {
	h, err := e.store.Head(ctx, id)
	if err != nil {
		return Head{}, err
	}
	if now := e.clock(); h.Owner != owner || expired(&h, now) {
		return Head{}, ErrNotFound
	}
	return h, nil
}

// InvalidAnswer is an answer that cannot be one to its question; nothing of its request was
// written.
type InvalidAnswer struct {
	Key string
	Err error
}

func (e *InvalidAnswer) Error() string { return fmt.Sprintf("answer to %q: %v", e.Key, e.Err) }

// Unwrap is what is wrong with it.
func (e *InvalidAnswer) Unwrap() error { return e.Err }

// Update brings answers, by wire key. Those to keys that are not outstanding are ignored,
// unread; judge says what is wrong with one that is. When the last is there the task goes on.
func (e *Engine) Update(ctx context.Context, id string, owner [32]byte, answers map[string][]byte, judge func(question, answer []byte) error) error {
	for {
		h, err := e.owned(ctx, id, owner)
		if err != nil {
			return err
		}
		next, parts, err := e.answered(ctx, h, answers, judge)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			e.heal(ctx, h)
			return nil
		}
		err = e.commit(ctx, next, parts...)
		var conflict *Conflict
		switch {
		case errors.As(err, &conflict):
			continue // a cancellation, or another answer: judged again
		case err != nil:
			return err
		}
		if next.Phase == Ready {
			_ = e.dispatch(ctx, &next, 0) // the answer is there; poll and sweep heal the rest
		}
		return nil
	}
}

// answered is h with these answers; no parts if none of them counts.
func (e *Engine) answered(ctx context.Context, h Head, answers map[string][]byte, judge func(question, answer []byte) error) (next Head, parts []Part, err error) {
	next = h
	next.Asked = nil
	if h.Phase == Asking && h.Status == InputRequired {
		for _, a := range h.Asked {
			answer, there := answers[a.Key]
			if !there {
				next.Asked = append(next.Asked, a)
				continue
			}
			question, err := e.question(ctx, &h, a)
			if err != nil {
				return Head{}, nil, err
			}
			if err := judge(question, answer); err != nil {
				return Head{}, nil, &InvalidAnswer{a.Key, err}
			}
			parts = append(parts, Part{Kind: PartAnswer, Name: a.Key, Data: answer})
		}
	}
	if len(parts) == 0 {
		return h, nil, nil
	}
	now := e.clock()
	next.Version++
	touch(&next, now)
	if len(next.Asked) == 0 {
		next.Status, next.Phase, next.Sends = Working, Ready, 0
		e.tell(&next, now)
	}
	return next, parts, nil
}

// Cancel cancels a task, unless it has ended. One that has begun and is in nobody's hands
// gets a last run to clean up; one that runs learns of it by itself and cleans up where it is.
func (e *Engine) Cancel(ctx context.Context, id string, owner [32]byte) error {
	for {
		h, err := e.owned(ctx, id, owner)
		if err != nil {
			return err
		}
		if h.Status.Terminal() {
			e.heal(ctx, h) // of a clean-up run
			return nil
		}
		next := e.cancelled(h)
		err = e.commit(ctx, next)
		var conflict *Conflict
		switch {
		case errors.As(err, &conflict):
			continue
		case err != nil:
			return err
		}
		if next.Phase == Ready {
			_ = e.dispatch(ctx, &next, 0)
		}
		return nil
	}
}

func (e *Engine) cancelled(h Head) Head {
	now := e.clock()
	next := h
	next.Version++
	next.Status = Cancelled
	next.Asked, next.Sends = nil, 0
	touch(&next, now)
	if !next.Expires.IsZero() && next.Expires.Before(now.Add(e.limits.Retention)) {
		next.Expires = now.Add(e.limits.Retention)
	}
	switch {
	case h.Phase == Running && !e.claimable(&h, now):
		// Its worker keeps it, and if that is dead somebody takes over from it, as from any other.
	case h.Claims > 0:
		next.Phase, next.Worker, next.LeaseUntil = Ready, "", time.Time{}
		e.tell(&next, now)
	default: // a task that has not begun has nothing to clean up
		next.Phase, next.Wake = Done, time.Time{}
	}
	return next
}

// sends reports whether messages are sent that may have an effect elsewhere and later.
func (e *Engine) sends() bool { return e.dispatcher != nil && !e.local }

// tell notes in a head that is Ready that its message is sent now. Where nobody is told, or
// only this process, the task is due at once.
func (e *Engine) tell(h *Head, now time.Time) {
	h.Sent, h.Wake = now, now.Add(e.resendAfter(0))
	if !e.sends() {
		h.Sent, h.Wake = time.Time{}, now
	}
}

// awaited reports whether the message that was sent of a claimable task may still have its
// effect. That of a sleeping one, if there is one, was to come when it wakes.
func (e *Engine) awaited(h *Head, now time.Time) bool {
	if h.Phase == Sleeping {
		return !h.Sent.IsZero() && h.Wake.Add(e.limits.Guard).After(now)
	}
	return !h.Sent.Add(e.resendAfter(h.Sends)).Before(now)
}

// heal sends the message of a task anew that could be worked on and is not. The head is
// swapped first, and only who wins that sends, so however many look, the queue gets one.
func (e *Engine) heal(ctx context.Context, h Head) {
	now := e.clock()
	if e.dispatcher == nil || !e.claimable(&h, now) || e.awaited(&h, now) {
		return
	}
	if e.local {
		_ = e.dispatch(ctx, &h, 0)
		return
	}
	next := h
	next.Asked = slices.Clone(h.Asked)
	next.Version++
	if next.Sends < 255 {
		next.Sends++
	}
	// A store takes equal heads for one write. Those who look in the same millisecond must not
	// write equal ones, or each of them would send.
	next.Sent = now.Add(milliseconds(maxLate))
	// It leaves the front of what is due, so that those behind it have their turn.
	next.Wake = next.Sent.Add(e.resendAfter(next.Sends)).Add(milliseconds(e.limits.Resend))
	if h.Phase == Sleeping {
		next.Phase = Ready
	}
	if err := e.commit(ctx, next); err != nil {
		var conflict *Conflict
		if !errors.As(err, &conflict) && !errors.Is(err, ErrNotFound) {
			e.logger.LogAttrs(ctx, slog.LevelWarn, "a task was not healed", slog.String("task", h.ID), slog.String("error", err.Error()))
		}
		return
	}
	_ = e.dispatch(ctx, &next, 0)
}

// maxLate is by how much a message may be taken to have been sent later than it was.
const maxLate = time.Second

// milliseconds is a random number of them, less than d.
func milliseconds(d time.Duration) time.Duration {
	return rand.N(max(d/time.Millisecond, 1)) * time.Millisecond
}

// Sweep looks at what is due, in every shard, and heals it. It returns how many tasks it
// looked at; an error is the first of the store's, after everything was tried.
func (e *Engine) Sweep(ctx context.Context) (looked int, err error) {
	due, ok := e.store.(Sweeper)
	if !ok {
		return 0, errors.New("task: this store lists nothing that is due")
	}
	const most = 100 // of a shard, at once
	for shard := range Shards {
		ids, failed := due.Due(ctx, e.clock(), shard, most)
		if failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		for _, id := range ids {
			h, failed := e.store.Head(ctx, id) // the index may lag
			if failed != nil {
				if !errors.Is(failed, ErrNotFound) {
					err = cmp.Or(err, failed)
				}
				continue
			}
			looked++
			e.heal(ctx, h)
		}
	}
	return looked, err
}
