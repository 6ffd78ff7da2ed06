package thawtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// world is what outlives the processes of a call: the clock, the store and the queue.
type world struct {
	store *memstore.Store

	mu       sync.Mutex
	at       time.Time
	since    time.Time       // at was then, by the machine's clock; zero: the clock stands still
	message  time.Time       // when a worker is told of the task; zero: never
	held     task.Head       // the task as a worker held it last
	writes   []string        // what workers wrote
	killAt   int             // the process dies after which write, from 1; 0: never
	recorded map[string]bool // steps that are recorded
}

func newWorld(start time.Time) *world {
	w := &world{at: start, since: time.Now(), recorded: map[string]bool{}}
	if start.IsZero() {
		w.at = w.since.Round(0)
	}
	w.store = memstore.New(&memstore.Options{Now: w.now})
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nowLocked()
}

func (w *world) nowLocked() time.Time {
	if w.since.IsZero() {
		return w.at
	}
	return w.at.Add(time.Since(w.since))
}

// stop has the clock move only by hand.
func (w *world) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.since = w.nowLocked(), time.Time{}
}

// forward moves the clock to t, never back.
func (w *world) forward(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ahead := t.Sub(w.nowLocked()); ahead > 0 {
		w.at = w.at.Add(ahead)
	}
}

// next is when somebody looks at the task next: because of a message, or because the head
// says so and a sweep finds it. Zero is never.
func (w *world) next(tb testing.TB, id string) time.Time {
	tb.Helper()
	h, err := w.store.Head(tb.Context(), id)
	if errors.Is(err, task.ErrNotFound) {
		return time.Time{}
	}
	if err != nil {
		tb.Fatalf("thawtest: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.message
	if next.IsZero() {
		next = h.Wake
	}
	if !h.Expires.IsZero() && !h.Expires.After(w.nowLocked()) {
		return time.Time{}
	}
	return next
}

// tell has a worker be told of the task at a time; zero: never.
func (w *world) tell(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.message = at
}

// version counts the writes of the task; 0 if there is none.
func (w *world) version(tb testing.TB, id string) uint64 {
	tb.Helper()
	h, err := w.store.Head(tb.Context(), id)
	if err != nil && !errors.Is(err, task.ErrNotFound) {
		tb.Fatalf("thawtest: %v", err)
	}
	return h.Version
}

// undo takes back what the last run of a worker ended in: the worker died before it wrote it
// down. What it had recorded stays.
func (w *world) undo(tb testing.TB, id string) {
	tb.Helper()
	h, err := w.store.Head(tb.Context(), id)
	if err != nil {
		tb.Fatalf("thawtest: the task cannot lose its worker any more: %v", err)
	}
	w.mu.Lock()
	held := w.held
	w.message = w.nowLocked() // the dead worker's shows again
	w.mu.Unlock()
	if h.Status == task.Cancelled && held.Status != task.Cancelled {
		return // the worker's end was not the last word
	}
	held.Version = h.Version + 1
	if err := w.store.Commit(tb.Context(), w.now(), held); err != nil {
		tb.Fatalf("thawtest: the task cannot lose its worker any more: %v", err)
	}
}

// process is one of the call's processes: its view of the world, which ends with its death.
// It is the store and task.Dispatcher of its handler, and watches its steps.
type process struct {
	*world
	task.Store
	task.Sweeper
	probe  *probe
	tb     testing.TB // of a worker; nil in one that answers a request
	dead   atomic.Bool
	before map[string]bool // steps that were recorded when a worker began
}

// process is one that answers a request.
func (c *Call) process() *process {
	return &process{world: c.world, Store: c.world.store, Sweeper: c.world.store, probe: c.probe}
}

// worker is one that works on tasks.
func (c *Call) worker() *process {
	p := c.process()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tb, p.before = c.tb, maps.Clone(p.recorded)
	return p
}

// Did implements journal.Probe.
func (p *process) Did(key string) error {
	if p.before[key] {
		p.tb.Errorf("thawtest: step %q was recorded and has run again", key)
	}
	if p.probe.did(key) {
		p.dead.Store(true)
	}
	if p.dead.Load() {
		return errKilled
	}
	return nil
}

// Private implements task.Private: a test is told why its tool failed.
func (p *process) Private() {}

// Create implements task.Store.
func (p *process) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	err := p.Store.Create(ctx, h, parts...)
	if err == nil {
		p.note(parts)
	}
	return err
}

// Commit implements task.Store.
func (p *process) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	if p.dead.Load() {
		return errKilled
	}
	err := p.Store.Commit(ctx, now, next, parts...)
	if err != nil || p.tb == nil {
		return err
	}
	what := fmt.Sprintf("a run ended in %s", next.Status)
	if next.Phase == task.Running {
		what = "a worker took the task"
	}
	if steps := p.note(parts); len(steps) > 0 {
		what = fmt.Sprintf("step %q was recorded", steps[0])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if next.Phase == task.Running {
		p.held = next.Kept()
	}
	p.writes = append(p.writes, what)
	if len(p.writes) == p.killAt {
		p.dead.Store(true)
		return errKilled
	}
	return nil
}

// note keeps which steps were recorded.
func (p *process) note(parts []task.Part) (steps []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range parts {
		if parts[i].Kind != task.PartEntry {
			continue
		}
		l, err := journal.ParseLogged(parts[i].Data)
		if err == nil && !l.Asked && (l.Kind == journal.Value || l.Kind == journal.Failure) {
			p.recorded[l.Key] = true
			steps = append(steps, l.Key)
		}
	}
	return steps
}

// Dispatch implements task.Dispatcher.
func (p *process) Dispatch(_ context.Context, _ string, after time.Duration) error {
	if p.dead.Load() {
		return errKilled
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.message = p.nowLocked().Add(after)
	return nil
}

// A state may be used as often as the test likes: Crash sends one again whose first use is
// taken to be lost.

// Claim implements task.Store.
func (*process) Claim(context.Context, task.Use) (bool, task.Used, error) {
	return true, task.Used{}, nil
}

// Finish implements task.Store.
func (*process) Finish(context.Context, task.Use, []byte) error { return nil }

// Release implements task.Store.
func (*process) Release(context.Context, task.Use) error { return nil }
