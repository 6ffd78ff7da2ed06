package task_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

func TestRule14Cancel(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(w *world)
		cleanUp bool
	}{
		"not begun": {before: func(*world) {}},
		"parked":    {before: func(w *world) { w.worker().wantWork(asks("a"), true) }, cleanUp: true},
		"asleep":    {before: func(w *world) { p := w.worker(); p.wantWork(p.program("Z"), true) }, cleanUp: true},
		"answered":  {before: func(w *world) { w.worker().wantWork(asks("a"), true); w.answer("a") }, cleanUp: true},
		"continued": {before: func(w *world) { p := w.worker(); p.wantWork(p.program("C"), true) }, cleanUp: true},
		"its worker died": {before: func(w *world) {
			p := w.worker()
			p.work(p.dies)
			time.Sleep(65 * time.Second)
		}, cleanUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				c.before(w)
				w.queue.take()
				before := w.head()
				for range 2 { // T-36
					if err := w.api.Cancel(w.Context(), id, owner); err != nil {
						w.Fatal(err)
					}
				}
				if !c.cleanUp {
					w.want(task.Cancelled, task.Done)
					if n := w.queue.take(); n != 0 {
						w.Errorf("%d messages", n)
					}
					w.worker().wantWork(none, true)
					return
				}
				h := w.want(task.Cancelled, task.Ready)
				if n := w.queue.take(); n != 1 || !h.Updated.After(before.Updated) {
					w.Errorf("%d messages, updated %v", n, h.Updated)
				}
				p := w.worker()
				p.wantWork(func(ctx context.Context, claim *task.Claim) task.Result {
					if !claim.Cleaning() {
						w.Error("it does not know that it cleans up")
					}
					if err := claim.Record(ctx, []byte("S")); err != nil {
						w.Error(err)
					}
					return task.Result{Outcome: &task.Outcome{Status: task.Completed, Data: []byte("dropped")}}
				}, true)
				after := w.want(task.Cancelled, task.Done)
				if after.Outcome != nil || after.Journal != before.Journal+1 || !after.Updated.Equal(h.Updated) {
					w.Errorf("%+v", after)
				}
				w.worker().wantWork(none, true)
			})
		})
	}
}

// A run in whose midst the task is cancelled cleans up where it is, under its lease.
func TestRule14ARunThatIsCancelledCleansUp(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.queue.take()
		p := w.worker()
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			if err := w.api.Cancel(w.Context(), id, owner); err != nil {
				w.Error(err)
			}
			updated := w.want(task.Cancelled, task.Running).Updated
			if err := c.Record(w.Context(), []byte("S")); err != nil { // which is how it learns
				w.Error(err)
			}
			if !errors.Is(context.Cause(ctx), task.ErrCancelled) || !c.Cleaning() {
				w.Errorf("%v, cleaning %t", context.Cause(ctx), c.Cleaning())
			}
			c.Say("nobody sees this")
			time.Sleep(3 * time.Minute) // heartbeats go on
			if err := errors.Join(c.Begin(), c.Record(w.Context(), []byte("S"))); err != nil {
				w.Error(err)
			}
			if h := w.head(); !h.Updated.Equal(updated) || h.Message != "" { // T-18
				w.Errorf("%+v", h)
			}
			return p.program("")(w.Context(), c)
		}, true)
		if h := w.want(task.Cancelled, task.Done); h.Journal != 2 || h.Outcome != nil || h.Claims != 1 || w.queue.take() != 0 {
			w.Errorf("%+v", h)
		}
	})
}

// What a run ends in that is cancelled in its midst, or that only cleans up.
func TestRule14HowACleanUpGoesOn(t *testing.T) {
	asked := task.Park{Questions: []task.Question{{Key: "a", Data: []byte("sure?")}}}
	sleeps := task.Park{Until: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC), Entries: [][]byte{[]byte("Z")}}
	left := task.Park{Until: time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC), Stopping: true}
	for name, c := range map[string]struct {
		late        bool // it is the last run
		result      task.Result
		phase       task.Phase
		interrupted uint8
		messages    int
	}{
		"an end":                         {false, task.Result{Outcome: &task.Outcome{Status: task.Completed}}, task.Done, 0, 0},
		"a question":                     {false, task.Result{Park: &asked}, task.Ready, 0, 1},
		"a sleep":                        {false, task.Result{Park: &sleeps}, task.Ready, 0, 1},
		"a stop":                         {false, task.Result{Park: &task.Park{Stopping: true}}, task.Ready, 0, 1},
		"no time":                        {false, task.Result{Park: &task.Park{}}, task.Ready, 1, 1},
		"the last run, an end":           {true, task.Result{Outcome: &task.Outcome{Status: task.Failed}}, task.Done, 0, 0},
		"the last run, a question":       {true, task.Result{Park: &asked}, task.Done, 0, 0},
		"the last run, a stop":           {true, task.Result{Park: &task.Park{Stopping: true}}, task.Ready, 0, 1},
		"the last run, no time":          {true, task.Result{Park: &task.Park{}}, task.Ready, 1, 1},
		"the last run, left to another":  {true, task.Result{Park: &left}, task.Sleeping, 0, 1},
		"left to another, and cancelled": {false, task.Result{Park: &left}, task.Sleeping, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				if c.late {
					p := w.worker()
					p.wantWork(p.program("C"), true)
				}
				cancel := func() {
					if err := w.api.Cancel(w.Context(), id, owner); err != nil {
						w.Error(err)
					}
				}
				if c.late {
					cancel()
				}
				w.worker().wantWork(func(context.Context, *task.Claim) task.Result {
					cancel()
					w.queue.take()
					return c.result
				}, true)
				if h := w.want(task.Cancelled, c.phase); h.Interrupted != c.interrupted || len(h.Asked) > 0 {
					w.Errorf("%+v", h)
				}
				if n := w.queue.take(); n != c.messages {
					w.Errorf("%d messages", n)
				}
				if c.phase == task.Done {
					return
				}
				time.Sleep(time.Minute)
				w.worker().wantWork(func(_ context.Context, c *task.Claim) task.Result {
					if !c.Cleaning() {
						w.Error("it does not know that it cleans up")
					}
					return task.Result{Outcome: &task.Outcome{Status: task.Completed}}
				}, true)
				w.want(task.Cancelled, task.Done)
			})
		})
	}
}

