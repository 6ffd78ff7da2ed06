package sqlitestore

import (
	"context"
	"database/sql"
	"math"

	"github.com/thaw-mcp/thaw/task"
)

// recent goes by the number of the row, which grows: no index is needed for it.
var recent = `SELECT id, version, ` + columnNames("") + ` FROM tasks WHERE rowid <= ? ORDER BY rowid DESC LIMIT ?`

var _ task.Lister = (*Store)(nil)

// Recent implements task.Lister.
func (s *Store) Recent(ctx context.Context, limit int) (heads []task.Head, err error) {
	if err := task.CheckRecent(limit); err != nil {
		return nil, err
	}
	f, err := s.open(ctx)
	if err == nil {
		err = each(ctx, f, func(row *sql.Rows) error {
			var h task.Head
			err := row.Scan(append([]any{&h.ID, &h.Version}, fields(&h)...)...)
			heads = append(heads, h)
			return err
		}, recent, int64(math.MaxInt64), limit)
	}
	if err != nil {
		return nil, failed(ctx, "recent", err)
	}
	return heads, nil
}
