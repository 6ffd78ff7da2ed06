package task

import (
	"bytes"
	"reflect"
	"time"
)

// Status is what a client sees of a task (T-12).
type Status string

// The statuses. The last three are terminal: nothing leaves them (T-18).
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Terminal reports whether nothing leaves s.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Phase is what the engine does with a task.
type Phase uint8

// The phases.
const (
	Ready    Phase = iota // to be claimed
	Running               // claimed, under a lease
	Asking                // parked until its questions are answered
	Sleeping              // parked until Wake
	Done                  // terminal
)

// Head is the mutable part of a record; a store writes it as a whole. Strings are UTF-8.
type Head struct {
	// ID is 1 to 128 characters of A-Z a-z 0-9 - and _.
	ID          string
	Tool        string
	Traceparent string
	// Format is that of the parts' data.
	Format   uint16
	Revision uint32
	// Version is 1 at first and grows by one with each Commit.
	Version uint64
	Status  Status
	Phase   Phase
	Owner   [32]byte
	Created time.Time
	// Updated moves with what a client can see, and strictly grows.
	Updated time.Time
	// Expires is when the record may be removed; zero is never.
	Expires time.Time
	Poll    time.Duration
	Message string
	// Epoch grows with each claim and fences older ones off; Claims counts them.
	Epoch, Claims uint32
	// Worker is fresh for each claim; "" where nobody holds one.
	Worker     string
	LeaseUntil time.Time // zero: no lease
	// Interrupted counts claims that began over a dead lease since the last progress; Sends
	// the messages since then.
	Interrupted, Sends uint8
	Sent               time.Time
	// Wake is when somebody should look if nothing happens; zero while waiting for input and
	// when terminal.
	Wake time.Time
	// Journal is how many entries are committed.
	Journal uint32
	Asked   []Asked
	Outcome *OutcomeRef
}

// Kept is what a store keeps of h: times and Poll to the millisecond, rounded down, times in
// UTC, no Asked in place of an empty one. It shares nothing with h.
func (h Head) Kept() Head {
	for _, t := range []*time.Time{&h.Created, &h.Updated, &h.Expires, &h.LeaseUntil, &h.Sent, &h.Wake} {
		*t = t.UTC().Truncate(time.Millisecond)
	}
	h.Poll = h.Poll.Truncate(time.Millisecond)
	h.Asked = append([]Asked(nil), h.Asked...)
	for i := range h.Asked {
		h.Asked[i].Inline = bytes.Clone(h.Asked[i].Inline)
	}
	if h.Outcome != nil {
		h.Outcome = &OutcomeRef{Epoch: h.Outcome.Epoch, Inline: bytes.Clone(h.Outcome.Inline)}
	}
	return h
}

// Equal reports whether a store keeps the same of both.
func (h Head) Equal(o Head) bool { return reflect.DeepEqual(h.Kept(), o.Kept()) }

// Asked is an outstanding question of a task.
type Asked struct {
	Key    string // on the wire
	Epoch  uint32 // of the question part, where Inline is nil
	Digest [16]byte
	Inline []byte // nil or not, also if it is empty
}

// OutcomeRef is how a task ended.
type OutcomeRef struct {
	Epoch  uint32 // of the outcome part, where Inline is nil
	Inline []byte
}

// Kind is what a part holds.
type Kind uint8

// The kinds of parts.
const (
	PartCall     Kind = iota // arguments, principal, capabilities: put once
	PartEntry                // of the journal, by Seq: replaced only by an equal or higher Epoch
	PartQuestion             // Epoch is part of its name
	PartAnswer               // by Name: the first put wins, and a second is no error
	PartOutcome              // Epoch is part of its name
)

// Part is an immutable piece of a record, of any size: stores cut it up as they need.
type Part struct {
	Kind  Kind
	Name  string // of a question or an answer: its key, 1 to MaxName bytes of UTF-8; else ""
	Epoch uint32 // of the writer
	Seq   uint32 // of an entry: its number, from 0; else 0
	Data  []byte
}
