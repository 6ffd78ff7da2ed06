package serve

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// counted counts a store's operations.
type counted struct {
	task.Store
	mu sync.Mutex
	n  map[string]int
}

func (c *counted) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name]++
}

func (c *counted) Create(ctx context.Context, h task.Head, parts ...task.Part) error {
	c.count("writes")
	return c.Store.Create(ctx, h, parts...)
}

func (c *counted) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	c.count("writes")
	return c.Store.Commit(ctx, now, next, parts...)
}

func (c *counted) Head(ctx context.Context, id string) (task.Head, error) {
	c.count("reads")
	return c.Store.Head(ctx, id)
}

// benchTasks runs bench on a server with one tool, whose two steps are a task, over each store
// that needs nothing beside it. What bench says it did is counted against the store's operations.
func benchTasks(b *testing.B, bench func(b *testing.B, h *Handler) (done int)) {
	sqlite, err := sqlitestore.Open(filepath.Join(b.TempDir(), "tasks.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer sqlite.Close()
	for name, store := range map[string]task.Store{"memory": memstore.New(nil), "sqlite": sqlite} {
		b.Run(name, func(b *testing.B) {
			tool := tool1(func(ctx context.Context) (any, error) {
				for _, step := range []string{"one", "two"} {
					if err := thaw.Do(ctx, step, func(context.Context) error { return nil }); err != nil {
						return nil, err
					}
				}
				return "done", nil
			}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			spy := &counted{Store: store, n: map[string]int{}}
			h, err := New(thaw.Server{Name: "bench", Version: "1", Tools: []*thaw.Tool{tool}},
				&Options{Store: spy, Host: resident, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			if err != nil {
				b.Fatal(err)
			}
			done := bench(b, h)
			for what, n := range spy.n {
				b.ReportMetric(float64(n)/float64(done), what+"/op")
			}
		})
	}
}

// BenchmarkTask is a task's life through ServeHTTP and a worker: created by tools/call, run, read
// by tasks/get.
func BenchmarkTask(b *testing.B) {
	benchTasks(b, func(b *testing.B, h *Handler) (lives int) {
		for b.Loop() {
			id := created(b, h, tasking(callT()))
			if ack, _ := h.RunTask(b.Context(), id); !ack {
				b.Fatal("the task was not run")
			}
			if a := do(b, h, taskMethod("tasks/get", id).request(b)); !strings.Contains(a.raw, `"completed"`) {
				b.Fatal(a.raw)
			}
			lives++
		}
		return lives
	})
}

// BenchmarkPoll is tasks/get of a task that waits for a worker.
func BenchmarkPoll(b *testing.B) {
	benchTasks(b, func(b *testing.B, h *Handler) (polls int) {
		id := created(b, h, tasking(callT()))
		for b.Loop() {
			if a := do(b, h, taskMethod("tasks/get", id).request(b)); !strings.Contains(a.raw, `"working"`) {
				b.Fatal(a.raw)
			}
			polls++
		}
		return polls
	})
}
