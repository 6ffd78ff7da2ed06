package task

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Engine runs durable work over a Store: it creates tasks, has them run once at a time by
// whichever worker claims them, parks them while they wait, and heals what a death left
// behind. It knows neither MCP nor handlers. It is safe for concurrent use and keeps nothing
// between two calls, so any number of processes may have one over the same store.
//
// One rule is behind all others: what is not in the head is not committed. Every write of
// a head is a swap of the version that was read, so of two writers one has to look again.
type Engine struct {
	store      Store
	dispatcher Dispatcher
	local      bool // what is dispatched is not counted as sent
	now        func() time.Time
	logger     *slog.Logger
	limits     Limits
}

// Options of an Engine.
type Options struct {
	// Dispatcher tells workers of tasks; nil tells nobody, and workers find them by Due alone.
	Dispatcher Dispatcher
	// Local says that the Dispatcher reaches this process alone, takes what it has room for, and
	// that its process sweeps often. What it was told then holds nobody off: a task stays due
	// until it is claimed, also for other processes and after a restart.
	Local bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger gets what an operator should know; nil is slog.Default.
	Logger *slog.Logger
	Limits Limits
}

// Limits are the numbers of the engine. A zero field is its default, which is right for
// production; tests shorten them.
type Limits struct {
	Lease          time.Duration // for how long a claim is good without a heartbeat; 60 s
	Heartbeat      time.Duration // how often a worker renews it; a third of Lease
	Guard          time.Duration // of a lease's end: the holder begins nothing, others wait it out; 5 s
	Look           time.Duration // how often a worker looks for a cancellation; 5 s
	Resend         time.Duration // after which a message that had no effect is sent again; 30 s, doubling
	Backoff        time.Duration // between tries of a task whose workers die; 10 s, tripling
	MaxInterrupted uint8         // claims over a dead lease, without progress between; 3
	MaxClaims      uint32        // of one task; 10,000
	Retention      time.Duration // for which a task that ended stays readable at least; 1 h
}

func (l Limits) withDefaults() Limits {
	duration := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	duration(&l.Lease, 60*time.Second)
	duration(&l.Heartbeat, l.Lease/3)
	duration(&l.Guard, 5*time.Second)
	duration(&l.Look, 5*time.Second)
	duration(&l.Resend, 30*time.Second)
	duration(&l.Backoff, 10*time.Second)
	duration(&l.Retention, time.Hour)
	if l.MaxInterrupted == 0 {
		l.MaxInterrupted = 3
	}
	if l.MaxClaims == 0 {
		l.MaxClaims = 10_000
	}
	return l
}

// Dispatcher sends messages to workers. A message is a hint: it names a task and says
// nothing, and may be lost, late, doubled or out of order.
type Dispatcher interface {
	// Dispatch has a worker look at the task after a delay of at most MaxDelay. An
	// error that will be the same whenever it is tried again matches ErrUndeliverable.
	Dispatch(ctx context.Context, id string, after time.Duration) error
}

// MaxDelay is the longest that a message may be delayed; what has to wait longer is found by
// Due.
const MaxDelay = 15 * time.Minute

// ErrUndeliverable says that no message can be sent: access is denied, or there is no such
// queue.
var ErrUndeliverable = errors.New("task: undeliverable")

// New makes an Engine. It does no I/O. o may be nil.
func New(s Store, o *Options) *Engine {
	if o == nil {
		o = &Options{}
	}
	e := &Engine{store: s, dispatcher: o.Dispatcher, local: o.Local, now: o.Now, logger: o.Logger, limits: o.Limits.withDefaults()}
	if e.now == nil {
		e.now = time.Now
	}
	if e.logger == nil {
		e.logger = slog.Default()
	}
	return e
}

// clock is now as a store keeps it.
func (e *Engine) clock() time.Time { return e.now().UTC().Truncate(time.Millisecond) }

// claimable reports whether a worker may claim the task now.
func (e *Engine) claimable(h *Head, now time.Time) bool {
	if expired(h, now) {
		return false
	}
	switch h.Phase {
	case Ready:
		return true
	case Running, Sleeping:
		return !e.due(h).After(now)
	}
	return false
}

