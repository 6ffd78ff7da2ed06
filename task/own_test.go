package task_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// meddled is a store on which the nth commit is applied, then somebody else writes the
// head, and then the answer is lost.
type meddled struct {
	store
	w *world
	n int
}

func (m *meddled) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	err := m.store.Commit(ctx, now, next, parts...)
	if m.n--; m.n == 0 && err == nil {
		other := m.w.head()
		other.Version++
		other.Sends++ // as who sends a message does
		if err := m.store.Commit(ctx, now, other); err != nil {
			m.w.Errorf("the other write: %v", err)
		}
		return errLost
	}
	return err
}

// After a conflict the engine finds that its own write is in, although it is not the last.
func TestRule6OwnWritesAreFoundBelowOthers(t *testing.T) {
	for name, c := range map[string]struct {
		commit int
		ops    string
		phase  task.Phase
		sent   int
	}{
		"claim":    {1, "S", task.Done, 0},
		"entry":    {2, "SS", task.Done, 0},
		"question": {2, "A", task.Asking, 0},
		"sleep":    {2, "Z", task.Sleeping, 1},
		"continue": {2, "C", task.Ready, 1},
		"outcome":  {2, "", task.Done, 0},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				w.queue.take()
				p := w.worker()
				p.engine = task.New(&meddled{w.store, w, c.commit}, w.options())
				p.wantWork(p.program(c.ops), true)
				h := w.head()
				if h.Phase != c.phase || h.Claims != 1 || h.Interrupted != 0 {
					w.Errorf("%+v", h)
				}
				if n := w.queue.take(); n != c.sent {
					w.Errorf("%d messages, want %d", n, c.sent)
				}
				if c.phase == task.Done && w.entries() != c.ops {
					w.Errorf("journal %q, want %q", w.entries(), c.ops)
				}
				for at := range c.ops {
					if c.ops[at] == 'S' {
						w.wantEffects(1)
					}
				}
			})
		})
	}
	t.Run("answer", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			p := w.worker()
			p.wantWork(p.program("A"), true)
			e := task.New(&meddled{w.store, w, 1}, w.options())
			if err := e.Update(w.Context(), id, owner, map[string][]byte{"q0": []byte("yes")}, anything); err != nil {
				w.Error(err)
			}
			p.wantWork(p.program("A"), true)
			w.want(task.Completed, task.Done)
		})
	})
	t.Run("cancellation", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			e := task.New(&meddled{w.store, w, 1}, w.options())
			if err := e.Cancel(w.Context(), id, owner); err != nil {
				w.Error(err)
			}
			w.want(task.Cancelled, task.Done)
		})
	})
}

// A create whose answer is lost, and which somebody has claimed before it is tried again.
func TestRule6ACreatedTaskIsFoundBelowOthers(t *testing.T) {
	everywhere(t, func(w *world) {
		e := task.New(&created{w.store, w}, w.options())
		if _, err := e.Create(w.Context(), creation(), unreachable); err != nil {
			w.Errorf("the client is told of an error, and the task runs: %v", err)
		}
		w.want(task.InputRequired, task.Asking)
	})
}

// created is a store whose first create is applied and worked on, and its answer is lost.
type created struct {
	store
	w *world
}

func (c *created) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	err := c.store.Create(ctx, h, parts...)
	if err == nil {
		p := c.w.worker()
		p.wantWork(p.program("A"), true)
		return errLost
	}
	if !errors.Is(err, task.ErrExists) {
		c.w.Errorf("created again: %v", err)
	}
	return err
}
