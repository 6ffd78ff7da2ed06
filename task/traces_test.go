package task_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// The traces that a model of the engine showed while one of its rules was off, W1 to W14.
// Each is played against the engine, which has the rule.

func TestW1TheMessageOfALiveLeaseIsKept(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		dead, next := w.worker(), w.worker()
		dead.work(dead.dies)
		v := next.wantWork(none, false) // its message shows again before the lease is over
		if v.After != 65*time.Second {
			w.Errorf("the message shows after %v", v.After)
		}
		time.Sleep(v.After)
		next.wantWork(next.program("S"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW2PollsHealWhatADeathLeft(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		dead, next := w.worker(), w.worker()
		dead.work(dead.dies)
		w.queue.take()
		for second := range 66 {
			if sent := w.queue.take(); sent != 0 {
				w.Fatalf("a message was sent while the lease ran, at %d s", second)
			}
			if _, err := w.api.Get(w.Context(), id, owner); err != nil {
				w.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if sent := w.queue.take(); sent != 1 {
			w.Errorf("%d messages", sent)
		}
		next.wantWork(next.program("S"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW3DeliveriesAreNoTries(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		holder, others := w.worker(), w.worker()
		holder.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			for range 100 {
				others.wantWork(none, false)
			}
			return holder.program("S")(ctx, c)
		}, true)
		if h := w.want(task.Completed, task.Done); h.Interrupted != 0 || h.Claims != 1 {
			w.Errorf("%+v", h)
		}
	})
}

func TestW4ClaimsAreNoInterruptions(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		for _, key := range []string{"q0", "q1", "q2", "q3", "q4"} {
			p.wantWork(p.program("AAAAA"), true)
			w.want(task.InputRequired, task.Asking)
			w.answer(key)
		}
		p.wantWork(p.program("AAAAA"), true)
		if h := w.want(task.Completed, task.Done); h.Epoch != 6 || h.Interrupted != 0 {
			w.Errorf("%+v", h)
		}
	})
}

func TestW4bProgressSetsTheInterruptionsBack(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		for range 6 { // twice what is allowed in a row
			dead := w.worker()
			dead.work(func(ctx context.Context, c *task.Claim) task.Result {
				if err := c.Record(ctx, []byte("S")); err != nil {
					w.Error(err)
				}
				return dead.dies(ctx, c)
			})
			w.want(task.Working, task.Running)
			time.Sleep(65 * time.Second)
		}
		p := w.worker()
		p.wantWork(p.program("SSSSSS"), true)
		w.want(task.Completed, task.Done)
		if w.entries() != "SSSSSS" {
			w.Errorf("journal %q", w.entries())
		}
	})
}

func TestW5ALateWorkerAppendsNothing(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		late, next := w.worker(), w.worker()
		late.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			late.faulty(func(string) (error, error) { return errDead, nil }) // cut off from the store
			time.Sleep(66 * time.Second)
			late.faulty(nil)
			next.wantWork(next.program("SA"), true)
			before := w.head()
			if err := c.Record(ctx, []byte("late")); !errors.Is(err, task.ErrLost) {
				w.Errorf("record: %v", err)
			}
			if !w.head().Equal(before) {
				w.Errorf("a late worker wrote %+v", w.head())
			}
			return late.program("S")(ctx, c)
		}, false)
		w.want(task.InputRequired, task.Asking)
		if w.entries() != "S" {
			w.Errorf("journal %q", w.entries())
		}
	})
}