// due is when a running or sleeping task may be claimed.
func (e *Engine) due(h *Head) time.Time {
	if h.Phase == Running {
		return e.overdue(h)
	}
	return h.Wake
}

func expired(h *Head, now time.Time) bool { return !h.Expires.IsZero() && !h.Expires.After(now) }

// overdue is when others may take a task from the worker that holds it now. After deaths they
// wait longer, so that an outage does not use up the tries.
func (e *Engine) overdue(h *Head) time.Time {
	wake := h.LeaseUntil.Add(e.limits.Guard)
	if h.Interrupted > 0 {
		backoff := e.limits.Backoff
		for range min(h.Interrupted, 8) {
			backoff *= 3
		}
		wake = wake.Add(backoff)
	}
	return wake
}

// postpone moves the wake of a running task to when it is overdue, but only where the old one would
// come before the next heartbeat, or too late: in an index each move costs as much as the write
// itself, twice. A wake that comes early costs a look.
func (e *Engine) postpone(h *Head, now time.Time) {
	overdue := e.overdue(h)
	if h.Wake.After(overdue) || h.Wake.Before(now.Add(e.limits.Heartbeat+e.limits.Guard)) {
		h.Wake = overdue
	}
}

// resendAfter is how long a message is given to have an effect.
func (e *Engine) resendAfter(sends uint8) time.Duration {
	return e.limits.Resend << min(sends, 10)
}

// touch moves what a client sees as the last update, which strictly grows.
func touch(h *Head, now time.Time) {
	if !now.After(h.Updated) {
		now = h.Updated.Add(time.Millisecond)
	}
	h.Updated = now
}