// A worker that dies in its clean-up is followed by another, as it would be without.
func TestRule14AWorkerThatDiesLeavesTheCleanUp(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.work(func(ctx context.Context, c *task.Claim) task.Result {
			if err := w.api.Cancel(w.Context(), id, owner); err != nil {
				w.Error(err)
			}
			return p.dies(ctx, c)
		})
		w.want(task.Cancelled, task.Running)
		w.worker().wantWork(none, false)
		time.Sleep(65 * time.Second)
		w.queue.take()
		w.sweep()
		if n := w.queue.take(); n != 1 {
			w.Errorf("%d messages", n)
		}
		w.worker().wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			if !c.Cleaning() || ctx.Err() != nil {
				w.Errorf("cleaning %t, %v", c.Cleaning(), ctx.Err())
			}
			return task.Result{Outcome: &task.Outcome{Status: task.Completed}}
		}, true)
		w.want(task.Cancelled, task.Done)
	})
}

// A clean-up whose workers die is tried again, and in the end only ends.
func TestRule14ACleanUpMayDieToo(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.worker().wantWork(asks("a"), true)
		if err := w.api.Cancel(w.Context(), id, owner); err != nil {
			w.Fatal(err)
		}
		for runs := 0; w.head().Phase != task.Done; runs++ {
			if runs > 3 {
				w.Fatalf("%+v", w.head())
			}
			d := w.worker()
			d.work(d.dies)
			time.Sleep(3 * time.Minute)
		}
		if h := w.want(task.Cancelled, task.Done); h.Outcome != nil {
			w.Errorf("%+v", h)
		}
	})
}

// Of an end and a cancellation one wins, whichever comes first.
func TestRule14CancelAgainstComplete(t *testing.T) {
	everywhere(t, func(w *world) { // the end wins
		w.create()
		p, c := w.worker(), w.worker()
		c.faulty(func(method string) (error, error) {
			if method == "Commit" { // has read a task that has not ended
				c.faulty(nil)
				p.wantWork(p.program("S"), true)
			}
			return nil, nil
		})
		if err := c.engine.Cancel(w.Context(), id, owner); err != nil {
			w.Error(err)
		}
		w.want(task.Completed, task.Done)
	})
	everywhere(t, func(w *world) { // the cancellation wins
		w.create()
		p := w.worker()
		writes := 0
		p.faulty(func(method string) (error, error) {
			if method == "Commit" {
				if writes++; writes == 2 {
					if err := w.api.Cancel(w.Context(), id, owner); err != nil {
						w.Error(err)
					}
				}
			}
			return nil, nil
		})
		p.wantWork(p.program(""), true)
		if h := w.want(task.Cancelled, task.Done); h.Outcome != nil {
			w.Errorf("%+v", h)
		}
	})
}

// A cancellation that comes between a claim and its answer, which is lost, is one that came before
// it: the run knows.
func TestRule14CancelBelowALostClaim(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.faulty(func(method string) (error, error) {
			if method != "Commit" {
				return nil, nil
			}
			p.faulty(func(method string) (error, error) {
				if method == "Commit" { // the claim is tried again
					p.faulty(nil)
					if err := w.api.Cancel(w.Context(), id, owner); err != nil {
						w.Error(err)
					}
				}
				return nil, nil
			})
			return nil, errors.New("the answer is lost")
		})
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			if !c.Cleaning() || c.Cancelled().IsZero() {
				w.Error("it does not know that it is cancelled")
			}
			return p.program("S")(ctx, c)
		}, true)
		if h := w.want(task.Cancelled, task.Done); h.Claims != 1 {
			w.Errorf("%+v", h)
		}
	})
}
