package cases

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

// canDoTasks are the capabilities of a client that knows tasks.
const canDoTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// workers stand for a queue and its functions: each message is a run by one handler, and one
// that is not done with shows again.
type workers struct {
	ctx  context.Context
	runs sync.WaitGroup

	mu      sync.Mutex
	handler *serve.Handler
	dead    bool
}

// newWorkers makes workers that end with the test.
func newWorkers(t *testing.T) *workers {
	ctx, stop := context.WithCancel(context.Background())
	w := &workers{ctx: ctx}
	t.Cleanup(func() { stop(); w.runs.Wait() })
	return w
}

func (w *workers) start(h *serve.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = h
}

// die has all messages lost from now on.
func (w *workers) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

// Dispatch implements task.Dispatcher.
func (w *workers) Dispatch(_ context.Context, id string, after time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead || w.ctx.Err() != nil {
		return nil
	}
	h := w.handler
	w.runs.Go(func() {
		for ack := false; !ack; {
			timer := time.NewTimer(after)
			select {
			case <-timer.C:
				ack, after = h.RunTask(w.ctx, id)
			case <-w.ctx.Done():
				timer.Stop()
				return
			}
		}
	})
	return nil
}

// about is a request about a task, with the answers of tasks/update or "".
func (s *stage) about(method, id, responses string) *exchange {
	members := `"taskId":` + jsonText(id)
	if method == mcp.MethodUpdateTask {
		members += `,"inputResponses":` + responses
	}
	return s.request(method, members, "").by(canDoTasks)
}

// become plays a call that has to become a task, and returns the task's id.
func (s *stage) become(t *testing.T, d door, x *exchange) string {
	t.Helper()
	a := s.provoke(t, d, x.by(canDoTasks))
	if err := all(wellFormed, status(200), taskHandle)(a); err != nil {
		t.Fatalf("%v\n%s: %s", err, d.name(), a)
	}
	return unquoted(a.result("taskId"))
}

// until waits for a task to reach a status, and returns the answer that shows it.
func (s *stage) until(t *testing.T, d door, id, status string) *answer {
	t.Helper()
	return untilShown(t, d, s.about(mcp.MethodGetTask, id, ""), status)
}

// untilShown asks until a task has a status, whoever's it is.
func untilShown(t *testing.T, d door, x *exchange, status string) *answer {
	t.Helper()
	var a *answer
	if !eventually(func() bool {
		a = d.send(t, x)
		now := unquoted(a.result("status"))
		return now != "working" && now != "input_required" || now == status
	}) || unquoted(a.result("status")) != status {
		t.Fatalf("the task is not %s\n%s: %s", status, d.name(), a)
	}
	if err := all(wellFormed, showsTask)(a); err != nil {
		t.Errorf("%v\n%s: %s", err, d.name(), a)
	}
	return a
}

// waitingTask is a task that waits for an answer, and does so for ever.
func (s *stage) waitingTask(t *testing.T, d door) string {
	t.Helper()
	id := s.become(t, d, s.call("confirm_delete", `{"filename":"a.txt"}`, ""))
	s.until(t, d, id, "input_required")
	return id
}