func TestW6NoHeartbeatOutlivesItsRun(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		var onTheWay atomic.Int64
		var together atomic.Bool
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			p.faulty(func(method string) (error, error) {
				if method == "Commit" {
					together.Store(together.Load() || onTheWay.Add(1) > 1)
					time.Sleep(2 * time.Second)
					onTheWay.Add(-1)
				}
				return nil, nil
			})
			time.Sleep(21 * time.Second) // the heartbeat of 20 s is on its way
			return task.Result{Park: &task.Park{Questions: []task.Question{{Key: "q0"}}}}
		}, true)
		if h := w.want(task.InputRequired, task.Asking); h.Worker != "" || !h.LeaseUntil.IsZero() {
			w.Errorf("%+v", h)
		}
		parked := w.head()
		time.Sleep(time.Minute)
		if together.Load() || onTheWay.Load() != 0 || !w.head().Equal(parked) {
			w.Errorf("a heartbeat was under way when the run ended: %+v", w.head())
		}
		w.answer("q0")
		p.wantWork(p.program("A"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW7AnEarlyTimerMessageIsKept(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.wantWork(p.program("Z"), true)
		if w.queue.take() != 2 {
			w.Error("no timer message")
		}
		time.Sleep(50 * time.Second)
		if v := p.wantWork(none, false); v.After != 10*time.Second {
			w.Errorf("shows again after %v", v.After)
		}
		time.Sleep(10 * time.Second)
		p.wantWork(p.program("Z"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW8TheSweepFindsAnAnswerWithoutMessage(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.wantWork(p.program("A"), true)
		w.queue.take()
		w.queue.fail(errDead) // the process dies before it sends
		w.answer("q0")
		w.queue.fail(nil)
		time.Sleep(31 * time.Second)
		w.sweep()
		if n := w.queue.take(); n != 1 {
			w.Fatalf("%d messages", n)
		}
		p.wantWork(p.program("A"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW9AFailedMessageIsNoFailedTask(t *testing.T) {
	everywhere(t, func(w *world) {
		w.queue.fail(errLost)
		w.create() // answers the id all the same
		w.want(task.Working, task.Ready)
		w.queue.fail(nil)
		time.Sleep(31 * time.Second)
		w.sweep()
		if n := w.queue.take(); n != 1 {
			w.Errorf("%d messages", n)
		}
	})
}

func TestW10TheSweepFindsALostMessage(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.queue.take()
		w.sweep() // too early
		if n := w.queue.take(); n != 0 {
			w.Errorf("%d messages at once", n)
		}
		time.Sleep(31 * time.Second)
		w.sweep()
		if n := w.queue.take(); n != 1 {
			w.Errorf("%d messages", n)
		}
		p := w.worker()
		p.wantWork(p.program("S"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW11AWorkerThatCannotRenewBeginsNothing(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		paused, next := w.worker(), w.worker()
		paused.work(func(ctx context.Context, c *task.Claim) task.Result {
			paused.faulty(func(string) (error, error) { return errDead, nil })
			time.Sleep(54*time.Second + 999*time.Millisecond)
			if err := c.Begin(); err != nil {
				w.Errorf("within the lease: %v", err)
			}
			time.Sleep(time.Millisecond)
			if err := c.Begin(); !errors.Is(err, task.ErrLost) {
				w.Errorf("in the guard: %v", err)
			}
			if !errors.Is(context.Cause(ctx), task.ErrLost) {
				w.Errorf("the run goes on: %v", context.Cause(ctx))
			}
			time.Sleep(10 * time.Second)
			next.wantWork(next.program("S"), true)
			return paused.program("S")(ctx, c)
		})
		w.wantEffects(1)
		w.want(task.Completed, task.Done)
	})
}

// A message that is sent for a task whose worker seemed dead renews no lease, although it is
// the version of the head that the worker's own heartbeat would have been.
func TestW11AMessageRenewsNoLease(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		slow, next := w.worker(), w.worker()
		slow.work(func(ctx context.Context, c *task.Claim) task.Result {
			time.Sleep(21 * time.Second) // one heartbeat: the lease is over at 80 s
			writes := 0
			slow.faulty(func(method string) (error, error) {
				if method != "Commit" {
					return nil, nil
				}
				switch writes++; writes {
				case 1:
					time.Sleep(46 * time.Second) // the next one takes so long
					return errLost, nil
				case 2:
					return nil, nil
				}
				return errDead, nil
			})
			time.Sleep(64500 * time.Millisecond)
			w.queue.take()
			w.sweep()
			if n := w.queue.take(); n != 1 {
				w.Errorf("%d messages", n)
			}
			time.Sleep(5 * time.Second)
			mayBegin := c.Begin() == nil
			claimed := false
			next.work(func(ctx context.Context, c *task.Claim) task.Result {
				claimed = true
				return next.program("SA")(ctx, c)
			})
			if mayBegin && claimed {
				w.Errorf("two workers may begin something: %+v", w.head())
			}
			return task.Result{Release: "over"}
		})
	})
}

func TestW12ARecordWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	for lost := range 4 {
		everywhere(t, func(w *world) {
			w.create()
			p := w.worker()
			p.atWrite(2, lost, nil, errLost)
			ack := lost < 3 // the engine tries three times
			p.wantWork(p.program("SS"), ack)
			if ack {
				w.want(task.Completed, task.Done)
				w.wantEffects(1, 1)
			} else {
				time.Sleep(66 * time.Second)
				p.wantWork(p.program("SS"), true)
				w.wantEffects(1, 1) // the first was recorded: nobody runs it again
			}
			if w.entries() != "SS" {
				w.Errorf("journal %q", w.entries())
			}
		})
	}
}

// An entry is never taken for the one of which nobody knew.
func TestW12ARecordIsNotTakenForAnother(t *testing.T) {
	for _, applied := range []bool{true, false} {
		everywhere(t, func(w *world) {
			w.create()
			p := w.worker()
			p.work(func(ctx context.Context, c *task.Claim) task.Result {
				if applied {
					p.atWrite(1, 3, nil, errLost)
				} else {
					p.atWrite(1, 3, errLost, nil)
				}
				if err := c.Record(ctx, []byte("a")); !errors.Is(err, errLost) {
					w.Errorf("first: %v", err)
				}
				if err := c.Record(ctx, []byte("b")); !errors.Is(err, task.ErrLost) {
					w.Errorf("second: %v", err)
				}
				return task.Result{Release: "nobody knows"}
			})
			want := ""
			if applied {
				want = "a"
			}
			if w.entries() != want {
				w.Errorf("journal %q", w.entries())
			}
		})
	}
}

func TestW13TheMessageOfAnUnknownEndIsKept(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.queue.take()
		p := w.worker()
		p.atWrite(2, 3, nil, errLost)
		p.wantWork(p.program("Z"), false) // parked, but who knows
		w.want(task.Working, task.Sleeping)
		if n := w.queue.take(); n != 0 {
			w.Fatalf("%d messages", n)
		}
		v := p.wantWork(none, false) // the one that is there is the timer
		time.Sleep(v.After)
		p.wantWork(p.program("Z"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestW14TheMessageOfAnUnknownClaimIsKept(t *testing.T) {
	for lost := 1; lost < 4; lost++ {
		everywhere(t, func(w *world) {
			w.create()
			w.queue.take()
			p := w.worker()
			p.atWrite(1, lost, nil, errLost)
			v := p.work(p.program("S"))
			for shown := 0; !v.Ack; shown++ {
				if shown > 5 {
					w.Fatalf("%+v", w.head())
				}
				time.Sleep(v.After)
				v = p.work(p.program("S"))
			}
			w.want(task.Completed, task.Done)
			w.wantEffects(1)
			if w.entries() != "S" {
				w.Errorf("journal %q", w.entries())
			}
		})
	}
}
