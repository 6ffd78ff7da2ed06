// Package memstore keeps tasks and records of calls in the memory of one process, for tests
// and trials: what it holds ends with the process, and no other instance sees it.
package memstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// Options may be nil.
type Options struct {
	// Now tells which records are over. Default time.Now.
	Now func() time.Time
}

// Store is a task.Store and a task.Sweeper. Safe for concurrent use.
type Store struct {
	now func() time.Time

	mu           sync.Mutex
	uses         map[string]*use
	expiringUses queue[use]
	tasks        map[string]*record
	expiring     queue[record]
	waking       [task.Shards]queue[record]
}

// New makes an empty Store.
func New(o *Options) *Store {
	s := &Store{now: time.Now, uses: map[string]*use{}, tasks: map[string]*record{}}
	if o != nil && o.Now != nil {
		s.now = o.Now
	}
	return s
}

// Scheme is the setting "memory". Every Open of it is a store of its own.
func Scheme() task.StoreScheme {
	return task.StoreScheme{
		Name:  "memory",
		Usage: "memory: kept by this process alone and gone when it ends; for tests and trials",
		Open: func(_ context.Context, rest string) (task.Store, error) {
			if rest != "" {
				return nil, errors.New("memstore: a store in memory takes no path")
			}
			return New(nil), nil
		},
	}
}

// Private implements task.Private.
func (*Store) Private() {}
