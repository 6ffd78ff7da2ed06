package memstore

import (
	"context"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// partsOutlive is by how much parts outlive their head, for those who have read it.
const partsOutlive = 24 * time.Hour

// record is a task. Its head goes when it expires and its parts a day later.
type record struct {
	id     string
	head   *task.Head // nil: gone
	parts  map[partKey]task.Part
	expiry place[record] // of the head, then of the parts
	wake   place[record]
}

// Create implements task.Store.
func (s *Store) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	if err := task.CheckWrite(h, parts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h.Version = 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeExpired()
	if r := s.tasks[h.ID]; r != nil {
		switch {
		case r.head == nil:
			s.expiring.remove(&r.expiry)
		case r.head.Equal(h):
			return nil
		default:
			return task.ErrExists
		}
	}
	r := &record{id: h.ID, parts: map[partKey]task.Part{}}
	s.tasks[h.ID] = r
	s.put(r, h, parts)
	return nil
}

// Head implements task.Store.
func (s *Store) Head(ctx context.Context, id string) (task.Head, error) {
	if err := task.CheckID(id); err != nil {
		return task.Head{}, err
	}
	if err := ctx.Err(); err != nil {
		return task.Head{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[id]
	if r == nil || r.head == nil {
		return task.Head{}, task.ErrNotFound
	}
	return r.head.Kept(), nil
}

// Commit implements task.Store.
func (s *Store) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	if err := task.CheckWrite(next, parts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[next.ID]
	switch {
	case r == nil || r.head == nil:
		return task.ErrNotFound
	case r.head.Version == next.Version && r.head.Equal(next):
		return nil
	case expired(r.head, now):
		return task.ErrNotFound
	case r.head.Version != next.Version-1:
		return &task.Conflict{Now: r.head.Kept()}
	}
	s.put(r, next, parts)
	return nil
}

// put stores parts and makes h the head of r. s.mu is held.
func (s *Store) put(r *record, h task.Head, parts []task.Part) {
	for _, p := range parts {
		r.put(p)
	}
	kept := h.Kept()
	r.head = &kept
	setOrRemove(&s.expiring, &r.expiry, r, kept.Expires)
	setOrRemove(&s.waking[task.Shard(r.id)], &r.wake, r, kept.Wake)
}

// setOrRemove is for times that are never if they are zero.
func setOrRemove(q *queue[record], p *place[record], r *record, at time.Time) {
	if at.IsZero() {
		q.remove(p)
	} else {
		q.set(p, r, at)
	}
}

func expired(h *task.Head, now time.Time) bool { return !h.Expires.IsZero() && !h.Expires.After(now) }

// removedPerTask is two records, which go in two steps each: more than a create adds, so
// that a backlog shrinks, and so few that none waits for it.
const removedPerTask = 4

func (s *Store) removeExpired() {
	now := s.now()
	for range removedPerTask {
		r := s.expiring.by(now)
		switch {
		case r == nil:
			return
		case r.head == nil:
			s.expiring.remove(&r.expiry)
			delete(s.tasks, r.id)
		default:
			s.expiring.set(&r.expiry, r, r.head.Expires.Add(partsOutlive))
			s.waking[task.Shard(r.id)].remove(&r.wake)
			r.head = nil
		}
	}
}

// Due implements task.Sweeper.
func (s *Store) Due(ctx context.Context, before time.Time, shard, limit int) ([]string, error) {
	if err := task.CheckDue(shard, limit); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.waking[shard]
	var ids []string
	var seen []*record
	for r := q.by(before); r != nil && len(ids) < limit; r = q.by(before) {
		if !expired(r.head, before) {
			ids = append(ids, r.id)
		}
		q.remove(&r.wake)
		seen = append(seen, r)
	}
	for _, r := range seen {
		q.set(&r.wake, r, r.head.Wake)
	}
	return ids, nil
}
