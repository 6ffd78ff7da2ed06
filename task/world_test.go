package task_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

// store is what a world needs of one.
type store interface {
	task.Store
	task.Sweeper
}

// world is one task in a store, a queue, and whatever looks at them.
type world struct {
	*testing.T
	store store
	queue *queue
	api   *task.Engine         // of the process that clients talk to
	skew  func() time.Duration // of the clock of each next worker; nil: all have one

	mu      sync.Mutex
	effects map[uint32]int // of steps, by their place in the journal
}

const id = "task-1"

var owner = [32]byte{1}

// everywhere runs f on each store, each time at the beginning of a virtual time.
func everywhere(t *testing.T, f func(w *world)) {
	for name, open := range map[string]func(t *testing.T) store{
		"memstore": func(*testing.T) store { return memstore.New(nil) },
		"sqlitestore": func(t *testing.T) store {
			s, err := sqlitestore.Open(filepath.Join(t.TempDir(), "tasks.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{T: t, store: open(t), queue: &queue{}, effects: map[uint32]int{}}
				w.api = task.New(w.store, w.options())
				f(w)
			})
		})
	}
}

func (w *world) options() *task.Options {
	return &task.Options{Dispatcher: w.queue, Logger: slog.New(slog.DiscardHandler)}
}

// create creates the task, which lives for a day.
func (w *world) create() {
	w.Helper()
	if _, err := w.api.Create(w.Context(), creation(), unreachable); err != nil {
		w.Fatal(err)
	}
}

func creation() task.Creation {
	return task.Creation{ID: id, Tool: "tool", Owner: owner, TTL: 24 * time.Hour, Call: []byte("call")}
}

var unreachable = task.Outcome{Status: task.Failed, Message: "unreachable", Data: []byte("unreachable")}

