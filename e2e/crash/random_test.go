package crash

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	tasks     = flag.Int("tasks", 0, "how many calls are made while processes are killed; 0 is what the backend can bear")
	seed      = flag.Uint64("seed", 1, "of when which process is killed")
	processes = flag.Int("processes", 3, "how many processes of each role share the store")
)

// crowd are the clients of a fleet, and what they know.
type crowd struct {
	t     *testing.T
	fleet *fleet

	mu    sync.Mutex
	told  map[string]bool // ids that a client was given
	ended map[string]view
	wrong []string
}

// call calls the tool until a process answers. A call without an answer may have become a
// task all the same, of which no client knows.
func (c *crowd) call(job string) {
	for c.t.Context().Err() == nil {
		id, err := create(c.t.Context(), c.fleet.url(), job)
		switch {
		case err == nil:
			c.mu.Lock()
			c.told[id] = true
			c.mu.Unlock()
			return
		case !errors.Is(err, errGone):
			c.fault("call %s: %v", job, err)
			return
		}
	}
}

// look looks at a task, answers it, and notes its end, which must not change any more. It
// reports whether there is nothing left to do: a process may die before a task is there, of
// which nobody is told.
func (c *crowd) look(id string) (settled bool) {
	c.mu.Lock()
	told := c.told[id] // before anybody was asked: it may become known meanwhile
	c.mu.Unlock()
	v, err := advance(c.t.Context(), c.fleet.url(), id)
	c.mu.Lock()
	before, known := c.ended[id]
	if err == nil && v.ended() {
		c.ended[id] = v
	}
	c.mu.Unlock()
	switch {
	case errors.Is(err, errUnknown) && told: // T-16
		c.fault("task %s is unknown", id)
	case err != nil && !errors.Is(err, errGone) && !errors.Is(err, errUnknown):
		c.fault("task %s: %v", id, err)
	case err == nil && known && (before.Status != v.Status || before.Result == nil || v.Result == nil || fmt.Sprint(*before.Result) != fmt.Sprint(*v.Result)):
		c.fault("task %s ended as %+v, and then as %+v", id, before, v)
	}
	return errors.Is(err, errUnknown) || err == nil && v.ended()
}

func (c *crowd) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// open are the tasks of ids that have not been seen at their end.
func (c *crowd) open(ids []string) (open []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if _, known := c.ended[id]; !known {
			open = append(open, id)
		}
	}
	return open
}

// Processes on one store are killed at random while many tasks are at work in them.
func TestRandomKills(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend, place func(t *testing.T) *place) { killedAtRandom(t, b, place(t)) })
}

func killedAtRandom(t *testing.T, b *backend, p *place) {
	const clients = 16
	calls := b.calls
	if *tasks > 0 {
		calls = *tasks
	}
	f := newFleet(t, p, *processes, point{})
	c := &crowd{t: t, fleet: f, told: map[string]bool{}, ended: map[string]view{}}
	began := time.Now()
	called := make(chan struct{})
	go func() {
		defer close(called)
		tick := time.NewTicker(b.callEvery)
		defer tick.Stop()
		each(clients, calls, func(i int) {
			<-tick.C
			c.call(fmt.Sprint("job ", i))
		})
	}()
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for c.t.Context().Err() == nil {
			last := closed(called)
			ids := c.open(p.ids(t))
			var open atomic.Int32
			each(clients, len(ids), func(i int) {
				if !c.look(ids[i]) {
					open.Add(1)
				}
			})
			if last && open.Load() == 0 {
				return
			}
			<-time.After(b.lookEvery)
		}
	}()

	random := rand.New(rand.NewPCG(*seed, 0))
	kills := 0
	pause := func() time.Duration { return time.Duration(random.Int64N(int64(2 * b.killEvery))) }
	next := time.NewTimer(pause())
	deadline := time.After(4*patience + time.Duration(calls)*b.callEvery + time.Duration(b.kills)*b.killEvery)
	for working := true; working; {
		select {
		case <-looked:
			working = false
		case <-deadline:
			t.Fatalf("not at their end: %q", c.open(p.ids(t)))
		case <-next.C:
			i := random.IntN(len(f.processes))
			if busy := f.busy(t); kills%2 == 1 && len(busy) > 0 {
				i = busy[random.IntN(len(busy))]
			}
			f.kill(t, i, "")
			kills++
			f.replace(t, i)
			if kills < b.kills {
				next.Reset(pause())
			}
		}
	}
	took := time.Since(began)
	ids := p.ids(t)
	each(clients, len(ids), func(i int) { c.look(ids[i]) }) // again, with nobody dying
	for _, wrong := range c.wrong {
		t.Error(wrong)
	}
	n := p.check(t, c.ended)
	if len(c.told) != calls || n.tasks < calls || kills == 0 {
		t.Errorf("%d calls were told of %d tasks, the store has %d; %d kills", calls, len(c.told), n.tasks, kills)
	}
	recoveries := p.recoveries(t)
	if len(recoveries) == 0 {
		t.Fatal("no kill hit a task")
	}
	var table strings.Builder
	table.WriteString(b.name)
	for _, row := range []struct {
		what  string
		value any
	}{
		{"processes", len(f.processes)}, {"killed", kills}, {"calls", calls}, {"tasks", n.tasks}, {"of no client", n.tasks - len(c.told)},
		{"step runs", n.runs}, {"run again", n.again}, {"lost", n.lost}, {"doubled", n.doubled},
		{"recoveries", len(recoveries)}, {"median", recoveries[len(recoveries)/2].Round(time.Second / 10)}, {"longest", recoveries[len(recoveries)-1].Round(time.Second / 10)},
		{"took", took.Round(time.Second / 10)},
	} {
		fmt.Fprintf(&table, "\n%-14s %v", row.what, row.value)
	}
	t.Log(table.String())
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// each runs f for 0 to n-1, some at a time.
func each(atOnce, n int, f func(i int)) {
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			f(i)
		})
	}
	all.Wait()
}
