package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// Faulty is a Store, and a Sweeper, whose calls fail on demand, as one behind a network does: the request
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

// Create implements task.Store.
func (f *Faulty) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	return f.call("Create", func() error { return f.Store.Create(ctx, h, parts...) })
}

// Head implements task.Store.
func (f *Faulty) Head(ctx context.Context, id string) (task.Head, error) {
	return answer(f, "Head", func() (task.Head, error) { return f.Store.Head(ctx, id) })
}

// Commit implements task.Store.
func (f *Faulty) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	return f.call("Commit", func() error { return f.Store.Commit(ctx, now, next, parts...) })
}

// Parts implements task.Store.
func (f *Faulty) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	return answer(f, "Parts", func() ([]task.Part, error) { return f.Store.Parts(ctx, id, k, name, from, to) })
}

// Due implements task.Sweeper. It fails if Store is none.
func (f *Faulty) Due(ctx context.Context, before time.Time, shard, limit int) ([]string, error) {
	return answer(f, "Due", func() ([]string, error) {
		sweeper, ok := f.Store.(task.Sweeper)
		if !ok {
			return nil, fmt.Errorf("storetest: %T is no task.Sweeper", f.Store)
		}
		return sweeper.Due(ctx, before, shard, limit)
	})
}

// answer is the answer of a call, or nothing but the error.
func answer[A any](f *Faulty, method string, call func() (A, error)) (a A, err error) {
	if err := f.call(method, func() (err error) { a, err = call(); return err }); err != nil {
		var none A
		return none, err
	}
	return a, nil
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
