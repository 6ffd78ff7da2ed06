package memstore

import (
	"bytes"
	"context"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

type use struct {
	task.Use
	done     bool
	released bool // and done without a response
	response []byte
	expiry   place[use]
}

// take makes r the record of u. s.mu is held.
func (s *Store) take(r *use, u task.Use) {
	u.Deadline, u.Expires = kept(u.Deadline), kept(u.Expires)
	r.Use, r.done, r.released, r.response = u, false, false, nil
	s.expiringUses.set(&r.expiry, r, u.Expires)
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
	s.removeExpiredUses()
	switch r := s.uses[u.Call]; {
	case r == nil:
		r = &use{}
		s.uses[u.Call] = r
		s.take(r, u)
	case r.Round < u.Round || r.Round == u.Round && r.released && r.Answers == u.Answers:
		s.take(r, u)
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

func (s *Store) removeExpiredUses() {
	now := s.now()
	for range removedPerClaim {
		r := s.expiringUses.by(now)
		if r == nil {
			return
		}
		s.expiringUses.remove(&r.expiry)
		delete(s.uses, r.Call)
	}
}
