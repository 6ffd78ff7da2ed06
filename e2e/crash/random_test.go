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

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

var (
	jobs      = flag.Int("tasks", 400, "how many calls are made while processes are killed")
	seed      = flag.Uint64("seed", 1, "of when which process is killed")
	processes = flag.Int("processes", 3, "how many processes share the store")
)

// fleet is the processes that live now; one that is killed is replaced.
type fleet struct {
	mu      sync.Mutex
	servers []*fixture.Server
}

// url is that of some process, which may be dying.
func (f *fleet) url() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers[rand.IntN(len(f.servers))].URL
}

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
	v, err := advance(c.t.Context(), c.fleet.url(), id)
	c.mu.Lock()
	told := c.told[id]
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

const (
	callEvery = 25 * time.Millisecond
	// lookEvery is how often clients look at their tasks.
	lookEvery = 100 * time.Millisecond
)

// Processes on one store are killed at random while hundreds of tasks are at work in them.
func TestRandomKills(t *testing.T) {
	const clients = 16
	p, f := newPlace(t), &fleet{}
	for range *processes {
		f.servers = append(f.servers, p.start(t, ""))
	}
	c := &crowd{t: t, fleet: f, told: map[string]bool{}, ended: map[string]view{}}
	began := time.Now()
	called := make(chan struct{})
	go func() {
		defer close(called)
		tick := time.NewTicker(callEvery)
		defer tick.Stop()
		each(clients, *jobs, func(i int) {
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
			<-time.After(lookEvery)
		}
	}()

	random := rand.New(rand.NewPCG(*seed, 0))
	kills := 0
	pause := func() time.Duration { return time.Duration(20+random.IntN(400)) * time.Millisecond }
	next := time.NewTimer(pause())
	deadline := time.After(30*time.Second + time.Duration(*jobs)*100*time.Millisecond)
	for working := true; working; {
		select {
		case <-looked:
			working = false
		case <-deadline:
			t.Fatalf("not at their end: %q", c.open(p.ids(t)))
		case <-next.C:
			i := random.IntN(len(f.servers))
			if err := f.servers[i].Kill(); err != nil {
				t.Fatal(err)
			}
			kills++
			fresh := p.start(t, "")
			f.mu.Lock()
			f.servers[i] = fresh
			f.mu.Unlock()
			next.Reset(pause())
		}
	}
	took := time.Since(began)
	ids := p.ids(t)
	each(clients, len(ids), func(i int) { c.look(ids[i]) }) // again, with nobody dying
	for _, wrong := range c.wrong {
		t.Error(wrong)
	}
	n := p.check(t, c.ended)
	if len(c.told) != *jobs || n.tasks < *jobs || kills == 0 {
		t.Errorf("%d calls were told of %d tasks, the store has %d; %d kills", *jobs, len(c.told), n.tasks, kills)
	}
	var table strings.Builder
	for _, row := range []struct {
		what  string
		value any
	}{
		{"processes", *processes}, {"killed", kills}, {"calls", *jobs}, {"tasks", n.tasks}, {"of no client", n.tasks - len(c.told)},
		{"step runs", n.runs}, {"run again", n.again}, {"lost", n.lost}, {"doubled", n.doubled}, {"took", took.Round(time.Second / 10)},
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