func (w *world) head() task.Head {
	w.Helper()
	h, err := w.store.Head(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

func (w *world) sweep() {
	w.Helper()
	if _, err := w.api.Sweep(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// want is the state of the task by status and phase.
func (w *world) want(status task.Status, phase task.Phase) task.Head {
	w.Helper()
	h := w.head()
	if h.Status != status || h.Phase != phase {
		w.Fatalf("the task is %s in phase %d, want %s in %d: %+v", h.Status, h.Phase, status, phase, h)
	}
	return h
}

func (w *world) wantEffects(counts ...int) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, want := range counts {
		if got := w.effects[uint32(at)]; got != want {
			w.Errorf("step %d had its effect %d times, want %d", at, got, want)
		}
	}
}

func (w *world) answer(keys ...string) {
	w.Helper()
	answers := map[string][]byte{}
	for _, k := range keys {
		answers[k] = []byte("yes")
	}
	if err := w.api.Update(w.Context(), id, owner, answers, anything); err != nil {
		w.Fatal(err)
	}
}

func anything(question, answer []byte) error { return nil }

// queue keeps the messages that were sent, in order, and loses what it is told to.
type queue struct {
	mu   sync.Mutex
	sent []message
	err  error // of Dispatch, which then sends nothing
}

type message struct {
	id    string
	shows time.Time
}

func (q *queue) Dispatch(_ context.Context, id string, after time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	q.sent = append(q.sent, message{id, time.Now().Add(after)})
	return nil
}

// take is how many messages there were; they are gone then.
func (q *queue) take() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.sent)
	q.sent = nil
	return n
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

var (
	errDead = errors.New("the worker is dead")
	errLost = errors.New("the answer is lost")
)

// worker is a process with an engine of its own. Once it is dead nothing that it does
// reaches the store.
type worker struct {
	*world
	engine *task.Engine

	mu    sync.Mutex
	dead  bool
	fault func(method string) (before, after error) // of what it writes and reads while it lives
	runs  int
}

// worker is one that runs whatever it is told.
func (w *world) worker() *worker {
	p := &worker{world: w}
	s := &storetest.Faulty{Store: w.store, Fault: func(method string) (before, after error) {
		p.mu.Lock()
		dead, fault := p.dead, p.fault
		p.mu.Unlock()
		switch {
		case dead:
			return errDead, nil
		case fault != nil:
			return fault(method)
		}
		return nil, nil
	}}
	o := w.options()
	if w.skew != nil {
		ahead := w.skew()
		o.Now = func() time.Time { return time.Now().Add(ahead) }
	}
	p.engine = task.New(s, o)
	return p
}

func (p *worker) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// faulty sets what happens to the calls of the store.
func (p *worker) faulty(fault func(method string) (before, after error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// atWrite has the nth commit, from now and from 1, go wrong, and the next times-1 too.
func (p *worker) atWrite(n, times int, before, after error) {
	var writes atomic.Int64
	p.faulty(func(method string) (error, error) {
		if method != "Commit" {
			return nil, nil
		}
		if seen := int(writes.Add(1)); n <= seen && seen < n+times {
			return before, after
		}
		return nil, nil
	})
}

func (p *worker) work(run task.Run) task.Verdict {
	return p.engine.Work(p.Context(), id, func(ctx context.Context, c *task.Claim) task.Result {
		p.runs++
		return run(ctx, c)
	})
}

// wantWork is work with what has to become of its message.
func (p *worker) wantWork(run task.Run, ack bool) task.Verdict {
	p.Helper()
	v := p.work(run)
	if v.Ack != ack || !ack && v.After <= 0 {
		p.Fatalf("%+v, want acknowledged %t: %+v", v, ack, p.head())
	}
	return v
}

func none(context.Context, *task.Claim) task.Result { return task.Result{Release: "not to be run"} }

// dies is a worker's last run.
func (p *worker) dies(context.Context, *task.Claim) task.Result {
	p.kill()
	return task.Result{Release: "dead"}
}

// program is a handler: S a step, A a question, Z a sleep of a minute, C a continuation
// that has recorded something, D the death of the worker after the effect of a step. It ends
// in a result.
func (p *worker) program(ops string) task.Run {
	return func(ctx context.Context, c *task.Claim) task.Result {
		stopped := func(err error) task.Result { return task.Result{Release: err.Error()} }
		journal, err := c.Journal(ctx)
		if err != nil {
			return stopped(err)
		}
		for at := uint32(len(journal)); int(at) < len(ops); at++ {
			entry := []byte{ops[at]}
			switch ops[at] {
			case 'S', 'D':
				if err := c.Begin(); err != nil {
					return stopped(err)
				}
				p.effect(at)
				if ops[at] == 'D' && c.Head().Epoch == 1 {
					return p.dies(ctx, c)
				}
				if err := c.Record(ctx, entry); err != nil {
					return stopped(err)
				}
			case 'A':
				answers, err := c.Answers(ctx)
				if err != nil {
					return stopped(err)
				}
				key := fmt.Sprint("q", at)
				if answers[key] == nil {
					return task.Result{Park: &task.Park{Questions: []task.Question{{Key: key, Data: []byte("sure?")}}}}
				}
				if err := c.Record(ctx, entry); err != nil {
					return stopped(err)
				}
			case 'Z':
				return task.Result{Park: &task.Park{Until: time.Now().Add(time.Minute), Entries: [][]byte{entry}}}
			case 'C':
				return task.Result{Park: &task.Park{Entries: [][]byte{entry}}}
			}
		}
		return task.Result{Outcome: &task.Outcome{Status: task.Completed, Data: []byte("done")}}
	}
}

// effect is a step's. One that is recorded is never begun again.
func (w *world) effect(at uint32) {
	if h := w.head(); h.Journal > at {
		w.Errorf("step %d is begun, but recorded: the journal has %d", at, h.Journal)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[at]++
}

// entries is the committed journal.
func (w *world) entries() string {
	w.Helper()
	h := w.head()
	parts, err := w.store.Parts(w.Context(), id, task.PartEntry, "", 0, h.Journal)
	if err != nil {
		w.Fatal(err)
	}
	var b strings.Builder
	for _, p := range parts {
		b.Write(p.Data)
	}
	return b.String()
}
