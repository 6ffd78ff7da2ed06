package crash

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fleet is the processes of a place that live now; one that is killed is replaced.
type fleet struct {
	place     *place
	mu        sync.Mutex // for clients: the test alone changes them
	processes []*process
}

// newFleet starts so many processes for each role. Those that come to the point die there.
func newFleet(t *testing.T, p *place, perRole int, at point) *fleet {
	t.Helper()
	f := &fleet{place: p}
	for _, role := range p.roles {
		for range perRole {
			deadly := ""
			if at.isFor(role) {
				deadly = at.name
			}
			f.processes = append(f.processes, p.start(t, role, deadly))
		}
	}
	return f
}

// url is that of some process that serves, which may be dying.
func (f *fleet) url() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if p := f.processes[rand.IntN(len(f.processes))]; p.url != "" {
			return p.url
		}
	}
}

// dead are the processes that have died by themselves.
func (f *fleet) dead() (at []int) {
	for i, p := range f.processes {
		if closed(p.Gone()) {
			at = append(at, i)
		}
	}
	return at
}

// busy are the processes that work on tasks.
func (f *fleet) busy(t *testing.T) (at []int) {
	t.Helper()
	held := holders{}
	for _, e := range f.place.events(t) {
		held.note(e)
	}
	work := slices.Collect(maps.Values(held))
	for i, p := range f.processes {
		if slices.Contains(work, strconv.Itoa(p.ID())) {
			at = append(at, i)
		}
	}
	return at
}

// kill ends a process, while it is about a task if id has one.
func (f *fleet) kill(t *testing.T, i int, id string) {
	t.Helper()
	if err := f.processes[i].Kill(); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(f.place.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	words := []string{time.Now().Format(time.RFC3339Nano), strconv.Itoa(f.processes[i].ID()), "killed", id}
	if _, err := log.WriteString(strings.Join(words, "\t") + "\n"); err != nil {
		t.Fatal(err)
	}
}

// replace starts another process, that knows nothing but the store, in place of a dead one.
func (f *fleet) replace(t *testing.T, i int) {
	t.Helper()
	fresh := f.place.start(t, f.processes[i].role, "")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[i] = fresh
}
