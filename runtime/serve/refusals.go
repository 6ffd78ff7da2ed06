package serve

import (
	"sync"
	"time"
)

// refusals keeps whoever is refused from filling the log: one line a second for each kind,
// with the number of those left out. Kinds are few and the program's own. The zero value is
// ready; it is safe for concurrent use.
type refusals struct {
	mu     sync.Mutex
	byKind map[error]*refusal
}

type refusal struct {
	last       time.Time
	suppressed int
}

func (r *refusals) log(now time.Time, kind error, write func(suppressed int)) {
	r.mu.Lock()
	entry := r.byKind[kind]
	if entry == nil {
		if r.byKind == nil {
			r.byKind = map[error]*refusal{}
		}
		entry = &refusal{}
		r.byKind[kind] = entry
	}
	if since := now.Sub(entry.last); 0 <= since && since < time.Second {
		entry.suppressed++
		r.mu.Unlock()
		return
	}
	suppressed := entry.suppressed
	entry.last, entry.suppressed = now, 0
	r.mu.Unlock()
	write(suppressed)
}
