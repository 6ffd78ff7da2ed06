package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

const (
	// Two a claim is more than the one record that it adds, so that a backlog of expired
	// ones shrinks, and so few that no claim waits for it.
	removeUses = `DELETE FROM uses WHERE rowid IN (SELECT rowid FROM uses WHERE expires <= ? ORDER BY expires LIMIT 2)`

	claim = `INSERT INTO uses (call, round, write, answers, deadline, expires) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (call) DO UPDATE SET round = excluded.round, write = excluded.write, answers = excluded.answers,
			deadline = excluded.deadline, expires = excluded.expires, done = FALSE, response = NULL
		WHERE round < excluded.round OR round = excluded.round AND write = zeroblob(16) AND answers = excluded.answers`

	// The first column tells whether the record is the claim's own write, not finished yet.
	findUse = `SELECT round = ?2 AND write = ?3 AND NOT done, round, answers, deadline, done, response FROM uses WHERE call = ?1`

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
	err = s.write(ctx, func(t transaction) (err error) {
		first, prev, err = claimUse(ctx, t, u, s.now())
		return err
	})
	if err != nil {
		return false, task.Used{}, failed(ctx, "claim", err)
	}
	return first, prev, nil
}

// claimUse is one transaction, so that what it finds is what stopped it.
func claimUse(ctx context.Context, t transaction, u task.Use, now time.Time) (first bool, prev task.Used, err error) {
	if _, err := exec(ctx, t, removeUses, now.UnixMilli()); err != nil {
		return false, task.Used{}, err
	}
	first, err = exec(ctx, t, claim, u.Call, u.Round, u.Write[:], u.Answers[:], u.Deadline.UnixMilli(), u.Expires.UnixMilli())
	if first || err != nil {
		return first, task.Used{}, err
	}
	var answers []byte
	var deadline int64
	row := one(ctx, t, findUse, u.Call, u.Round, u.Write[:])
	if err := row.Scan(&first, &prev.Round, &answers, &deadline, &prev.Done, &prev.Response); err != nil || first {
		return first, task.Used{}, err
	}
	copy(prev.Answers[:], answers)
	prev.Deadline = time.UnixMilli(deadline).UTC()
	return false, prev, nil
}

// Finish implements task.Uses.
func (s *Store) Finish(ctx context.Context, u task.Use, response []byte) error {
	if err := u.Check(); err != nil {
		return err
	}
	f, err := s.open(ctx)
	if err == nil {
		err = finishUse(ctx, f, u, task.KeptResponse(response))
	}
	return failed(ctx, "finish", err)
}

func finishUse(ctx context.Context, f *file, u task.Use, response []byte) error {
	if stored, err := exec(ctx, f, finish, response, u.Call, u.Round, u.Write[:]); stored || err != nil {
		return err
	}
	var is int
	err := one(ctx, f, findClaim, u.Call, u.Round, u.Write[:]).Scan(&is)
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
	f, err := s.open(ctx)
	if err == nil {
		err = releaseUse(ctx, f, u)
	}
	return failed(ctx, "release", err)
}

func releaseUse(ctx context.Context, f *file, u task.Use) error {
	released, err := exec(ctx, f, release, u.Call, u.Round, u.Write[:])
	if err == nil && !released {
		err = task.ErrNotClaimed
	}
	return err
}
