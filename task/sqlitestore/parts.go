package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/thaw-mcp/thaw/task"
)

const (
	// maxPart is half of what SQLite takes as a row, in bytes.
	maxPart = 500_000_000
	// maxHead is far above what a head may have elsewhere.
	maxHead = 1 << 20
)

var putPart = fmt.Sprintf(`INSERT INTO parts (task, kind, number, name, epoch, data) VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT (task, kind, number, name) DO UPDATE SET epoch = excluded.epoch, data = excluded.data
		WHERE kind NOT IN (%d, %d) AND excluded.epoch >= epoch`, task.PartCall, task.PartAnswer)

const (
	findEntries = `SELECT number, name, epoch, data FROM parts WHERE task = ? AND kind = ? AND number >= ? AND number < ? ORDER BY number`

	findParts = `SELECT number, name, epoch, data FROM parts WHERE task = ? AND kind = ? AND number = ? AND (?4 = '' OR name = ?4) ORDER BY name`

	findRecord = `SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1) OR EXISTS (SELECT 1 FROM parts WHERE task = ?1)`
)

// checkWrite is task.CheckWrite with what SQLite does not take.
func checkWrite(h task.Head, parts []task.Part) error {
	if err := task.CheckWrite(h, parts); err != nil {
		return err
	}
	if n := headSize(&h); n > maxHead {
		return fmt.Errorf("sqlitestore: the head has %d bytes, more than %d: %w", n, maxHead, task.ErrTooLarge)
	}
	for _, p := range parts {
		if len(p.Data) > maxPart {
			return fmt.Errorf("sqlitestore: a part has %d bytes, more than %d: %w", len(p.Data), maxPart, task.ErrTooLarge)
		}
	}
	return nil
}

// headSize is how much of h has no size of its own.
func headSize(h *task.Head) int {
	n := len(h.Tool) + len(h.Traceparent) + len(h.Status) + len(h.Message) + len(h.Worker)
	for _, a := range h.Asked {
		n += len(a.Key) + len(a.Inline)
	}
	if h.Outcome != nil {
		n += len(h.Outcome.Inline)
	}
	return n
}

// put stores parts unless what is there stays.
func put(ctx context.Context, t transaction, id string, parts []task.Part) error {
	for _, p := range parts {
		if _, err := exec(ctx, t, putPart, id, p.Kind, number(p), p.Name, p.Epoch, p.Data); err != nil {
			return err
		}
	}
	return nil
}

func number(p task.Part) uint32 {
	switch p.Kind {
	case task.PartEntry:
		return p.Seq
	case task.PartQuestion, task.PartOutcome:
		return p.Epoch
	}
	return 0
}

// Parts implements task.Store.
func (s *Store) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) (found []task.Part, err error) {
	if err := task.CheckParts(id, k); err != nil {
		return nil, err
	}
	f, err := s.open(ctx)
	if err == nil {
		found, err = parts(ctx, f, id, k, name, from, to)
	}
	return found, failed(ctx, "parts", err)
}

func parts(ctx context.Context, f *file, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	query, args := findParts, []any{id, k, from, name}
	wanted := 1 // at least
	switch {
	case k == task.PartCall:
		args[2], args[3] = 0, ""
	case k == task.PartEntry:
		query, args[3] = findEntries, to
		wanted = int(max(to, from) - from)
	case k == task.PartOutcome:
		args[3] = ""
	case k == task.PartAnswer:
		args[2] = 0
		wanted = 0
	case name == "":
		wanted = 0
	}
	var found []task.Part
	err := each(ctx, f, func(row *sql.Rows) error {
		p := task.Part{Kind: k}
		var number uint32
		err := row.Scan(&number, &p.Name, &p.Epoch, &p.Data)
		if k == task.PartEntry {
			p.Seq = number
		}
		found = append(found, p)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	if len(found) < wanted {
		return nil, whyMissing(ctx, f, id)
	}
	return found, nil
}

// whyMissing is the error of parts that are not all there.
func whyMissing(ctx context.Context, f *file, id string) error {
	var is bool
	switch err := one(ctx, f, findRecord, id).Scan(&is); {
	case err != nil:
		return err
	case is:
		return task.ErrCorrupt
	}
	return task.ErrNotFound
}
