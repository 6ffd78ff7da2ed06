package task_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// spec is a store that holds every write of a head to what a task may become.
type spec struct {
	*memstore.Store
	t  *testing.T
	mu sync.Mutex
}

func (s *spec) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, failed := s.Store.Head(ctx, next.ID)
	err := s.Store.Commit(ctx, now, next, parts...)
	if err == nil && failed == nil && before.Version == next.Version-1 {
		if wrong := wrongMove(before, next.Kept()); wrong != "" {
			s.t.Errorf("%s:\n%+v\n%+v", wrong, before, next)
		}
	}
	return err
}

// maxSkew is how far a clock may be from the right time: two of them differ by less than both
// guards of a lease together.
const maxSkew = 5 * time.Second

// wrongMove says what is wrong with a write of b over a, by the default limits.
func wrongMove(a, b task.Head) string {
	claims := b.Epoch == a.Epoch+1 && b.Claims == a.Claims+1 && b.Phase == task.Running && b.Worker != "" && b.Worker != a.Worker
	held := a.Phase == task.Running && a.Epoch == b.Epoch
	now := time.Now()
	switch {
	case a.Phase == task.Done:
		return "what is done was written"
	case a.Status.Terminal() && (a.Status != b.Status || b.Outcome != nil || !a.Updated.Equal(b.Updated)):
		return "a terminal status changed, or what a client sees of it (T-18)"
	case a.Status != b.Status && b.Status == task.Working && a.Phase != task.Asking:
		return "it works again without having asked"
	case b.Epoch != a.Epoch && !claims:
		return "a new epoch without a claim"
	case claims && a.Phase == task.Asking:
		return "a task that waits for its client was claimed"
	case claims && a.Phase == task.Running && now.Before(a.LeaseUntil.Add(5*time.Second-maxSkew)):
		return "it was taken from a live lease"
	case claims && a.Phase == task.Sleeping && now.Before(a.Wake.Add(-maxSkew)):
		return "it was claimed in its sleep"
	case a.Journal != b.Journal && (!held || b.Journal < a.Journal):
		return "the journal changed in nobody's hands"
	case b.Status == task.Completed && !held:
		return "it was completed in nobody's hands"
	case b.Phase == task.Running && (b.Worker == "" || b.LeaseUntil.IsZero() || b.Wake.IsZero()),
		b.Phase != task.Running && (b.Worker != "" || !b.LeaseUntil.IsZero()):
		return "lease and phase differ"
	case (b.Phase == task.Asking || b.Phase == task.Done) != b.Wake.IsZero():
		return "somebody looks, or nobody does"
	case (b.Status == task.InputRequired) != (b.Phase == task.Asking), (len(b.Asked) > 0) != (b.Phase == task.Asking):
		return "status, phase and questions differ"
	case b.Phase == task.Done && !b.Status.Terminal(), b.Status.Terminal() && b.Phase != task.Done && b.Status != task.Cancelled:
		return "done and terminal differ"
	case a.Status != b.Status != b.Updated.After(a.Updated) && len(a.Asked) == len(b.Asked):
		return "lastUpdatedAt does not go with what a client sees (T-23)"
	case b.Expires.Before(a.Expires), b.Interrupted > 3:
		return "it expires earlier, or was interrupted too often"
	}
	return ""
}

// chaos is what goes wrong at random, as long as it lasts.
type chaos struct {
	*world
	mu     sync.Mutex
	random *rand.Rand
	over   bool
	ops    string
	deaths int // of workers, and writes of which nobody knew
	rarely int // how seldom it is: 1 is often
	deadly bool
	depth  int // of what happens within a call of the store
}

func (c *chaos) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func (c *chaos) once(in int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over && c.random.IntN(in) == 0
}

func (c *chaos) died() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaths++
}

// fault is what happens to a call of p's: its process dies before or after, its request or
// answer is lost, or something else happens first.
func (c *chaos) fault(p *worker) func(method string) (before, after error) {
	return func(string) (before, after error) {
		kills := 20 * c.rarely
		if c.deadly {
			kills = 4
		}
		switch {
		case c.once(kills):
			p.kill()
			c.died()
			if c.once(2) {
				return errDead, nil
			}
			return nil, errDead
		case c.once(8 * c.rarely):
			c.died()
			return errLost, nil
		case c.once(8 * c.rarely):
			c.died()
			return nil, errLost
		case c.once(12):
			c.between()
		}
		return nil, nil
	}
}

// between happens between two calls of somebody else's. It takes no time.
func (c *chaos) between() {
	c.mu.Lock()
	deep := c.depth > 1
	c.depth++
	c.mu.Unlock()
	if !deep {
		c.anything(false)
	}
	c.mu.Lock()
	c.depth--
	c.mu.Unlock()
}

