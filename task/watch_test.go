package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// readOnly is a store that takes no write and fails to read one task.
type readOnly struct {
	task.Store
	t     *testing.T
	fails string
}

var errRead = errors.New("read")

func (s *readOnly) Head(ctx context.Context, id string) (task.Head, error) {
	if s.fails != "" && id == s.fails {
		return task.Head{}, errRead
	}
	return s.Store.Head(ctx, id)
}

func (s *readOnly) Commit(_ context.Context, _ time.Time, next task.Head, _ ...task.Part) error {
	s.t.Errorf("a write of %s", next.ID)
	return errRead
}

func TestHeads(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	// The store's own clock stands, so what expires is still there.
	store := &readOnly{Store: memstore.New(&memstore.Options{Now: func() time.Time { return time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC) }}), t: t}
	e := task.New(store, &task.Options{Now: clock})
	mine, theirs := [32]byte{1}, [32]byte{2}
	var ids []string
	create := func(id string, owner [32]byte, ttl time.Duration) {
		if _, err := e.Create(t.Context(), task.Creation{ID: id, Tool: "t", Owner: owner, TTL: ttl, Call: []byte("{}")}, task.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 25 {
		ids = append(ids, fmt.Sprint("task-", i))
		create(ids[i], mine, time.Hour)
	}
	create("theirs", theirs, time.Hour)
	create("short", mine, time.Minute)
	now = now.Add(10 * time.Minute) // in which nobody worked on them
	slices.Reverse(ids)
	asked := slices.Concat([]string{"theirs", "unknown"}, ids, []string{"short", "no id", ""})
	heads, err := e.Heads(t.Context(), asked, mine)
	var got []string
	for _, h := range heads {
		got = append(got, h.ID)
	}
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("%q, %v", got, err)
	}
	if heads, err := e.Heads(t.Context(), nil, mine); err != nil || len(heads) != 0 {
		t.Errorf("%v, %v", heads, err)
	}
	store.fails = "task-7"
	if heads, err := e.Heads(t.Context(), asked, mine); !errors.Is(err, errRead) || heads != nil {
		t.Errorf("%v, %v", heads, err)
	}
}