// commit is Store.Commit that is tried again while nobody knows whether it was applied.
// Repeating an applied write is success by the store's contract.
func (e *Engine) commit(ctx context.Context, next Head, parts ...Part) error {
	const tries = 3
	var err error
	for range tries {
		err = e.store.Commit(ctx, e.clock(), next, parts...)
		if certain(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// certain reports whether err says what became of a write.
func certain(err error) bool {
	var conflict *Conflict
	return err == nil || errors.As(err, &conflict) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrTooLarge)
}

// dispatch sends a message and logs a failure: poll and sweep heal it.
func (e *Engine) dispatch(ctx context.Context, h *Head, after time.Duration) error {
	if e.dispatcher == nil {
		return nil
	}
	err := e.dispatcher.Dispatch(ctx, h.ID, min(after, MaxDelay))
	if err != nil {
		e.logger.LogAttrs(ctx, slog.LevelWarn, "a task's message was not sent", slog.String("task", h.ID), slog.String("error", err.Error()))
	}
	return err
}

// freshName names one claim or one write.
func freshName() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Creation is a task to be.
type Creation struct {
	ID, Tool, Traceparent string
	Revision              uint32
	Owner                 [32]byte
	TTL                   time.Duration // 0: for ever
	Poll                  time.Duration
	Format                uint16
	Call                  []byte   // of PartCall
	Journal               [][]byte // entries that the call has recorded before it became a task
}

// Create stores a task durably and has it dispatched. Only a create that failed is an
// error: once the task is there, whatever the message's fate, it will be found. A task that
// can never be dispatched is failed at once, with the message of unreachable. Creating the
// same task again, after a lost answer, is success.
func (e *Engine) Create(ctx context.Context, c Creation, unreachable Outcome) (Head, error) {
	now := e.clock()
	h, parts := c.record(now)
	e.tell(&h, now)
	found, err := e.create(ctx, h, parts)
	switch {
	case err != nil:
		return Head{}, err
	case found != nil:
		e.heal(ctx, *found)
		return *found, nil
	}
	if err := e.dispatch(ctx, &h, 0); errors.Is(err, ErrUndeliverable) {
		failed, err := e.finish(ctx, h, unreachable)
		if err == nil {
			return failed, nil
		}
	}
	return h, nil
}

// CreateEnded stores a task that has run already, since began, with its outcome. If the id is taken by
// a task of the same owner and tool, that one is what there is.
func (e *Engine) CreateEnded(ctx context.Context, began time.Time, c Creation, o Outcome) (Head, error) {
	h, parts := c.record(began)
	h.Version = 0
	h, outcome := e.ended(h, o)
	found, err := e.create(ctx, h, append(parts, outcome...))
	if err != nil {
		return Head{}, err
	}
	if found != nil {
		return *found, nil
	}
	return h, nil
}

// record is the task as it is stored first.
func (c *Creation) record(now time.Time) (Head, []Part) {
	h := Head{
		ID: c.ID, Tool: c.Tool, Traceparent: c.Traceparent, Format: c.Format, Revision: c.Revision,
		Version: 1, Status: Working, Phase: Ready, Owner: c.Owner, Created: now, Updated: now, Poll: c.Poll,
		Journal: uint32(len(c.Journal)),
	}
	if c.TTL > 0 {
		h.Expires = now.Add(c.TTL)
	}
	parts := []Part{{Kind: PartCall, Data: c.Call}}
	for i, entry := range c.Journal {
		parts = append(parts, Part{Kind: PartEntry, Seq: uint32(i), Data: entry})
	}
	return h, parts
}

// Call is what an owner's task was created with.
func (e *Engine) Call(ctx context.Context, id string, owner [32]byte) ([]byte, error) {
	if _, err := e.owned(ctx, id, owner); err != nil {
		return nil, err
	}
	return callOf(ctx, e.store, id)
}

func callOf(ctx context.Context, s Store, id string) ([]byte, error) {
	parts, err := s.Parts(ctx, id, PartCall, "", 0, 0)
	if err != nil {
		return nil, err
	}
	if len(parts) != 1 {
		return nil, ErrCorrupt
	}
	return parts[0].Data, nil
}

// create stores h. Once nobody knows what became of that, or something has this id, it looks
// whether that is the same owner's task of the same tool: then found is what is there.
func (e *Engine) create(ctx context.Context, h Head, parts []Part) (found *Head, err error) {
	const tries = 3
	for range tries {
		err = e.store.Create(ctx, h, parts...)
		if certain(err) || ctx.Err() != nil {
			break
		}
	}
	if err != nil && (!certain(err) || errors.Is(err, ErrExists)) {
		there, failed := e.store.Head(ctx, h.ID)
		switch {
		case failed != nil:
		case there.Equal(h):
			err = nil
		case there.Owner == h.Owner && there.Tool == h.Tool:
			return &there, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create task: %w", err)
	}
	return nil, nil
}

// Outcome is how a task ends.
type Outcome struct {
	Status  Status // Completed or Failed
	Message string // for the client; cut at 512 bytes
	Data    []byte // the result, or the error
}

const (
	// maxMessage bounds a status message, in bytes.
	maxMessage = 512
	// maxInline bounds what questions and outcome take of a head together, in bytes.
	maxInline = 2048
)

// finish ends a task that nobody holds.
func (e *Engine) finish(ctx context.Context, h Head, o Outcome) (Head, error) {
	next, parts := e.ended(h, o)
	if err := e.commit(ctx, next, parts...); err != nil {
		return Head{}, err
	}
	return next, nil
}

// ended is h with its outcome. A task that ends late stays readable for Retention (T-26).
func (e *Engine) ended(h Head, o Outcome) (Head, []Part) {
	now := e.clock()
	h.Version++
	h.Status, h.Phase = o.Status, Done
	h.Message = cutMessage(o.Message)
	h.Worker, h.LeaseUntil, h.Wake, h.Asked = "", time.Time{}, time.Time{}, nil
	touch(&h, now)
	if !h.Expires.IsZero() && h.Expires.Before(now.Add(e.limits.Retention)) {
		h.Expires = now.Add(e.limits.Retention)
	}
	h.Outcome = &OutcomeRef{Epoch: h.Epoch}
	if len(o.Data) <= maxInline {
		h.Outcome.Inline = append([]byte{}, o.Data...)
		return h, nil
	}
	return h, []Part{{Kind: PartOutcome, Epoch: h.Epoch, Data: o.Data}}
}