// anything is something that a client, a sweep or another worker does.
func (c *chaos) anything(takesTime bool) {
	p := c.world.worker()
	p.faulty(c.fault(p))
	switch c.n(10) {
	case 0, 1:
		_, _ = p.engine.Get(c.Context(), id, owner)
	case 2, 3, 4:
		_ = p.engine.Update(c.Context(), id, owner, map[string][]byte{fmt.Sprint("q", c.n(len(c.ops))): []byte("yes"), "q1": []byte("yes")}, anything)
	case 5:
		if c.once(12) {
			_ = p.engine.Cancel(c.Context(), id, owner)
		}
	case 6:
		_, _ = p.engine.Sweep(c.Context())
	default:
		c.message(p, takesTime)
	}
}

// message has p look at the task, as a message to it says, perhaps one that nobody sent.
func (c *chaos) message(p *worker, takesTime bool) {
	epoch := uint32(0)
	v := p.work(func(ctx context.Context, claim *task.Claim) task.Result {
		epoch = claim.Head().Epoch
		if takesTime {
			for range c.n(4) {
				time.Sleep(time.Duration(c.n(30_000)) * time.Millisecond)
				if c.once(8) { // cut off for a while
					p.faulty(func(string) (error, error) { return errLost, nil })
					c.died()
					time.Sleep(time.Duration(c.n(100)) * time.Second)
					p.faulty(c.fault(p))
				}
			}
		}
		return p.guarded(c.ops)(ctx, claim)
	})
	if h, err := c.store.Head(c.Context(), id); v.Ack && err == nil && epoch > 0 && h.Epoch == epoch && h.Phase == task.Running {
		c.Errorf("a message is gone whose run has not ended in a write: %+v", h)
	}
	c.queue.keep(v)
}

// guarded is program, of which each effect is had by who holds the task.
func (p *worker) guarded(ops string) task.Run {
	return func(ctx context.Context, c *task.Claim) task.Result {
		if c.Begin() == nil {
			if h := p.head(); h.Epoch != c.Head().Epoch {
				p.Errorf("the worker of epoch %d may begin something in %d", c.Head().Epoch, h.Epoch)
			}
		}
		return p.program(ops)(ctx, c)
	}
}

// TestRandomLives has random things happen to tasks: workers that die or are cut off at any
// call of the store, clocks that differ, lost requests and answers, lost, doubled and invented
// messages, clients that poll, answer and cancel. Every write is held to spec, and once it is over sweep and
// messages bring the task to its end. THAW_SEED runs one seed alone.
func TestRandomLives(t *testing.T) {
	first, seeds := uint64(0), uint64(300)
	if s := os.Getenv("THAW_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, seeds = n, 1
	}
	ends := map[task.Status]int{}
	for seed := first; seed < first+seeds; seed++ {
		synctest.Test(t, func(t *testing.T) { ends[randomLife(t, seed)]++ })
		if t.Failed() {
			t.Fatalf("THAW_SEED=%d shows it", seed)
		}
	}
	t.Logf("ends: %v", ends)
	for _, s := range []task.Status{task.Completed, task.Failed, task.Cancelled} {
		if seeds > 1 && ends[s] == 0 {
			t.Errorf("no task was %s", s)
		}
	}
}

func randomLife(t *testing.T, seed uint64) task.Status {
	programs := []string{"SSS", "SAS", "SAZCS", "CCS", "ZAS", "SASAS"}
	w := &world{T: t, store: &spec{Store: memstore.New(nil), t: t}, queue: &queue{}, effects: map[uint32]int{}}
	c := &chaos{world: w, random: rand.New(rand.NewPCG(seed, 1)), ops: programs[seed%uint64(len(programs))], rarely: 1 + int(seed/7%4), deadly: seed%10 == 9}
	most := int(maxSkew / time.Millisecond)
	w.skew = func() time.Duration { return time.Duration(c.n(2*most)-most) * time.Millisecond }
	creator := w.worker()
	creator.faulty(c.fault(creator))
	for {
		_, err := creator.engine.Create(t.Context(), creation(), unreachable)
		if err == nil {
			break
		}
		if _, failed := w.store.Head(t.Context(), id); errors.Is(err, errDead) && failed != nil {
			creator = w.worker()
			creator.faulty(c.fault(creator))
		} else if failed == nil {
			break // the client was told nothing, the task runs
		}
	}
	var actors sync.WaitGroup
	for range 3 {
		actors.Go(func() {
			for range 6 {
				if shows, _ := w.queue.next(); shows && !c.once(10) {
					p := w.worker()
					p.faulty(c.fault(p))
					c.message(p, true)
				}
				c.anything(true)
				time.Sleep(time.Duration(c.n(40_000)) * time.Millisecond)
			}
		})
	}
	actors.Wait()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	p := w.worker()
	w.drive(p, c.ops)
	h := w.head()
	switch h.Status {
	case task.Completed:
		if w.entries() != c.ops {
			t.Errorf("journal %q, want %q", w.entries(), c.ops)
		}
	case task.Failed:
		if c.deaths < 3 {
			t.Errorf("it failed after %d deaths: %+v", c.deaths, h)
		}
	}
	return h.Status
}
