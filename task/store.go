// Package task holds the contract of the store in which the instances of a server keep
// what none of them may keep alone, and the engine that runs durable work over it.
// Implementations of the store lie below it: memstore, sqlitestore; dynamostore stands at the
// top of the module.
package task

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Store keeps task records and knows nothing of MCP, owners or states. A record is one Head
// and immutable Parts; swapping the Head is the commit. Safe for concurrent use. Constructors
// do no I/O. A Store that holds files or connections is an io.Closer too; one that can list
// what is due is a Sweeper.
//
// Per task, Create, Head and Commit are linearizable across processes, and nil means
// durable. A head comes back as Head.Kept has it, a part as it was put. Slices are copied.
//
// What a lost swap has stored of parts stays unseen and goes when the record does: it is
// beyond the Journal, or of an epoch that no head names. Only what is put once, a call or an
// answer, may be seen, and is then the first one, even if the write that brought it was lost.
//
// Nothing was written if the error is ErrNotFound, ErrExists, *Conflict or ErrTooLarge, that
// of CheckWrite, or that of a context that had ended before. Any other error means that the
// write may or may not have been applied: repeat it as it is, or read before deciding.
type Store interface {
	Uses

	// Create stores parts, then h as version 1, if no head has h.ID; else ErrExists. Repeating
	// its own applied write is success: the head that is there is equal to h.
	Create(ctx context.Context, h Head, parts ...Part) error

	// Head reads strongly. It returns expired heads too, the engine judges, but never one that
	// the backend has removed; then, and for an id that never was, ErrNotFound.
	Head(ctx context.Context, id string) (Head, error)

	// Commit stores parts, then puts next in place of the head if and only if that has
	// version next.Version-1 and expires after now. It never creates a head. If the head is
	// equal to next already, this was a repetition of its own applied write and is success; if
	// there is none that expires after now, ErrNotFound; else *Conflict with what is there,
	// because another write won, perhaps over an applied try of this one. What the backend
	// keeps beside the fields of Head survives.
	Commit(ctx context.Context, now time.Time, next Head, parts ...Part) error

	// Parts reads strongly the parts of one kind that a head the caller has read refers to:
	// the call; the entries with from <= Seq < to, in order of Seq, each in the version that
	// was stored last; the outcome of epoch from; the question of epoch from called name, the
	// answer called name, or all of these in order of name if it is "". What else it is given
	// does not count.
	//
	// Each entry of the range, the call, the outcome and a question that is named have to be
	// there, and every part has to be whole, or the error is ErrCorrupt, ErrNotFound if the
	// record is gone. An answer that nobody gave is none. Parts outlive their head by a day, so
	// that who has read it can read them.
	Parts(ctx context.Context, id string, k Kind, name string, from, to uint32) ([]Part, error)
}

// Sweeper lists what should be looked at. A Store is one wherever a host has no process that
// stays; it may lag, so whoever acts on it reads the head before.
type Sweeper interface {
	// Due returns ids of tasks of a shard, 0 to Shards-1, whose Wake is not after before, the
	// earliest first, at most limit, which is 1 or more. A task is always of the same shard.
	// One that expired by before may be left out.
	Due(ctx context.Context, before time.Time, shard, limit int) ([]string, error)
}

// Shards is over how many parts the index of due tasks is spread.
const Shards = 16

// Shard is the shard of a task, for stores that have no order of their own.
func Shard(id string) int { return int(crc32.ChecksumIEEE([]byte(id)) % Shards) }

var (
	// ErrNotFound says that there is no such task.
	ErrNotFound = errors.New("task: not found")
	// ErrExists says that another task has this id.
	ErrExists = errors.New("task: exists already")
	// ErrTooLarge says that a part, or the head, is more than the backend takes at all.
	ErrTooLarge = errors.New("task: too large")
	// ErrCorrupt says that a record lacks a part that its head refers to.
	ErrCorrupt = errors.New("task: corrupt record")
)

// Conflict says that another write of the head came first.
type Conflict struct{ Now Head }

func (c *Conflict) Error() string {
	return fmt.Sprintf("task: conflict: the head is at version %d", c.Now.Version)
}

// StoreScheme is a kind of Store that a setting can name, as NAME or NAME:REST.
type StoreScheme struct {
	// Name is what stands before the colon.
	Name string
	// Usage is one line for messages: how the setting is written, and what the store is for.
	Usage string
	// Open makes the Store of what stands behind the colon. It does no I/O: what can
	// only be seen in the file or service is the error of the first use.
	Open func(ctx context.Context, rest string) (Store, error)
}

// Private is a Store of this process alone: no other sees what is in it.
type Private interface {
	Private()
}

// Checker is a Store that is in a place of this machine, and can tell at the start whether that
// place can be one. The error is what each use would fail with.
type Checker interface {
	Check(ctx context.Context) error
}
