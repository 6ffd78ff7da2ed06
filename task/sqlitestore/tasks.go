package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

var (
	insertHead = `INSERT INTO tasks (id, version, shard, ` + columnNames("") + `) VALUES (?, 1, ?` + placeholders(len(columns)) + `)
		ON CONFLICT (id) DO NOTHING`

	// A column that is not named stays as a newer version of thaw has set it.
	updateHead = `UPDATE tasks SET version = version + 1, ` + columnNames(" = ?") + `
		WHERE id = ? AND version = ? AND (expires IS NULL OR expires > ?)`

	findHead = `SELECT version, ` + columnNames("") + ` FROM tasks WHERE id = ?`
)

// due leaves out what has expired, so that it does not stand in the way.
const due = `SELECT id FROM tasks WHERE shard = ? AND wake <= ?2 AND (expires IS NULL OR expires > ?2) ORDER BY wake LIMIT ?`

var _ task.Sweeper = (*Store)(nil)

// Create implements task.Store.
func (s *Store) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	if err := checkWrite(h, parts); err != nil {
		return err
	}
	h.Version = 1
	return failed(ctx, "create", s.write(ctx, func(t transaction) error { return s.create(ctx, t, h, parts) }))
}

func (s *Store) create(ctx context.Context, t transaction, h task.Head, parts []task.Part) error {
	if err := s.removeExpired(ctx, t, len(parts)); err != nil {
		return err
	}
	inserted, err := exec(ctx, t, insertHead, append([]any{h.ID, task.Shard(h.ID)}, fields(&h)...)...)
	if err != nil {
		return err
	}
	if !inserted {
		there, err := head(ctx, t, h.ID)
		if err == nil && !there.Equal(h) {
			err = task.ErrExists
		}
		return err
	}
	if err := forget(ctx, t, h.ID); err != nil {
		return err
	}
	return put(ctx, t, h.ID, parts)
}

// Commit implements task.Store.
func (s *Store) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	if err := checkWrite(next, parts); err != nil {
		return err
	}
	return failed(ctx, "commit", s.write(ctx, func(t transaction) error { return s.commit(ctx, t, now, next, parts) }))
}

func (s *Store) commit(ctx context.Context, t transaction, now time.Time, next task.Head, parts []task.Part) error {
	// A version beyond int64 becomes one that no head has.
	swapped, err := exec(ctx, t, updateHead, append(fields(&next), next.ID, int64(next.Version-1), now.UnixMilli())...)
	if err != nil {
		return err
	}
	if !swapped {
		return whyNot(ctx, t, now, next)
	}
	if len(parts) == 0 {
		return nil
	}
	if err := s.removeExpired(ctx, t, len(parts)); err != nil {
		return err
	}
	return put(ctx, t, next.ID, parts)
}

// whyNot is the error of a commit that found no head to replace, nil if it has done so before.
func whyNot(ctx context.Context, t transaction, now time.Time, next task.Head) error {
	there, err := head(ctx, t, next.ID)
	switch {
	case err != nil:
		return err
	case there.Equal(next):
		return nil
	case !there.Expires.IsZero() && !there.Expires.After(now):
		return task.ErrNotFound
	}
	return &task.Conflict{Now: there}
}

// Head implements task.Store.
func (s *Store) Head(ctx context.Context, id string) (h task.Head, err error) {
	if err := task.CheckID(id); err != nil {
		return task.Head{}, err
	}
	f, err := s.open(ctx)
	if err == nil {
		h, err = head(ctx, f, id)
	}
	return h, failed(ctx, "head", err)
}

func head(ctx context.Context, r runner, id string) (task.Head, error) {
	h := task.Head{ID: id}
	err := one(ctx, r, findHead, id).Scan(append([]any{&h.Version}, fields(&h)...)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = task.ErrNotFound
	}
	if err != nil {
		return task.Head{}, err
	}
	return h, nil
}

// Due implements task.Sweeper.
func (s *Store) Due(ctx context.Context, before time.Time, shard, limit int) (ids []string, err error) {
	if err := task.CheckDue(shard, limit); err != nil {
		return nil, err
	}
	f, err := s.open(ctx)
	if err == nil {
		ids, err = dueTasks(ctx, f, before, shard, limit)
	}
	return ids, failed(ctx, "due", err)
}

func dueTasks(ctx context.Context, f *file, before time.Time, shard, limit int) (ids []string, err error) {
	err = each(ctx, f, func(row *sql.Rows) error {
		var id string
		err := row.Scan(&id)
		ids = append(ids, id)
		return err
	}, due, shard, before.UnixMilli(), limit)
	if err != nil {
		return nil, err
	}
	return ids, nil
}
