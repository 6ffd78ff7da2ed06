package journal

import (
	"fmt"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// A step that is to be tried again after a while, in a call that can give its instance up: how
// often it was tried and when it is tried next is kept with what the call waits for.

// tries is what an entry of the kind Tried holds.
type tries struct {
	n    int
	next time.Time
}

func readTries(e *Entry) (t tries) {
	if e.Kind != Tried {
		return t
	}
	first, second, _ := pair(e.Data)
	n, err := strconv.Atoi(string(first))
	ms, errNext := strconv.ParseInt(string(second), 10, 64)
	if err != nil || errNext != nil || n < 0 {
		return t
	}
	return tries{n, time.UnixMilli(ms)}
}

func (t tries) entry(key string) Entry {
	b := strconv.AppendInt([]byte{'['}, int64(t.n), 10)
	b = strconv.AppendInt(append(b, ','), t.next.UnixMilli(), 10)
	return Entry{Key: key, Kind: Tried, Data: append(b, ']')}
}

// later is that a step is tried again in another run.
type later struct{ suspended }

// tryLater has the call go on when a step is to be tried again, attempt times after its first. Where
// the call ends before that, or is cancelled, the step has failed.
func (r *Run) tryLater(k Waiter, key string, attempt int, again *call.Retry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.stopped(k); err != nil {
		return fmt.Errorf("%w: %w", err, again.Err)
	}
	t := tries{attempt, k.Now().Add(again.After)}
	if ends := k.Ends(); !ends.IsZero() && t.next.After(ends) {
		return again.Err
	}
	r.wait(t.entry(key), t.next)
	return &later{suspended{key}}
}

// wait keeps an entry with the wait that it belongs to. r.mu is held.
func (r *Run) wait(e Entry, until time.Time) {
	r.record(e)
	r.waits = append(r.waits, e)
	r.parkUntil(until)
}

// checkTries reports whether data is what an entry of the kind Tried holds.
func checkTries(data []byte) bool {
	first, second, ok := pair(data)
	return ok && strictjson.Kind(first) == '0' && strictjson.Kind(second) == '0'
}
