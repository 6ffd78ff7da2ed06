package task

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw/internal/call"
)

// Run is what a worker does with a task that it holds. It returns what became of it; the
// claim is not to be used after that.
type Run func(ctx context.Context, c *Claim) Result

// Result is how a run ended: exactly one of Outcome, Park and Release is set.
type Result struct {
	Outcome *Outcome // the task has ended
	Park    *Park    // it waits
	// Release gives the task up as interrupted: this worker cannot bring it further. It counts
	// like the worker's death, and the reason is for the log.
	Release string
	// Last is how the task ends if it is given up for what this run was, which is a Release or a
	// Park without progress; nil leaves that to whoever claims it next.
	Last *Outcome
}

// Park is what a task waits for: answers, a time, or only another worker.
type Park struct {
	Questions []Question
	Until     time.Time // zero, without questions: go on at once, elsewhere
	Entries   [][]byte  // of the journal, that belong to the wait
	Stopping  bool      // the worker stops, which is no fault of the task
}

// Question is a request to the client, as the client gets it.
type Question struct {
	Key    string // on the wire, unique over the task's life (T-29)
	Digest [16]byte
	Data   []byte
}

// Claim is a task in the hands of a worker. Its methods are safe for concurrent use. They
// fail with ErrLost once the task is somebody else's: the run's ctx has ended then too, with that
// cause. When its client cancels the task the ctx ends with ErrCancelled, and the claim stays, so
// that the run can clean up.
type Claim struct {
	e      *Engine
	id     string
	held   context.Context
	end    context.CancelCauseFunc // of held, and so of the run's ctx
	cancel context.CancelCauseFunc // of the run's ctx
	began  uint32                  // length of the journal when it was claimed
	late   bool                    // it was cancelled before it was claimed

	cancelled atomic.Pointer[time.Time] // when the task was; nil: it is not

	mu      sync.Mutex
	head    Head
	valid   time.Time // until when this worker may begin something, by its own clock
	message string    // to be shown with the next write
	lost    error
}

var (
	// ErrLost says that a claim is no longer its worker's.
	ErrLost = errors.New("task: the claim is lost")
	// ErrCancelled says that the client has cancelled the task.
	ErrCancelled = call.ErrCancelled
)

// Head is the task as the claim last wrote or read it.
func (c *Claim) Head() Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Cleaning reports whether the task is cancelled, and what is left of this run is for cleaning
// up: steps run and are recorded, the outcome is dropped.
func (c *Claim) Cleaning() bool { return c.cancelled.Load() != nil }

// Cancelled is when the client cancelled the task; zero if it has not. It does not wait for a
// write that is under way.
func (c *Claim) Cancelled() time.Time {
	if at := c.cancelled.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Held ends when the claim is lost or the worker stops. Unlike the run's ctx it goes on when the
// client cancels the task.
func (c *Claim) Held() context.Context { return c.held }

// Call is what the task was created with.
func (c *Claim) Call(ctx context.Context) ([]byte, error) { return callOf(ctx, c.e.store, c.id) }

// Journal is what the task has recorded: its entries in order.
func (c *Claim) Journal(ctx context.Context) ([][]byte, error) {
	h := c.Head()
	parts, err := c.e.store.Parts(ctx, c.id, PartEntry, "", 0, h.Journal)
	if err != nil {
		return nil, err
	}
	if len(parts) != int(h.Journal) {
		return nil, ErrCorrupt
	}
	entries := make([][]byte, len(parts))
	for i, p := range parts {
		entries[i] = p.Data
	}
	return entries, nil
}

// Answers are what the client has said, by wire key.
func (c *Claim) Answers(ctx context.Context) (map[string][]byte, error) {
	parts, err := c.e.store.Parts(ctx, c.id, PartAnswer, "", 0, 0)
	if err != nil {
		return nil, err
	}
	answers := make(map[string][]byte, len(parts))
	for _, p := range parts {
		answers[p.Name] = p.Data
	}
	return answers, nil
}

// Begin reports whether the worker may begin something: it holds the task and will for a
// while. It says nothing of what was begun before.
func (c *Claim) Begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return c.lost
	}
	// By the wall clock too: the monotonic one stands still while a machine is suspended.
	if now := c.e.now(); !now.Before(c.valid) || !now.Round(0).Before(c.valid.Round(0)) {
		return c.lose(ErrLost)
	}
	return nil
}

// Record commits an entry of the journal. When it returns nil the entry is there whatever
// happens. When nobody knows whether it is, the claim is lost: a later entry would take the
// same place.
func (c *Claim) Record(ctx context.Context, entry []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil && c.lost == nil {
		return err // nothing was written
	}
	at := c.head.Journal
	err := c.swap(ctx, func(h *Head) []Part {
		h.Journal = at + 1
		h.Interrupted, h.Sends = 0, 0
		return []Part{{Kind: PartEntry, Epoch: h.Epoch, Seq: at, Data: entry}}
	}, func(now *Head) bool { return c.mine(now) && now.Journal > at })
	if !certain(err) && c.lost == nil {
		_ = c.lose(ErrLost)
	}
	return err
}

