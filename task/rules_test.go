package task_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/thaw-mcp/thaw/task"
)

// The rules of the engine, by their numbers in its design. The traces have the rest.

func TestRule1WhatTheHeadDoesNotHaveIsNotThere(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.work(func(ctx context.Context, c *task.Claim) task.Result {
			next := w.head()
			next.Version++
			next.Message = "another write"
			if err := w.store.Commit(ctx, time.Now(), next); err != nil {
				w.Error(err)
			}
			p.kill() // the entry's part is written, the head is not
			_ = c.Record(ctx, []byte("unseen"))
			return task.Result{Release: "dead"}
		})
		if w.entries() != "" {
			w.Errorf("journal %q", w.entries())
		}
	})
}

func TestRule3AfterThreeDeathsInARowATaskFails(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		for i, wait := range []time.Duration{65 * time.Second, 65*time.Second + 30*time.Second, 65*time.Second + 90*time.Second} {
			dead, other := w.worker(), w.worker()
			dead.work(dead.dies)
			if dead.runs != 1 {
				w.Fatalf("claim %d: %+v", i+1, w.head())
			}
			if h := w.head(); int(h.Interrupted) != i || int(h.Epoch) != i+1 {
				w.Fatalf("claim %d: %+v", i+1, h)
			}
			if v := other.wantWork(none, false); v.After != wait {
				w.Errorf("after death %d others wait %v, want %v", i+1, v.After, wait)
			}
			time.Sleep(wait)
		}
		w.worker().wantWork(none, true)
		w.want(task.Failed, task.Done)
		s, err := w.api.Get(w.Context(), id, owner)
		if err != nil || !strings.Contains(string(s.Outcome), "-32603") {
			w.Errorf("%s, %v", s.Outcome, err)
		}
	})
}

func TestRule3AReleaseCountsLikeADeath(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		for range 3 {
			v := p.wantWork(none, false)
			time.Sleep(v.After)
		}
		p.wantWork(none, true)
		if w.want(task.Failed, task.Done); p.runs != 3 {
			w.Errorf("%d runs", p.runs)
		}
	})
}

// The message is kept until the time of the engine's own clock, whatever the machine's says.
func TestRule3AReleaseWaitsByTheEnginesClock(t *testing.T) {
	everywhere(t, func(w *world) {
		o := w.options()
		o.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		e := task.New(w.store, o)
		if _, err := e.Create(w.Context(), creation(), unreachable); err != nil {
			w.Fatal(err)
		}
		if v := e.Work(w.Context(), id, none); v.Ack || v.After != 65*time.Second {
			w.Errorf("%+v", v)
		}
	})
}

func TestRule4MessagesAreKeptUntilTheyHaveDoneTheirWork(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world, p *worker)
		run    func(w *world, p *worker) task.Run
		ack    bool
	}{
		"absent":       {before: func(*world, *worker) {}, ack: true},
		"a live lease": {before: func(w *world, _ *worker) { w.create(); d := w.worker(); d.work(d.dies) }},
		"not due":      {before: func(w *world, p *worker) { w.create(); p.wantWork(p.program("Z"), true) }},
		"input":        {before: func(w *world, p *worker) { w.create(); p.wantWork(p.program("A"), true) }, ack: true},
		"ended":        {before: func(w *world, p *worker) { w.create(); p.wantWork(p.program(""), true) }, ack: true},
		"expired":      {before: func(w *world, p *worker) { w.create(); time.Sleep(24 * time.Hour) }, ack: true},
		"unreadable": {before: func(w *world, p *worker) {
			w.create()
			p.faulty(func(string) (error, error) { return errLost, nil })
		}},
		"cancelled in mid-run": {before: func(w *world, _ *worker) { w.create() }, ack: true, run: func(w *world, p *worker) task.Run {
			return func(ctx context.Context, c *task.Claim) task.Result {
				if err := w.api.Cancel(ctx, id, owner); err != nil {
					w.Error(err)
				}
				return p.program("")(ctx, c)
			}
		}},
		"continued": {before: func(w *world, _ *worker) { w.create() }, ack: true, run: func(_ *world, p *worker) task.Run { return p.program("C") }},
		"continued, but the next message was not sent": {before: func(w *world, p *worker) { w.create(); w.queue.fail(errLost) }, run: func(_ *world, p *worker) task.Run { return p.program("C") }},
		"asleep, but the timer was not sent":           {before: func(w *world, p *worker) { w.create(); w.queue.fail(errLost) }, run: func(_ *world, p *worker) task.Run { return p.program("Z") }},
		"the end was not written":                      {before: func(w *world, p *worker) { w.create(); p.atWrite(2, 3, errLost, nil) }, run: func(_ *world, p *worker) task.Run { return p.program("") }},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				p := w.worker()
				c.before(w, p)
				run := task.Run(none)
				if c.run != nil {
					run = c.run(w, p)
				}
				p.wantWork(run, c.ack)
			})
		})
	}
}

