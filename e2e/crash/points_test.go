package crash

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// point is where a process is killed. It is in the life of a process that answers clients, or
// of one that works, or, without a role, all that there are are killed.
type point struct{ name, role string }

func (p point) isFor(role string) bool { return p.role != "" && (p.role == role || role == roleAll) }

var whileItAsks = point{"while it asks", ""}

// points are in the order of a task's life.
var points = []point{
	{"before create", roleAPI}, {"after create", roleAPI}, {"after dispatch", roleAPI}, {"before claim", roleWorker}, {"after claim", roleWorker},
	{"inside a step", roleWorker}, {"before record", roleWorker}, {"after record", roleWorker}, {"before sleep", roleWorker}, {"after sleep", roleWorker},
	{"before question", roleWorker}, {"after question", roleWorker}, whileItAsks, {"before update", roleAPI}, {"after update", roleAPI},
	{"before outcome", roleWorker}, {"after outcome", roleWorker},
}

// patience is how long a task may take, whatever happens to its processes.
const patience = 45 * time.Second

// A process is killed at a point, and another one that knows nothing but the store finishes
// the task.
func TestPoints(t *testing.T) {
	onEach(t, func(t *testing.T, b *backend, place func(t *testing.T) *place) {
		var mu sync.Mutex
		lines := map[point]string{}
		each(b.atOnce, len(points), func(i int) { // they mostly wait
			at := points[i]
			t.Run(at.name, func(t *testing.T) {
				began := time.Now()
				p := place(t)
				c := killedAt(t, p, at, b.lookEvery)
				// A step whose result was not recorded runs again, and no other does.
				if again := at.name == "inside a step" || at.name == "before record"; again != (c.again == 1) || c.again > 1 {
					t.Errorf("%d steps ran again", c.again)
				}
				recovery := "-" // nothing was left to do, or its client called anew
				if r := p.recoveries(t); len(r) > 0 {
					recovery = fmt.Sprintf("%.1fs", r[0].Seconds())
				}
				mu.Lock()
				defer mu.Unlock()
				lines[at] = fmt.Sprintf("%-16s %5d %9d %9d %5d %8d %8s %8.1fs", at.name, c.tasks, c.runs, c.again, c.lost, c.doubled, recovery, time.Since(began).Seconds())
			})
		})
		var table strings.Builder
		fmt.Fprintf(&table, "%s\n%-16s %5s %9s %9s %5s %8s %8s %9s\n", b.name, "killed", "tasks", "step runs", "run again", "lost", "doubled", "recovery", "took")
		for _, at := range points {
			table.WriteString(lines[at] + "\n")
		}
		t.Log(table.String())
	})
}

func killedAt(t *testing.T, p *place, at point, lookEvery time.Duration) count {
	// The first processes are alone until one is dead, so it is the one that comes to the point.
	f, alive := newFleet(t, p, 1, at), true
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	deadline := time.After(patience)
	wait := func() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v the tasks are not at their end; was a process killed: %t", patience, !alive)
		}
		for _, i := range f.dead() {
			if !alive {
				t.Fatal("a second process died")
			}
			f.replace(t, i)
			alive = false
		}
	}
	var id string
	for id == "" {
		var err error
		if id, err = create(t.Context(), f.url(), at.name); err != nil && !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		wait()
	}
	ended := map[string]view{}
	for open := true; open || alive; wait() {
		open = false
		for _, id := range p.ids(t) {
			if _, known := ended[id]; known {
				continue
			}
			look := advance
			if at == whileItAsks && alive {
				look = get
			}
			v, err := look(t.Context(), f.url(), id)
			switch {
			case errors.Is(err, errUnknown) && at.name == "before create":
				// It died before the task was there, and nobody was told of it.
			case err != nil && !errors.Is(err, errGone):
				t.Fatal(err)
			case err == nil && v.ended():
				ended[id] = v
			default:
				open = true
			}
			if at == whileItAsks && alive && v.Status == "input_required" {
				for i := range f.processes {
					f.kill(t, i, id)
					f.replace(t, i)
				}
				alive = false
			}
		}
	}
	if again, err := get(t.Context(), f.url(), id); err != nil || again.Result == nil || ended[id].Result == nil || fmt.Sprint(*again.Result) != fmt.Sprint(*ended[id].Result) {
		t.Errorf("the end was %+v and is %+v, %v", ended[id], again, err)
	}
	return p.check(t, ended)
}
