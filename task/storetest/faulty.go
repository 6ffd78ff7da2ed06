package storetest

import (
	"context"

	"github.com/thaw-mcp/thaw/task"
)

// Faulty is a Store whose calls fail on demand, as one behind a network does: the request
// is lost, or it is applied and the answer is lost.
type Faulty struct {
	// Store is what it wraps.
	Store task.Store
	// Fault is asked at each call, with the name of the method. before is returned in
	// place of calling Store; after is returned in place of what Store answered. Both nil
	// lets the call pass. It is called from the goroutines that call the methods.
	Fault func(method string) (before, after error)
}

// Claim implements task.Uses.
func (f *Faulty) Claim(ctx context.Context, u task.Use) (first bool, prev task.Used, err error) {
	err = f.call("Claim", func() (err error) {
		first, prev, err = f.Store.Claim(ctx, u)
		return err
	})
	if err != nil {
		return false, task.Used{}, err
	}
	return first, prev, nil
}

// Finish implements task.Uses.
func (f *Faulty) Finish(ctx context.Context, u task.Use, response []byte) error {
	return f.call("Finish", func() error { return f.Store.Finish(ctx, u, response) })
}

// Release implements task.Uses.
func (f *Faulty) Release(ctx context.Context, u task.Use) error {
	return f.call("Release", func() error { return f.Store.Release(ctx, u) })
}

func (f *Faulty) call(method string, call func() error) error {
	before, after := f.Fault(method)
	if before != nil {
		return before
	}
	if err := call(); after == nil {
		return err
	}
	return after
}
