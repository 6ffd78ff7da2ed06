package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task/memstore"
)

const canTasks = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// tasking makes p a request of a client that knows tasks.
func tasking(p post) post {
	var meta map[string]any
	_ = json.Unmarshal([]byte(canTasks), &meta)
	p.meta = meta
	return p
}

// taskMethod is a request about a task.
func taskMethod(method, id string, more ...string) post {
	p := tasking(post{method: method, params: map[string]any{"taskId": id}, headers: map[string]string{"Mcp-Name": id}})
	if len(more) > 0 {
		p.params["inputResponses"] = json.RawMessage(more[0])
	}
	return p
}

// working runs f with a server whose tasks are worked on.
func working(t *testing.T, tools []*thaw.Tool, o Options, f func(t *testing.T, h *Handler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.Store == nil {
			o.Store = memstore.New(nil)
		}
		if o.StateKeys == nil {
			o.StateKeys = keys(&testKey{secret: "k"})
		}
		o.Host = resident
		h, log := newHandler(t, thaw.Server{Tools: tools}, o)
		ctx, stop := context.WithCancel(t.Context())
		var w sync.WaitGroup
		w.Go(func() { _ = h.Work(ctx) })
		f(t, h)
		stop()
		w.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
}

// created is the id of the task that p became.
func created(t testing.TB, h *Handler, p post) string {
	t.Helper()
	r := do(t, h, p.request(t)).result(t)
	id, _ := r["taskId"].(string)
	if r["resultType"] != "task" || id == "" {
		t.Fatalf("no task: %v", r)
	}
	return id
}

// got is the task as tasks/get shows it.
func got(t *testing.T, h *Handler, id string) map[string]any {
	t.Helper()
	return do(t, h, taskMethod("tasks/get", id).request(t)).result(t)
}

func TestTaskLife(t *testing.T) {
	steps := 0
	tool := tool1(func(ctx context.Context) (any, error) {
		if err := thaw.Do(ctx, "one", func(context.Context) error { steps++; return nil }); err != nil {
			return nil, err
		}
		thaw.Progress(ctx, 1, 3, "asking")
		ok, err := thaw.Confirm(ctx, "sure", "Sure?")
		if err != nil {
			return nil, err
		}
		if err := thaw.Sleep(ctx, "nap", time.Hour); err != nil {
			return nil, err
		}
		if err := thaw.Do(ctx, "two", func(context.Context) error { steps++; return nil }); err != nil {
			return nil, err
		}
		return fmt.Sprint("sure: ", ok), nil
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	working(t, []*thaw.Tool{tool}, Options{}, func(t *testing.T, h *Handler) {
		id := created(t, h, tasking(callT()))
		if len(id) != 36 || id[14] != '8' {
			t.Errorf("id %q", id)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		asked := got(t, h, id)
		if asked["status"] != "input_required" || asked["statusMessage"] != "1 of 3: asking" || asked["ttlMs"] != float64(24*time.Hour/time.Millisecond) {
			t.Errorf("%v", asked)
		}
		if question := asked["inputRequests"].(map[string]any)["sure"].(map[string]any); question["method"] != "elicitation/create" {
			t.Errorf("%v", question)
		}
		// An unknown key, a wrong shape, and then the answer (T-30).
		for _, c := range []struct {
			responses string
			code      int
		}{{`{"unknown-key":{"ignored":true}}`, 0}, {`{"sure":12345}`, mcp.CodeInvalidParams}, {`{"sure":{"action":"accept"}}`, 0}} {
			if a := do(t, h, taskMethod("tasks/update", id, c.responses).request(t)); a.code() != c.code {
				t.Errorf("%s: %s", c.responses, a.raw)
			}
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if s := got(t, h, id); s["status"] != "working" || s["inputRequests"] != nil {
			t.Errorf("%v", s)
		}
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		end := got(t, h, id)
		if end["status"] != "completed" || !strings.Contains(fmt.Sprint(end["result"]), "sure: true") || steps != 2 {
			t.Errorf("%v after %d steps", end, steps)
		}
		if r := end["result"].(map[string]any); r["resultType"] != "complete" {
			t.Errorf("%v", r)
		}
		if a := do(t, h, taskMethod("tasks/cancel", id).request(t)); a.code() != 0 { // T-36
			t.Errorf("%s", a.raw)
		}
	})
}

func TestTaskEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(ctx context.Context) (any, error)
		status string
		want   string
	}{
		"tool error":     {func(context.Context) (any, error) { return nil, thaw.Errorf("no luck") }, "completed", "no luck"},
		"masked":         {func(context.Context) (any, error) { return nil, errors.New("secret") }, "completed", "t failed (reference "},
		"protocol error": {func(context.Context) (any, error) { return nil, &mcp.Error{Code: 77, Message: "own"} }, "failed", "own"},
		"panic":          {func(context.Context) (any, error) { panic("boom") }, "failed", "Internal error (reference "},
		"misuse": {func(ctx context.Context) (any, error) {
			_ = thaw.Do(ctx, "", nil)
			return "swallowed", nil
		}, "failed", "is broken"},
		"timeout": {func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, "completed", "timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			tool := tool1(c.end, &thaw.ToolOptions{Tasks: thaw.TaskAlways, Timeout: time.Minute})
			working(t, []*thaw.Tool{tool}, Options{}, func(t *testing.T, h *Handler) {
				id := created(t, h, tasking(callT()))
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if s := got(t, h, id); s["status"] != c.status || !strings.Contains(fmt.Sprint(s["result"], s["error"]), c.want) {
					t.Errorf("%v", s)
				}
			})
		})
	}
}

// Whether a call becomes a task (T-03 to T-05).
func TestTaskModes(t *testing.T) {
	handler := func(ctx context.Context) (any, error) {
		if err := thaw.ContinueAsTask(ctx); err != nil {
			return nil, err
		}
		return thaw.CallInfoFrom(ctx).TaskID != "", nil
	}
	for name, c := range map[string]struct {
		mode  thaw.TaskMode
		knows bool
		want  string
	}{
		"on demand":                {thaw.TaskOnDemand, true, `"resultType":"task"`},
		"on demand, client cannot": {thaw.TaskOnDemand, false, `"text":"false"`},
		"always":                   {thaw.TaskAlways, true, `"resultType":"task"`},
		"always, client cannot":    {thaw.TaskAlways, false, `"text":"false"`},
		"required":                 {thaw.TaskRequired, true, `"resultType":"task"`},
		"required, client cannot":  {thaw.TaskRequired, false, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
		"never":                    {thaw.TaskNever, true, `"text":"false"`},
	} {
		t.Run(name, func(t *testing.T) {
			working(t, []*thaw.Tool{tool1(handler, &thaw.ToolOptions{Tasks: c.mode})}, Options{}, func(t *testing.T, h *Handler) {
				p := asks(callT())
				if c.knows {
					p = tasking(callT())
				}
				if a := do(t, h, p.request(t)); !strings.Contains(a.raw, c.want) {
					t.Errorf("%s", a.raw)
				}
			})
		})
	}
}

// A foreign id, an unknown one and one that is no id are the same, byte for byte.
func TestTaskOfNobody(t *testing.T) {
	working(t, []*thaw.Tool{tool1(func(context.Context) (any, error) { return "x", nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})}, Options{}, func(t *testing.T, h *Handler) {
		answers := map[string]bool{}
		for _, id := range []string{"00000000-0000-8000-8000-000000000000", "x", strings.Repeat("a", 129), "a b"} {
			for _, p := range []post{taskMethod("tasks/get", id), taskMethod("tasks/update", id, "{}"), taskMethod("tasks/cancel", id)} {
				a := do(t, h, p.request(t))
				answers[fmt.Sprint(a.status, a.raw)] = true
			}
		}
		if len(answers) != 1 {
			t.Errorf("%v", answers)
		}
		p := taskMethod("tasks/get", "gate-test")
		p.meta = nil
		if a := do(t, h, p.request(t)); a.code() != mcp.CodeMissingCapability || a.status != 400 { // T-07
			t.Errorf("%s", a.raw)
		}
	})
}