func TestRule5AHundredPollersSendOneMessage(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.queue.take()
		for sends, wait := range []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second} {
			time.Sleep(wait)
			w.poll(100)
			if n := w.queue.take(); n != 0 {
				w.Errorf("after %d messages and %v another was sent", sends+1, wait)
			}
			time.Sleep(time.Second) // within which a message counts as sent
			w.poll(100)
			if n := w.queue.take(); n != 1 {
				w.Errorf("%d messages, want 1", n)
			}
		}
	})
}

func (w *world) poll(n int) {
	var pollers sync.WaitGroup
	for range n {
		pollers.Go(func() {
			if _, err := w.api.Get(w.Context(), id, owner); err != nil {
				w.Error(err)
			}
		})
	}
	pollers.Wait()
}

// What was healed makes room in what is due, also if its worker is dead.
func TestRule5TheHealedLeaveTheFrontOfTheDue(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		d := w.worker()
		d.work(d.dies)
		time.Sleep(65 * time.Second)
		w.sweep()
		if due, err := w.store.Due(w.Context(), time.Now(), task.Shard(id), 10); err != nil || len(due) != 0 {
			w.Errorf("due: %v, %v", due, err)
		}
		p := w.worker()
		p.wantWork(p.program("S"), true) // and can be claimed all the same
		w.want(task.Completed, task.Done)
	})
}

func TestRule5AllAreKilledAndNobodyPolls(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		for minute := 0; !w.head().Status.Terminal(); minute++ {
			if minute > 60 {
				w.Fatalf("%+v", w.head())
			}
			w.sweep()
			for range w.queue.take() {
				d := w.worker()
				d.work(d.dies)
			}
			time.Sleep(time.Minute)
		}
		w.want(task.Failed, task.Done)
	})
}

func TestRule7OnlyACreateThatFailedIsAnError(t *testing.T) {
	t.Run("its answers are lost", func(t *testing.T) {
		for lost := range 4 {
			everywhere(t, func(w *world) {
				w.lostCreates(lost, nil, errLost)
				w.want(task.Working, task.Ready)
				if n := w.queue.take(); n != 1 {
					w.Errorf("%d messages", n)
				}
			})
		}
	})
	t.Run("it is not written", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.queue.fail(errDead)
			p := w.worker()
			p.faulty(func(method string) (error, error) { return errLost, nil })
			if _, err := p.engine.Create(w.Context(), creation(), unreachable); !errors.Is(err, errLost) {
				w.Errorf("%v", err)
			}
			if _, err := w.store.Head(w.Context(), id); !errors.Is(err, task.ErrNotFound) {
				w.Errorf("%v", err)
			}
		})
	})
	t.Run("again, later", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			p := w.worker()
			p.wantWork(p.program("A"), true)
			time.Sleep(time.Minute)
			h, err := w.api.Create(w.Context(), creation(), unreachable)
			if err != nil || h.Status != task.InputRequired {
				w.Errorf("%+v, %v", h, err)
			}
		})
	})
	t.Run("of another owner", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			c := creation()
			c.Owner[0]++
			if _, err := w.api.Create(w.Context(), c, unreachable); !errors.Is(err, task.ErrExists) {
				w.Errorf("%v", err)
			}
		})
	})
	t.Run("no message can ever be sent", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.queue.fail(fmt.Errorf("no such queue: %w", task.ErrUndeliverable))
			w.create()
			w.want(task.Failed, task.Done)
			if s, err := w.api.Get(w.Context(), id, owner); err != nil || string(s.Outcome) != "unreachable" {
				w.Errorf("%s, %v", s.Outcome, err)
			}
		})
	})
}