// Say has the client see message with the next write of the head, which comes within Limits.Look.
func (c *Claim) Say(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.message = cutMessage(strings.ToValidUTF8(message, "\uFFFD"))
}

func cutMessage(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len("…")
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + "…"
}

// unsaid reports whether the client has not seen what was said last.
func (c *Claim) unsaid() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.message != "" && c.message != c.head.Message && c.head.Status == Working
}

// mine reports whether now is a head that this claim holds.
func (c *Claim) mine(now *Head) bool { return now.Epoch == c.head.Epoch && now.Worker == c.head.Worker }

// swap writes the head that change makes of the present one, with the lease renewed. After
// a conflict it looks again, and applied tells whether its own write is what it finds. c.mu is
// held.
func (c *Claim) swap(ctx context.Context, change func(h *Head) []Part, applied func(now *Head) bool) error {
	for {
		if c.lost != nil {
			return c.lost
		}
		next := c.head
		next.Asked = slices.Clone(c.head.Asked)
		next.Version++
		now := c.e.clock()
		parts := change(&next)
		c.renew(&next, now)
		sent := c.e.now()
		err := c.e.commit(ctx, next, parts...)
		var conflict *Conflict
		switch {
		case err == nil:
			c.took(next, sent)
			return nil
		case errors.Is(err, ErrNotFound):
			return c.lose(ErrLost) // expired or removed
		case !errors.As(err, &conflict):
			return err // nobody knows; the lease runs on
		}
		found := conflict.Now
		if applied(&found) {
			c.see(found)
			if c.mine(&found) {
				c.took(found, sent)
			}
			return nil
		}
		if err := c.judge(&found); err != nil {
			return c.lose(err)
		}
		c.see(found)
	}
}

// see notes what another has written, which may be that the client has cancelled the task.
func (c *Claim) see(found Head) {
	if found.Status == Cancelled && c.head.Status != Cancelled {
		c.cancelled.Store(&found.Updated) // before anybody can ask why the ctx has ended
		c.cancel(ErrCancelled)
	}
	c.head = found
}

// renew extends the lease of a head that stays claimed.
func (c *Claim) renew(next *Head, now time.Time) {
	if next.Worker == "" {
		return
	}
	next.LeaseUntil = now.Add(c.e.limits.Lease)
	c.e.postpone(next, now)
	if c.message != next.Message && c.message != "" && next.Status == Working {
		next.Message = c.message
		touch(next, now)
	}
}

// took notes a head that is this claim's. The lease counts from when the write was sent, and
// is never longer than what the head says.
func (c *Claim) took(h Head, sent time.Time) {
	c.head = h
	left := c.e.limits.Lease
	if h.Worker != "" {
		left = min(left, h.LeaseUntil.Sub(sent))
	}
	c.valid = sent.Add(left - c.e.limits.Guard)
}

// judge reports why a head is not this claim's any more, or nil.
func (c *Claim) judge(found *Head) error {
	switch {
	case c.mine(found) && found.Phase == Running:
		return nil
	case found.Status == Cancelled && c.head.Status != Cancelled:
		return ErrCancelled
	}
	return ErrLost
}

// lose ends the run; the first reason stays.
func (c *Claim) lose(why error) error {
	if c.lost == nil {
		c.lost = why
		c.end(why)
	}
	return c.lost
}

// keepAlive renews the lease and looks for a cancellation until ctx ends. Each renewal is a
// full swap, so that one that arrives late changes nothing.
func (c *Claim) keepAlive(ctx context.Context) {
	look := time.NewTicker(c.e.limits.Look)
	defer look.Stop()
	beat := time.NewTicker(c.e.limits.Heartbeat)
	defer beat.Stop()
	write := func() {
		c.mu.Lock()
		// After a conflict it is written anew: what won may be somebody's message, which renews nothing.
		err := c.swap(ctx, func(*Head) []Part { return nil }, func(*Head) bool { return false })
		c.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			c.e.logger.LogAttrs(ctx, slog.LevelWarn, "a task's lease was not renewed", slog.String("task", c.id), slog.String("error", err.Error()))
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			write()
		case <-look.C:
			if c.unsaid() {
				write()
			} else {
				c.look(ctx)
			}
		}
		if c.Begin() != nil {
			return
		}
	}
}

func (c *Claim) look(ctx context.Context) {
	found, err := c.e.store.Head(ctx, c.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, ErrNotFound):
		_ = c.lose(ErrLost)
	case err == nil && found.Version > c.head.Version:
		if why := c.judge(&found); why != nil {
			_ = c.lose(why)
		} else {
			c.see(found)
		}
	}
}
