package memstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/task"
)

var _ task.Lister = (*Store)(nil)

// Recent implements task.Lister.
func (s *Store) Recent(ctx context.Context, limit int) ([]task.Head, error) {
	if err := task.CheckRecent(limit); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var heads []task.Head
	for _, r := range s.tasks {
		if r.head != nil {
			heads = append(heads, r.head.Kept())
		}
	}
	slices.SortFunc(heads, func(a, b task.Head) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	return heads[:min(limit, len(heads))], nil
}
