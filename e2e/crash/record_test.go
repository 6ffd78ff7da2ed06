package crash

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// record is what the processes have logged of a task.
type record struct {
	id       string
	runs     map[string][]string // values by step, in order
	keys     map[string]bool     // idempotency keys
	outcomes int
}

// records reads the log, in the order of creation.
func (p place) records(t *testing.T) (all []*record) {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err) // of whichever goroutine
	}
	byID := map[string]*record{}
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSpace(line), "\t")
		r := byID[words[1]]
		if r == nil {
			r = &record{id: words[1], runs: map[string][]string{}, keys: map[string]bool{}}
			byID[r.id] = r
			all = append(all, r)
		}
		switch words[0] {
		case "step":
			r.runs[words[2]] = append(r.runs[words[2]], words[3])
			r.keys[words[4]] = true
		case "outcome":
			r.outcomes++
		}
	}
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
func (p place) check(t *testing.T, ended map[string]view) (c count) {
	t.Helper()
	store, err := sqlitestore.Open(p.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
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
func (p place) ids(t *testing.T) (ids []string) {
	t.Helper()
	for _, r := range p.records(t) {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return ids
}
