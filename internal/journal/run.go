package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw/internal/call"
)

// Keeper is what a run needs of whoever runs it: a plain call keeps its journal in
// memory until it is sealed, a task commits each entry to a store. Its methods may be
// called from several goroutines; Judge, Admit and Full are called under the run's lock and
// must not come back to the run.
type Keeper interface {
	// Judge reports what is wrong with an answer to q: nil, a *Violation that the user can
	// mend, or an error that ends the run.
	Judge(q call.Question, answer []byte) error
	// Admit reports why q cannot be asked, or nil.
	Admit(q call.Question) error
	// Ready makes sure that what a step does can be kept; an error ends the run before the
	// step begins.
	Ready(ctx context.Context) error
	// Start reports whether a step may begin; first is one before which none has begun in this
	// run, or one that has begun and is tried again. If it may not, the call goes on in another
	// run; an error ends the run.
	Start(first bool) (bool, error)
	// Full reports whether a journal of size bytes, with e in it, is too large to be kept; the
	// error ends the run.
	Full(e *Entry, size int) error
	// Keep keeps e; an error ends the run.
	Keep(ctx context.Context, e *Entry) error
	// Wait waits before a step is tried again; an error is why it cannot.
	Wait(ctx context.Context, d time.Duration) error
	// Recovered turns a step's panic into the error that ends the run.
	Recovered(key string, value any, stack []byte) error
	// IdempotencyKey is the same on every run of the call; step may be "".
	IdempotencyKey(step string) string
}

// Violation is an answer that does not fit its question; the user is asked again and
// reads Text.
type Violation struct{ Text string }

func (v *Violation) Error() string { return v.Text }

// Misuse is an operation that cannot be right, whatever the input: a fault of the author.
type Misuse struct{ Key, What string }

func (m *Misuse) Error() string { return fmt.Sprintf("key %q: %s", m.Key, m.What) }

// Question is a question of this round.
type Question struct {
	call.Question
	Digest Digest
	Note   string // why an answer to it was not taken; ""
}

// Run is one run of a handler over what the call has recorded. It implements the
// operations of call.Call. The zero value is a run over nothing; Begin gives it what there
// is. All methods are safe for concurrent use.
type Run struct {
	mu      sync.Mutex
	journal Journal
	index   map[string]int       // of journal.Entries
	used    map[string]call.Site // keys of this run
	unread  int                  // what the run before recorded and asked, and this one has not come by
	fresh   bool                 // this run has come further than the one before
	size    int                  // of the entries in JSON

	answers map[string][]byte // what this request brought
	first   bool              // nothing was asked before: answers count for any question
	asked   map[string]Digest // what was asked before

	questions []Question
	until     time.Time // when what is waited for is over; zero: nothing
	waits     []Entry   // recorded with the wait
	promoted  bool      // the rest is to be a task
	elsewhere bool      // the rest needs another run
	told      bool      // the handler knows that the call is cancelled
	ready     bool
	ended     error // what ends the run whatever the handler returns
	effects   int   // steps whose functions have begun
	closed    bool
	inFlight  int
	idle      chan struct{} // closed when inFlight is 0 after the run was closed
}

// Begin gives the run its journal and the answers that came with the request. On a call's
// first run journal is nil, and answers count for any question: what a client says before
// it is asked is its own affair.
func (r *Run) Begin(journal *Journal, answers map[string][]byte) {
	r.answers, r.first = answers, journal == nil
	if journal == nil {
		return
	}
	r.journal.Entries = journal.Entries
	r.index = make(map[string]int, len(journal.Entries))
	for i := range journal.Entries {
		r.index[journal.Entries[i].Key] = i
		r.size += journal.Entries[i].size()
	}
	r.asked = make(map[string]Digest, len(journal.Asked))
	for _, a := range journal.Asked {
		r.asked[a.Key] = a.Digest
	}
	r.unread = len(journal.Entries) + len(journal.Asked) // the run before came as far as its questions
}

// Replaying reports whether the run has yet to come as far as the one before.
func (r *Run) Replaying() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread > 0 && !r.fresh
}

// maxKey bounds a key, in bytes: it is kept, travels, and is part of names in stores.
const maxKey = 256

// enter takes key for an operation at a place, and finds what is recorded under it.
func (r *Run) enter(key string, at call.Site) (*Entry, error) {
	if r.closed {
		return nil, call.ErrNoCall
	}
	if key == "" {
		return nil, r.misuse(key, fmt.Sprintf("the key is empty, at %v", at))
	}
	if len(key) > maxKey {
		return nil, r.misuse(key[:16]+"…", fmt.Sprintf("the key has %d bytes, allowed are %d, at %v", len(key), maxKey, at))
	}
	if !utf8.ValidString(key) { // it would not be found again
		return nil, r.misuse(key, fmt.Sprintf("the key is not UTF-8, at %v", at))
	}
	if before, twice := r.used[key]; twice {
		return nil, r.misuse(key, fmt.Sprintf("used twice in one run, at %v and at %v", before, at))
	}
	if r.used == nil {
		r.used = map[string]call.Site{}
	}
	r.used[key] = at
	if i, ok := r.index[key]; ok {
		return &r.journal.Entries[i], nil
	}
	return nil, nil
}

// pass notes that the run has come by a recorded entry.
func (r *Run) pass() { r.unread-- }

func (r *Run) misuse(key, what string) error {
	err := &Misuse{key, what}
	r.end(err)
	return err
}

