package sqlitestore

import (
	"context"
	"database/sql"
	"time"
)

// partsOutlive is by how much parts outlive their head, for those who have read it.
const partsOutlive = 24 * time.Hour

const (
	// Two a write is more than the one head that it may add, so that a backlog of expired ones
	// shrinks, and so few that no write waits for it. For parts it is as many more.
	removeHeads = `DELETE FROM tasks WHERE rowid IN (SELECT rowid FROM tasks WHERE expires <= ? ORDER BY expires LIMIT 2) RETURNING id, expires`

	noteRemoved = `INSERT INTO removed (task, until) VALUES (?, ?)`

	removeParts = `DELETE FROM parts WHERE rowid IN
		(SELECT parts.rowid FROM removed CROSS JOIN parts ON parts.task = removed.task WHERE until <= ? ORDER BY until LIMIT ?)`

	dropEmpty = `DELETE FROM removed WHERE rowid IN (SELECT rowid FROM removed WHERE until <= ? ORDER BY until LIMIT 2)
		AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.task = removed.task)`

	dropRemoved = `DELETE FROM removed WHERE task = ?`

	dropParts = `DELETE FROM parts WHERE task = ?`
)

// removeExpired removes a few heads that have expired, and a few parts of those removed
// a day ago. added is how many parts are about to be stored.
func (s *Store) removeExpired(ctx context.Context, t transaction, added int) error {
	now := s.now().UnixMilli()
	type gone struct {
		id      string
		expires time.Time
	}
	var heads []gone
	err := each(ctx, t, func(row *sql.Rows) error {
		var g gone
		err := row.Scan(&g.id, moment{&g.expires})
		heads = append(heads, g)
		return err
	}, removeHeads, now)
	if err != nil {
		return err
	}
	for _, g := range heads {
		if _, err := exec(ctx, t, noteRemoved, g.id, g.expires.Add(partsOutlive).UnixMilli()); err != nil {
			return err
		}
	}
	if _, err := exec(ctx, t, removeParts, now, 2*added+2); err != nil {
		return err
	}
	_, err = exec(ctx, t, dropEmpty, now)
	return err
}

// forget makes way for a new task of an id whose parts of before are still there.
func forget(ctx context.Context, t transaction, id string) error {
	if was, err := exec(ctx, t, dropRemoved, id); err != nil || !was {
		return err
	}
	_, err := exec(ctx, t, dropParts, id)
	return err
}