// lostCreates creates the task while the first n answers of Create go wrong.
func (w *world) lostCreates(n int, before, after error) {
	w.Helper()
	p := w.worker()
	p.faulty(func(method string) (error, error) {
		if n--; method == "Create" && n >= 0 {
			return before, after
		}
		return nil, nil
	})
	if _, err := p.engine.Create(w.Context(), creation(), unreachable); err != nil {
		w.Errorf("create: %v", err)
	}
}

// forward is t on the wall clock d later by a monotonic clock that stood still, as after
// the suspension of a machine.
func forward(t time.Time, d time.Duration) time.Time {
	const secondOfWall = 1 << 30
	*(*uint64)(unsafe.Pointer(&t)) += uint64(d/time.Second) * secondOfWall
	return t
}

func TestRule9ASuspendedMachineBeginsNothing(t *testing.T) {
	start := time.Now()
	if f := forward(start, time.Minute); f.Sub(start) != 0 || f.Round(0).Sub(start.Round(0)) != time.Minute {
		t.Fatal("the runtime keeps times in another way")
	}
	everywhere(t, func(w *world) {
		var mu sync.Mutex
		suspended := time.Duration(0)
		real := w.options()
		real.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return forward(start, suspended)
		}
		e := task.New(w.store, real)
		if _, err := e.Create(w.Context(), creation(), unreachable); err != nil {
			w.Fatal(err)
		}
		e.Work(w.Context(), id, func(ctx context.Context, c *task.Claim) task.Result {
			if err := c.Begin(); err != nil {
				w.Error(err)
			}
			mu.Lock()
			suspended = 2 * time.Minute
			mu.Unlock()
			if err := c.Begin(); !errors.Is(err, task.ErrLost) {
				w.Errorf("after two minutes: %v", err)
			}
			return task.Result{Release: "over"}
		})
	})
}

// What a run says its client sees within Look, and a run that says nothing new writes nothing.
func TestRule9WhatIsSaidIsSeenSoon(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			began := w.head()
			c.Say("half")
			c.Say("more than half")
			time.Sleep(5*time.Second + time.Millisecond)
			said := w.head()
			if said.Message != "more than half" || !said.Updated.After(began.Updated) || said.Version != began.Version+1 {
				w.Errorf("%+v", said)
			}
			c.Say("more than half")
			time.Sleep(10 * time.Second)
			if h := w.head(); h.Version != said.Version {
				w.Errorf("written %d times more", h.Version-said.Version)
			}
			return p.program("")(ctx, c)
		}, true)
		w.want(task.Completed, task.Done)
	})
}

func TestRule9HeartbeatsKeepAClaim(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p, other := w.worker(), w.worker()
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			updated := w.head().Updated
			for range 30 { // of 20 s
				time.Sleep(20*time.Second + time.Millisecond)
				other.wantWork(none, false)
				if err := c.Begin(); err != nil {
					w.Fatal(err)
				}
			}
			if !w.head().Updated.Equal(updated) { // T-23: nothing that a client sees
				w.Error("a heartbeat moved lastUpdatedAt")
			}
			return p.program("S")(ctx, c)
		}, true)
		w.want(task.Completed, task.Done)
	})
}

// A move of the wake costs twice what the write costs in an index, so a running task moves it about
// once a lease; and it is never due while its worker lives.
func TestRule5ARunningTaskSeldomMovesItsWake(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			const steps = 300 // one each two seconds
			moves, wake := 0, w.head().Wake
			for range steps {
				if err := c.Record(ctx, []byte("S")); err != nil {
					w.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				h := w.head()
				if !h.Wake.Equal(wake) {
					moves, wake = moves+1, h.Wake
				}
				if !h.Wake.After(time.Now()) || h.Wake.After(h.LeaseUntil.Add(6*time.Second)) {
					w.Fatalf("at %v: %+v", time.Now(), h)
				}
			}
			if moves > 20 {
				w.Errorf("the wake moved %d times in ten minutes", moves)
			}
			return p.program("")(ctx, c)
		}, true)
	})
}

func TestRule9ACancellationIsNoticed(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			if err := w.api.Cancel(w.Context(), id, owner); err != nil {
				w.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(5*time.Second + time.Millisecond):
				w.Error("the run goes on")
			}
			if !errors.Is(context.Cause(ctx), task.ErrCancelled) || c.Held().Err() != nil || !c.Cleaning() {
				w.Errorf("%v, %v, cleaning %t", context.Cause(ctx), c.Held().Err(), c.Cleaning())
			}
			return p.program("")(w.Context(), c) // dropped
		}, true)
		w.want(task.Cancelled, task.Done)
	})
}