// end makes err what the run ends with; the first one stays.
func (r *Run) end(err error) {
	if r.ended == nil {
		r.ended = err
	}
}

// Misuse implements call.Call.
func (r *Run) Misuse(key string, at call.Site, what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return call.ErrNoCall
	}
	return r.misuse(key, fmt.Sprintf("%s, at %v", what, at))
}

// suspended is ErrSuspended with the key that was asked.
type suspended struct{ key string }

func (s *suspended) Error() string        { return fmt.Sprintf("%v (%q)", call.ErrSuspended, s.key) }
func (s *suspended) Is(target error) bool { return target == call.ErrSuspended }

// AskWith is call.Call's Ask for a keeper. An answer counts only for the question that it
// answered; a changed one is asked again.
func (r *Run) AskWith(k Keeper, q call.Question, at call.Site) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recorded, err := r.enter(q.Key, at)
	if err != nil {
		return nil, err
	}
	digest := DigestOf(q)
	if recorded != nil {
		r.pass()
		if recorded.Kind == Answer && recorded.Digest == digest {
			return recorded.Data, nil
		}
	}
	r.fresh = true
	if r.ended != nil {
		return nil, r.ended
	}
	if err := r.stopped(k); err != nil {
		return nil, err
	}
	note := ""
	if answer, ok := r.answers[q.Key]; ok && (r.first || r.asked[q.Key] == digest) {
		err := k.Judge(q, answer)
		if err == nil && q.Fits != nil {
			if wrong := q.Fits(answer); wrong != "" {
				err = &Violation{wrong}
			}
		}
		var violation *Violation
		switch {
		case err == nil:
			r.record(Entry{Key: q.Key, Kind: Answer, Digest: digest, Data: answer})
			return answer, nil
		case !errors.As(err, &violation):
			r.end(err)
			return nil, err
		}
		note = violation.Text
	}
	if r.promoted {
		return nil, &suspended{q.Key} // asked by the task
	}
	if err := k.Admit(q); err != nil {
		return nil, err
	}
	r.questions = append(r.questions, Question{q, digest, note})
	return nil, &suspended{q.Key}
}

// record adds e, or puts it in place of what is recorded under its key.
func (r *Run) record(e Entry) {
	r.size += e.size()
	if i, ok := r.index[e.Key]; ok {
		r.size -= r.journal.Entries[i].size()
		r.journal.Entries[i] = e
		return
	}
	if r.index == nil {
		r.index = map[string]int{}
	}
	r.index[e.Key] = len(r.journal.Entries)
	r.journal.Entries = append(r.journal.Entries, e)
}

// RecordWith is call.Call's Record for a keeper. Where nothing can be recorded any more the
// value is given all the same.
func (r *Run) RecordWith(ctx context.Context, k Keeper, key string, at call.Site, value func() []byte) []byte {
	r.mu.Lock()
	recorded, err := r.enter(key, at)
	if err != nil {
		r.mu.Unlock()
		return value()
	}
	if recorded != nil {
		r.pass()
		if recorded.Kind == Value {
			defer r.mu.Unlock()
			return recorded.Data
		}
	}
	r.fresh = true
	r.mu.Unlock()
	data := value()
	_ = r.keep(ctx, k, Entry{Key: key, Kind: Value, Data: data}) // the run has ended with it
	return data
}

// keep records e, durably where there is a place for it.
func (r *Run) keep(ctx context.Context, k Keeper, e Entry) error {
	r.mu.Lock()
	err := k.Full(&e, r.size+e.size())
	r.mu.Unlock()
	if err == nil {
		err = k.Keep(ctx, &e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.end(err)
		return err
	}
	r.record(e)
	return nil
}

// overfull is the error of a journal that answers have filled already: nothing that has an
// effect may start on it, since nothing after that could be kept.
func (r *Run) overfull(k Keeper) error {
	if len(r.journal.Entries) == 0 {
		return nil
	}
	largest := &r.journal.Entries[0]
	for i := range r.journal.Entries {
		if e := &r.journal.Entries[i]; len(e.Data) > len(largest.Data) {
			largest = e
		}
	}
	err := k.Full(largest, r.size)
	if err != nil {
		r.end(err)
	}
	return err
}

// Effects reports whether a step's function has begun in this run.
func (r *Run) Effects() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.effects > 0
}

// Close ends the run: the handler has returned. Where the call goes on in another run, what
// the handler left running gets until ctx ends to finish and be recorded; whole says that all
// of it is.
func (r *Run) Close(ctx context.Context) (whole bool) {
	r.mu.Lock()
	r.closed = true
	if !r.suspendedLocked() || r.inFlight == 0 {
		r.mu.Unlock()
		return true
	}
	idle := make(chan struct{})
	r.idle = idle
	r.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// Suspended reports whether the call goes on in another run: its client is asked something,
// it waits for a time, or it becomes a task.
func (r *Run) Suspended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspendedLocked()
}

// Ended is what ends the run whatever the handler returned, or nil.
func (r *Run) Ended() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// Questions are what the client is asked after this run, in the order of asking.
func (r *Run) Questions() []Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.questions
}

// Unread are the keys that were recorded before and not used in this run.
func (r *Run) Unread() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for i := range r.journal.Entries {
		if key := r.journal.Entries[i].Key; r.used[key] == 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// Journal is what the next run needs. It is for a run that is closed.
func (r *Run) Journal() *Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &Journal{Entries: r.journal.Entries}
	for _, q := range r.questions {
		j.Asked = append(j.Asked, Asked{q.Key, q.Method, q.Digest})
	}
	return j
}
