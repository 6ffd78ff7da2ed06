package task_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// next is a message that shows now, if there is one; else how long the first one takes.
func (q *queue) next() (shows bool, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait = time.Minute
	for i, m := range q.sent {
		left := time.Until(m.shows)
		if left <= 0 {
			q.sent = slices.Delete(q.sent, i, i+1)
			return true, 0
		}
		wait = min(wait, left)
	}
	return false, wait
}

// keep puts a message back.
func (q *queue) keep(v task.Verdict) {
	if !v.Ack {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.sent = append(q.sent, message{id, time.Now().Add(v.After)})
	}
}

// drive has a worker, a client that answers, and a sweep each minute bring the task to its
// end, within a day of virtual time.
func (w *world) drive(p *worker, ops string) {
	w.Helper()
	for swept, end := time.Now(), time.Now().Add(24*time.Hour); ; {
		h, err := w.store.Head(w.Context(), id)
		switch {
		case err != nil:
			w.Fatal(err)
		case h.Phase == task.Done:
			return
		case h.Phase == task.Asking:
			for _, a := range h.Asked {
				// What goes wrong here is tried again: it is a fault that the test has made.
				_ = p.engine.Update(w.Context(), id, owner, map[string][]byte{a.Key: []byte("yes")}, anything)
			}
		case time.Now().After(end):
			w.Fatalf("nothing brings it to its end: %+v", h)
		}
		shows, wait := w.queue.next()
		if shows {
			w.queue.keep(p.work(p.program(ops)))
			continue
		}
		time.Sleep(wait)
		if time.Since(swept) >= time.Minute {
			swept = time.Now()
			_, _ = p.engine.Sweep(w.Context())
		}
	}
}

// Whichever single call of the store goes wrong, lost on the way there or on the way back,
// once or until the engine gives up on it, the task comes to the same end.
func TestAnyCallOfTheStoreMayFail(t *testing.T) {
	const ops = "SAZCS"
	synctest.Test(t, func(t *testing.T) {
		life := func(fault func(call int) (before, after error)) (calls int, end task.Head, journal string) {
			w := &world{T: t, store: memstore.New(nil), queue: &queue{}, effects: map[uint32]int{}}
			p := w.worker()
			p.faulty(func(string) (error, error) {
				calls++
				return fault(calls)
			})
			for range 5 {
				if _, err := p.engine.Create(t.Context(), creation(), unreachable); err == nil {
					break
				}
			}
			w.drive(p, ops)
			for at, want := range ops {
				if n := w.effects[uint32(at)]; want == 'S' && (n < 1 || n > 2) {
					t.Errorf("step %d had its effect %d times", at, n)
				}
			}
			return calls, w.head(), w.entries()
		}
		calls, _, _ := life(func(int) (error, error) { return nil, nil })
		if calls < 20 {
			t.Fatalf("%d calls", calls)
		}
		for n := 1; n <= calls; n++ {
			for _, times := range []int{1, 3, 4} {
				for _, applied := range []bool{true, false} {
					name := fmt.Sprintf("call %d, %d times, applied %t", n, times, applied)
					_, end, journal := life(func(call int) (before, after error) {
						switch {
						case call < n || call >= n+times:
							return nil, nil
						case applied:
							return nil, errLost
						}
						return errLost, nil
					})
					if end.Status != task.Completed || journal != ops {
						t.Errorf("%s: %s with journal %q", name, end.Status, journal)
					}
				}
			}
		}
	})
}