func TestRule10TwentyContinuationsInARow(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		p := w.worker()
		for range 20 {
			if w.queue.take() != 1 {
				w.Fatalf("no message: %+v", w.head())
			}
			p.wantWork(p.program(strings.Repeat("C", 20)), true)
		}
		p.wantWork(p.program(strings.Repeat("C", 20)), true)
		if h := w.want(task.Completed, task.Done); h.Claims != 21 || h.Interrupted != 0 {
			w.Errorf("%+v", h)
		}
	})
}

func TestRule10AContinuationThatBringsNothingCounts(t *testing.T) {
	for stopping, runs := range map[bool]int{false: 3, true: 30} {
		everywhere(t, func(w *world) {
			w.create()
			p := w.worker()
			for range 30 {
				p.wantWork(func(context.Context, *task.Claim) task.Result {
					return task.Result{Park: &task.Park{Stopping: stopping}}
				}, true)
			}
			if p.runs != runs || w.head().Status.Terminal() == stopping {
				w.Errorf("stopping %t: %d runs, %s", stopping, p.runs, w.head().Status)
			}
		})
	}
}

// A worker that stops may be the one that its own message would reach: what it leaves is due at
// once to whoever looks.
func TestRule10AWorkerThatStopsLeavesItsTaskToOthers(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.queue.take()
		p := w.worker()
		p.wantWork(func(context.Context, *task.Claim) task.Result {
			return task.Result{Park: &task.Park{Stopping: true}}
		}, true)
		if n := w.queue.take(); n != 1 {
			w.Errorf("%d messages", n)
		}
		for range 2 {
			w.sweep()
		}
		if n := w.queue.take(); n != 1 {
			w.Errorf("%d messages from two sweeps", n)
		}
		next := w.worker()
		next.wantWork(next.program("S"), true)
		w.want(task.Completed, task.Done)
	})
}

func TestRule10ATaskIsClaimedSoManyTimesAtMost(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		o := w.options()
		o.Limits.MaxClaims = 5
		e := task.New(w.store, o)
		runs := 0
		for range 10 {
			e.Work(w.Context(), id, func(context.Context, *task.Claim) task.Result {
				runs++
				return task.Result{Park: &task.Park{Entries: [][]byte{[]byte("C")}}}
			})
		}
		if w.want(task.Failed, task.Done); runs != 5 {
			w.Errorf("%d runs", runs)
		}
	})
}

func TestRule11LongSleepsAreTheSweeps(t *testing.T) {
	for d, messages := range map[time.Duration]int{task.MaxDelay: 1, task.MaxDelay + time.Second: 0} {
		everywhere(t, func(w *world) {
			w.create()
			w.queue.take()
			p := w.worker()
			p.wantWork(func(context.Context, *task.Claim) task.Result {
				return task.Result{Park: &task.Park{Until: time.Now().Add(d), Entries: [][]byte{[]byte("Z")}}}
			}, true)
			if n := w.queue.take(); n != messages {
				w.Errorf("a sleep of %v: %d messages", d, n)
			}
			w.sweep()
			if n := w.queue.take(); n != 0 {
				w.Errorf("swept before it is due")
			}
			time.Sleep(d + 5*time.Second) // in which a message that was sent had its chance
			w.sweep()
			if n := w.queue.take(); n != 1 {
				w.Errorf("%d messages from the sweep", n)
			}
			p.wantWork(p.program("Z"), true)
			w.want(task.Completed, task.Done)
		})
	}
}

// A handler that does not end with its run writes nothing more.
func TestRule6AClaimIsOverWithItsRun(t *testing.T) {
	for name, result := range map[string]task.Result{
		"parked":   {Park: &task.Park{Until: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)}},
		"ended":    {Outcome: &task.Outcome{Status: task.Completed}},
		"released": {Release: "no more time"},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				var leaked *task.Claim
				w.worker().work(func(_ context.Context, c *task.Claim) task.Result {
					leaked = c
					return result
				})
				before := w.head()
				if err := leaked.Record(w.Context(), []byte("late")); !errors.Is(err, task.ErrLost) {
					w.Errorf("record: %v", err)
				}
				if leaked.Begin() == nil || !w.head().Equal(before) {
					w.Errorf("%+v", w.head())
				}
			})
		})
	}
}
