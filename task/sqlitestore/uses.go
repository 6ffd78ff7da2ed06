package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

const (
	// Two a claim is more than the one record that it adds, so that a backlog of expired
	// ones shrinks, and so few that no claim waits for it.
	removeExpired = `DELETE FROM uses WHERE rowid IN (SELECT rowid FROM uses WHERE expires <= ? ORDER BY expires LIMIT 2)`

	claim = `INSERT INTO uses (call, round, write, answers, deadline, expires) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (call) DO UPDATE SET round = excluded.round, write = excluded.write, answers = excluded.answers,
			deadline = excluded.deadline, expires = excluded.expires, done = FALSE, response = NULL
		WHERE round < excluded.round OR round = excluded.round AND write = zeroblob(16) AND answers = excluded.answers`

	// The first column tells whether the record is the claim's own write, not finished yet.
	find = `SELECT round = ?2 AND write = ?3 AND NOT done, round, answers, deadline, done, response FROM uses WHERE call = ?1`

	finish = `UPDATE uses SET done = TRUE, response = ? WHERE call = ? AND round = ? AND write = ? AND NOT done`

	// No claim has a write of zeros: it is a round that was given back.
	release = `UPDATE uses SET write = zeroblob(16), done = TRUE, response = NULL
		WHERE call = ? AND round = ? AND write = ? AND NOT done`

	findClaim = `SELECT 1 FROM uses WHERE call = ? AND round = ? AND write = ?`
)

// Claim implements task.Uses.
func (s *Store) Claim(ctx context.Context, u task.Use) (first bool, prev task.Used, err error) {
	if err := u.Check(); err != nil {
		return false, task.Used{}, err
	}
	db, err := s.open(ctx)
	if err == nil {
		first, prev, err = s.claim(ctx, db, u)
	}
	if err != nil {
		return false, task.Used{}, failed(ctx, "claim", err)
	}
	return first, prev, nil
}

// claim is one transaction, so that what it finds is what stopped it.
func (s *Store) claim(ctx context.Context, db *sql.DB, u task.Use) (first bool, prev task.Used, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, task.Used{}, err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, removeExpired, s.now().UnixMilli()); err != nil {
		return false, task.Used{}, err
	}
	first, err = changed(tx.ExecContext(ctx, claim, u.Call, u.Round, u.Write[:], u.Answers[:], u.Deadline.UnixMilli(), u.Expires.UnixMilli()))
	if err != nil {
		return false, task.Used{}, err
	}
	if !first {
		if first, prev, err = scan(tx.QueryRowContext(ctx, find, u.Call, u.Round, u.Write[:])); err != nil {
			return false, task.Used{}, err
		}
	}
	if first {
		prev = task.Used{}
	}
	return first, prev, tx.Commit()
}

func scan(row *sql.Row) (own bool, prev task.Used, err error) {
	var answers []byte
	var deadline int64
	if err := row.Scan(&own, &prev.Round, &answers, &deadline, &prev.Done, &prev.Response); err != nil {
		return false, task.Used{}, err
	}
	copy(prev.Answers[:], answers)
	prev.Deadline = time.UnixMilli(deadline).UTC()
	return own, prev, nil
}

// Finish implements task.Uses.
func (s *Store) Finish(ctx context.Context, u task.Use, response []byte) error {
	if err := u.Check(); err != nil {
		return err
	}
	db, err := s.open(ctx)
	if err == nil {
		err = finishClaim(ctx, db, u, task.KeptResponse(response))
	}
	if err != nil && !errors.Is(err, task.ErrNotClaimed) {
		return failed(ctx, "finish", err)
	}
	return err
}

func finishClaim(ctx context.Context, db *sql.DB, u task.Use, response []byte) error {
	if stored, err := changed(db.ExecContext(ctx, finish, response, u.Call, u.Round, u.Write[:])); stored || err != nil {
		return err
	}
	var is int
	err := db.QueryRowContext(ctx, findClaim, u.Call, u.Round, u.Write[:]).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) {
		return task.ErrNotClaimed
	}
	return err
}

// Release implements task.Uses.
func (s *Store) Release(ctx context.Context, u task.Use) error {
	if err := u.Check(); err != nil {
		return err
	}
	db, err := s.open(ctx)
	if err != nil {
		return failed(ctx, "release", err)
	}
	released, err := changed(db.ExecContext(ctx, release, u.Call, u.Round, u.Write[:]))
	switch {
	case err != nil:
		return failed(ctx, "release", err)
	case !released:
		return task.ErrNotClaimed
	}
	return nil
}

func changed(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func failed(ctx context.Context, what string, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = ended // of which database/sql may only say that the transaction is over
	}
	return fmt.Errorf("sqlitestore: %s: %w", what, err)
}
