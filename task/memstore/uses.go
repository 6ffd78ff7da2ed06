package memstore

import (
	"bytes"
	"container/heap"
	"context"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

type use struct {
	task.Use
	done     bool
	released bool // and done without a response
	response []byte
	index    int // in the heap
}

func (r *use) set(u task.Use) {
	u.Deadline, u.Expires = kept(u.Deadline), kept(u.Expires)
	r.Use, r.done, r.released, r.response = u, false, false, nil
}

func (r *use) used() task.Used {
	return task.Used{Round: r.Round, Answers: r.Answers, Deadline: r.Deadline, Done: r.done, Response: bytes.Clone(r.response)}
}

func kept(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Claim implements task.Uses.
func (s *Store) Claim(ctx context.Context, u task.Use) (first bool, prev task.Used, err error) {
	if err := u.Check(); err != nil {
		return false, task.Used{}, err
	}
	if err := ctx.Err(); err != nil {
		return false, task.Used{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeExpired()
	switch r := s.uses[u.Call]; {
	case r == nil:
		r = &use{}
		r.set(u)
		s.uses[u.Call] = r
		heap.Push(&s.byExpiry, r)
	case r.Round < u.Round || r.Round == u.Round && r.released && r.Answers == u.Answers:
		r.set(u)
		heap.Fix(&s.byExpiry, r.index)
	case r.Round > u.Round || r.Write != u.Write || r.done:
		return false, r.used(), nil
	}
	return true, task.Used{}, nil
}

// Finish implements task.Uses.
func (s *Store) Finish(ctx context.Context, u task.Use, response []byte) error {
	if err := u.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.uses[u.Call]
	if r == nil || r.Round != u.Round || r.Write != u.Write {
		return task.ErrNotClaimed
	}
	if !r.done {
		r.done, r.response = true, bytes.Clone(task.KeptResponse(response))
	}
	return nil
}

// Release implements task.Uses.
func (s *Store) Release(ctx context.Context, u task.Use) error {
	if err := u.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.uses[u.Call]
	if r == nil || r.Round != u.Round || r.Write != u.Write || r.done {
		return task.ErrNotClaimed
	}
	r.Write, r.done, r.released = [16]byte{}, true, true
	return nil
}

// removedPerClaim is more than the one record that a claim adds, so that a backlog of
// expired ones shrinks, and so few that no claim waits for it.
const removedPerClaim = 2

func (s *Store) removeExpired() {
	now := s.now()
	for range removedPerClaim {
		if len(s.byExpiry) == 0 || s.byExpiry[0].Expires.After(now) {
			return
		}
		delete(s.uses, heap.Pop(&s.byExpiry).(*use).Call)
	}
}

// expiryHeap has the record that expires first on top.
type expiryHeap []*use

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].Expires.Before(h[j].Expires) }
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *expiryHeap) Push(x any) {
	r := x.(*use)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
