package crash

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// event is a line of what the processes have logged: what one of them has done about a task.
type event struct {
	at       time.Time
	process  string
	what, id string
	more     []string
}

// events reads the log, in its order.
func (p *place) events(t *testing.T) (all []event) {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err) // of whichever goroutine
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		at, err := time.Parse(time.RFC3339Nano, words[0])
		if err != nil {
			t.Error(err)
		}
		all = append(all, event{at, words[1], words[2], words[3], words[4:]})
	}
	return all
}

// record is what was logged of a task.
type record struct {
	id       string
	runs     map[string][]string // values by step, in order
	keys     map[string]bool     // idempotency keys
	outcomes int
}

// records are of all tasks, in the order of their calls.
func (p *place) records(t *testing.T) (all []*record) {
	t.Helper()
	byID := map[string]*record{}
	for _, e := range p.events(t) {
		r := byID[e.id]
		switch {
		case r == nil && e.what == "called":
			r = &record{id: e.id, runs: map[string][]string{}, keys: map[string]bool{}}
			byID[r.id] = r
			all = append(all, r)
		case e.what == "step":
			r.runs[e.more[0]] = append(r.runs[e.more[0]], e.more[1])
			r.keys[e.more[2]] = true
		case e.what == "outcome":
			r.outcomes++
		}
	}
	return all
}

// holders are the processes that work on tasks, by task.
type holders map[string]string

func (h holders) note(e event) {
	switch e.what {
	case "upkeep":
	case "claim", "step", "record":
		h[e.id] = e.process
	case "killed":
		maps.DeleteFunc(h, func(_, process string) bool { return process == e.process })
	default:
		delete(h, e.id)
	}
}

// recoveries are the times from the kill of a process that had a task to what another did about
// it next, the shortest first.
func (p *place) recoveries(t *testing.T) (all []time.Duration) {
	t.Helper()
	held := holders{}
	since := map[string]time.Time{}
	for _, e := range p.events(t) {
		switch began, lay := since[e.id]; {
		case e.what == "killed":
			for id, process := range held {
				if process == e.process {
					since[id] = e.at
				}
			}
			if e.id != "" {
				since[e.id] = e.at
			}
		case lay && e.what != "upkeep":
			all = append(all, e.at.Sub(began))
			delete(since, e.id)
		}
		held.note(e)
	}
	slices.Sort(all)
	return all
}

// steps of the tool, in order. journal is what a task has recorded at its end: these, the
// sleep and the question.
var steps = []string{"one", "two", "three"}

const journal = 5

// count is what became of the tasks of a place.
type count struct {
	tasks, runs, again int // again: runs of a step after its first
	lost, doubled      int
}

// check holds every task of a place to the promise. ended has them as a client saw them.
func (p *place) check(t *testing.T, ended map[string]view) (c count) {
	t.Helper()
	store := p.open(t)
	for _, r := range p.records(t) {
		h, err := store.Head(t.Context(), r.id)
		if errors.Is(err, task.ErrNotFound) && len(r.runs) == 0 {
			continue // the process died before it was created, and nobody was told of it
		}
		c.tasks++
		v := ended[r.id]
		if err != nil || h.Phase != task.Done || h.Status != task.Completed || v.Result == nil || v.Result.IsError {
			c.lost++
			t.Errorf("task %s is lost: phase %v, status %q, seen %+v, %v", r.id, h.Phase, h.Status, v, err)
			continue
		}
		doubled := r.outcomes > 1 || h.Journal != journal || len(r.keys) != len(steps) || len(v.Result.StructuredContent.Steps) != len(steps)
		for i, step := range steps {
			runs := r.runs[step]
			c.runs += len(runs)
			c.again += max(len(runs)-1, 0)
			// A step that was recorded never runs again, so its last run is the one that counts.
			doubled = doubled || len(runs) == 0 || i >= len(v.Result.StructuredContent.Steps) || v.Result.StructuredContent.Steps[i] != runs[len(runs)-1]
		}
		if doubled {
			c.doubled++
			t.Errorf("task %s was not done once: %d outcomes, %d entries, steps ran as %v under %d keys, result %+v",
				r.id, r.outcomes, h.Journal, r.runs, len(r.keys), *v.Result)
		}
	}
	return c
}

// ids of the tasks that the log knows and the store may have.
func (p *place) ids(t *testing.T) (ids []string) {
	t.Helper()
	for _, r := range p.records(t) {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return ids
}
