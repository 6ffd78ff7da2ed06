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
	"github.com/thaw-mcp/thaw/internal/strictjson"
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

// BenchmarkTask is a task's life with two steps through ServeHTTP and a worker: created by
// tools/call, run, read by tasks/get. It ends with the operations on the store.
func BenchmarkTask(b *testing.B) {
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
			lives := 0
			for b.Loop() {
				a := do(b, h, tasking(callT()).request(b))
				id, _ := strictjson.String(memberOf(a.last().Result, "taskId"))
				if ack, _ := h.RunTask(b.Context(), id); !ack {
					b.Fatal("the task was not run")
				}
				if a := do(b, h, taskMethod("tasks/get", id).request(b)); !strings.Contains(a.raw, `"completed"`) {
					b.Fatal(a.raw)
				}
				lives++
			}
			for what, n := range spy.n {
				b.ReportMetric(float64(n)/float64(lives), what+"/task")
			}
		})
	}
}
