package crash

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// points are where a process is killed, in the order of a task's life.
var points = []string{
	"before create", "after create", "after dispatch", "before claim", "after claim",
	"inside a step", "before record", "after record", "before sleep", "after sleep",
	"before question", "after question", "while it asks", "before update", "after update",
	"before outcome", "after outcome",
}

// patience is how long a task may take, whatever happens to its processes.
const patience = 45 * time.Second

// A process is killed at a point, and another one that knows nothing but the store finishes
// the task.
func TestPoints(t *testing.T) {
	var mu sync.Mutex
	lines := map[string]string{}
	var all sync.WaitGroup // they mostly wait, so all run at once
	for _, point := range points {
		all.Go(func() {
			t.Run(point, func(t *testing.T) {
				began := time.Now()
				c := killedAt(t, point)
				// A step whose result was not recorded runs again, and no other does.
				if again := strings.HasSuffix(point, " step") || point == "before record"; again != (c.again == 1) || c.again > 1 {
					t.Errorf("%d steps ran again", c.again)
				}
				mu.Lock()
				defer mu.Unlock()
				lines[point] = fmt.Sprintf("%-16s %5d %9d %9d %5d %8d %8.1fs", point, c.tasks, c.runs, c.again, c.lost, c.doubled, time.Since(began).Seconds())
			})
		})
	}
	all.Wait()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-16s %5s %9s %9s %5s %8s %9s\n", "killed", "tasks", "step runs", "run again", "lost", "doubled", "took")
	for _, point := range points {
		table.WriteString(lines[point] + "\n")
	}
	t.Log(table.String())
}

func killedAt(t *testing.T, point string) count {
	p := newPlace(t)
	server, alive := p.start(t, point), true
	// The first process works alone until it is dead, so it is the one that comes to the point.
	restart := func() *fixture.Server {
		if !alive {
			t.Fatal("the second process gives no answer")
		}
		_ = server.Kill() // it is dead, or else dies now
		alive = false
		return p.start(t, "")
	}
	var id string
	for id == "" {
		var err error
		if id, err = create(t.Context(), server.URL, point); errors.Is(err, errGone) {
			server = restart()
		} else if err != nil {
			t.Fatal(err)
		}
	}
	ended := map[string]view{}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for done := false; !done; {
		done = true
		for _, id := range p.ids(t) {
			if _, known := ended[id]; known {
				continue
			}
			if point == "while it asks" && alive {
				v, err := send(t.Context(), server.URL, "tasks/get", id, map[string]any{"taskId": id})
				if err != nil {
					t.Fatal(err)
				}
				if done = false; v.Status == "input_required" {
					server = restart()
				}
				continue
			}
			v, err := advance(t.Context(), server.URL, id)
			switch {
			case errors.Is(err, errGone):
				server, done = restart(), false
			case errors.Is(err, errUnknown) && point == "before create":
				// It died before the task was there, and nobody was told of it.
			case err != nil:
				t.Fatal(err)
			case v.ended():
				ended[id] = v
			default:
				done = false
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v the tasks are not at their end", patience)
		}
	}
	for alive && point == "after outcome" { // its end could be read before it was dead
		if _, err := advance(t.Context(), server.URL, id); errors.Is(err, errGone) {
			server = restart()
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the process that was to be killed lives")
		}
	}
	if alive {
		t.Errorf("no process was killed %s", point)
	}
	if again, err := advance(t.Context(), server.URL, id); err != nil || again.Result == nil || ended[id].Result == nil || fmt.Sprint(*again.Result) != fmt.Sprint(*ended[id].Result) {
		t.Errorf("the end was %+v and is %+v, %v", ended[id], again, err)
	}
	return p.check(t, ended)
}
