// Package task holds the contract of the store in which the instances of a server keep
// what none of them may keep alone. Implementations lie below it: memstore, sqlitestore.
package task

import "context"

// Store keeps records of calls. It knows nothing of MCP, of callers or of sealed states.
// Safe for concurrent use. A Store that holds files or connections is an io.Closer too.
type Store interface {
	Uses
}

// StoreScheme is a kind of Store that a setting can name, as NAME or NAME:REST.
type StoreScheme struct {
	// Name is what stands before the colon; Usage says in one line what may follow it and
	// what the store is for.
	Name, Usage string
	// Open makes the Store of what stands behind the colon. It does no I/O: what can
	// only be seen in the file or service is the error of the first use.
	Open func(ctx context.Context, rest string) (Store, error)
}
