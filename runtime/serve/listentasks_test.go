package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// watching is a listen request for these tasks.
func watching(ids ...string) post {
	return tasking(post{method: "subscriptions/listen", id: `"sub"`, params: map[string]any{"notifications": map[string]any{"taskIds": append([]string{}, ids...)}}})
}

// heard is an event stream inside a bubble, as the client has it.
type heard struct {
	http.ResponseWriter // for the headers
	lockedBuffer
	leave  context.CancelFunc
	ended  atomic.Bool
	before int
}

func (s *heard) Write(p []byte) (int, error) { return s.lockedBuffer.Write(p) }

// Flush implements http.Flusher.
func (s *heard) Flush() {}

// hear opens a stream. It ends with ctx, or when the client leaves.
func hear(ctx context.Context, t *testing.T, h *Handler, p post) *heard {
	t.Helper()
	s := &heard{ResponseWriter: httptest.NewRecorder()}
	ctx, s.leave = context.WithCancel(ctx)
	t.Cleanup(s.leave)
	r := p.request(t).WithContext(ctx)
	go func() { h.ServeHTTP(s, r); s.ended.Store(true) }()
	return s
}

// more are the messages since it was asked last.
func (s *heard) more(t *testing.T) (messages []map[string]any) {
	t.Helper()
	synctest.Wait()
	text := s.String()[s.before:]
	s.before += len(text)
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		messages = append(messages, m)
	}
	return messages
}

// told is the one task that a stream tells of, without what every notification has.
func told(t *testing.T, messages []map[string]any) map[string]any {
	t.Helper()
	if len(messages) != 1 || messages[0]["method"] != "notifications/tasks" {
		t.Fatalf("%v", messages)
	}
	shown := messages[0]["params"].(map[string]any)
	if meta := fmt.Sprint(shown["_meta"]); meta != "map[io.modelcontextprotocol/subscriptionId:sub]" || shown["resultType"] != nil {
		t.Errorf("%v", shown)
	}
	delete(shown, "_meta")
	return shown
}

// acknowledged are the ids that a stream will tell of; the rest of its first message is right.
func acknowledged(t *testing.T, messages []map[string]any) string {
	t.Helper()
	if len(messages) == 0 || messages[0]["method"] != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%v", messages)
	}
	return fmt.Sprint(messages[0]["params"].(map[string]any)["notifications"])
}

// T-40, T-41, T-43, T-44: a stream of one process tells what another one's worker does, as
// tasks/get would show it, and nothing that a client cannot see.
func TestListenTasks(t *testing.T) {
	tools := []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
		thaw.Progress(ctx, 1, 3, "asking")
		if _, err := thaw.Confirm(ctx, "sure", "Sure?"); err != nil {
			return nil, err
		}
		thaw.Progress(ctx, 2, 3, "working")
		err := thaw.Do(ctx, "long", func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Minute): // of heartbeats
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		return "done", err
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})}
	store := memstore.New(nil)
	o := identified()
	o.Store, o.StateKeys = store, keys(&testKey{secret: "k"})
	working(t, tools, Options{Store: store, Auth: o.Auth}, func(t *testing.T, worker *Handler) {
		idle, _ := newHandler(t, thaw.Server{Tools: tools}, o) // whose Work nobody calls
		id := created(t, worker, tasking(callT()).as("alice-token"))
		foreign := created(t, worker, tasking(callT()).as("guest-token"))
		show := func() map[string]any {
			t.Helper()
			shown := do(t, idle, taskMethod("tasks/get", id).as("alice-token").request(t)).result(t)
			delete(shown, "resultType")
			delete(shown, "_meta")
			return shown
		}
		same := func(messages []map[string]any) map[string]any {
			t.Helper()
			shown := told(t, messages)
			if want := show(); fmt.Sprint(shown) != fmt.Sprint(want) {
				t.Errorf("got  %v\nwant %v", shown, want)
			}
			return shown
		}
		time.Sleep(time.Second)
		s := hear(t.Context(), t, idle, watching("no id at all!", foreign, id, id, "00000000-0000-8000-8000-000000000000").as("alice-token"))
		messages := s.more(t)
		if got := acknowledged(t, messages); got != "map[taskIds:["+id+"]]" {
			t.Error(got)
		}
		// The state that was reached before.
		if shown := same(messages[1:]); shown["status"] != "input_required" || shown["inputRequests"] == nil || shown["statusMessage"] != "1 of 3: asking" {
			t.Errorf("%v", shown)
		}
		time.Sleep(time.Minute)
		if messages := s.more(t); len(messages) != 0 {
			t.Errorf("nothing has changed: %v", messages)
		}
		do(t, idle, taskMethod("tasks/update", id, `{"sure":{"action":"accept"}}`).as("alice-token").request(t)).result(t)
		time.Sleep(taskPoll)
		if shown := same(s.more(t)); shown["status"] != "working" {
			t.Errorf("%v", shown)
		}
		// The worker's process finds the task with a sweep. The message comes with a heartbeat,
		// and then nothing for many of them.
		time.Sleep(time.Minute)
		if shown := same(s.more(t)); shown["statusMessage"] != "2 of 3: working" {
			t.Errorf("%v", shown)
		}
		time.Sleep(8 * time.Minute)
		if messages := s.more(t); len(messages) != 0 {
			t.Errorf("heartbeats were told: %v", messages)
		}
		time.Sleep(2 * time.Minute)
		if shown := same(s.more(t)); shown["status"] != "completed" || !strings.Contains(fmt.Sprint(shown["result"]), "done") {
			t.Errorf("%v", shown)
		}
		time.Sleep(time.Hour)
		if messages := s.more(t); len(messages) != 0 || s.ended.Load() {
			t.Errorf("%v, ended: %t", messages, s.ended.Load())
		}
		idle.Drain() // L-12
		if messages := s.more(t); len(messages) != 1 || messages[0]["id"] != "sub" || messages[0]["result"] == nil || !s.ended.Load() {
			t.Errorf("%v", messages)
		}
	})
}

// What one look finds is told of each task, in the order of the filter, and a task that
// expires is not.
func TestListenTasksSeveral(t *testing.T) {
	var began atomic.Int32
	tool := tool1(func(ctx context.Context) (any, error) {
		return began.Add(1), thaw.Sleep(ctx, "nap", time.Hour)
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways, TaskTTL: 2 * time.Hour})
	working(t, []*thaw.Tool{tool}, Options{}, func(t *testing.T, h *Handler) {
		var ids []string
		for range 3 {
			ids = append(ids, created(t, h, tasking(callT())))
		}
		time.Sleep(time.Second)
		s := hear(t.Context(), t, h, watching(ids...))
		if messages := s.more(t); len(messages) != 4 || acknowledged(t, messages) != fmt.Sprintf("map[taskIds:%v]", ids) {
			t.Errorf("%v", messages)
		}
		do(t, h, taskMethod("tasks/cancel", ids[1]).request(t)).result(t)
		time.Sleep(taskPoll)
		if shown := told(t, s.more(t)); shown["taskId"] != ids[1] || shown["status"] != "cancelled" {
			t.Errorf("%v", shown)
		}
		time.Sleep(time.Hour + 2*time.Second)
		if messages := s.more(t); len(messages) != 2 {
			t.Errorf("%v", messages)
		}
		late := hear(t.Context(), t, h, watching(ids...))
		if messages := late.more(t); len(messages) != 4 {
			t.Errorf("%v", messages)
		}
		time.Sleep(3 * time.Hour)
		if messages := hear(t.Context(), t, h, watching(ids...)).more(t); len(messages) != 1 || acknowledged(t, messages) != "map[taskIds:[]]" {
			t.Errorf("%v", messages)
		}
		s.leave() // L-11
		synctest.Wait()
		if !s.ended.Load() {
			t.Error("the stream goes on without its client")
		}
	})
}

func TestListenTasksParams(t *testing.T) {
	working(t, nil, Options{}, func(t *testing.T, h *Handler) { // listen is served although no list is offered
		for filter, code := range map[string]int{
			`{"taskIds":"x"}`:    mcp.CodeInvalidParams,
			`{"taskIds":null}`:   mcp.CodeInvalidParams,
			`{"taskIds":[1]}`:    mcp.CodeInvalidParams,
			`{"taskIds":["",1]}`: mcp.CodeInvalidParams,
			`{"taskIds":[` + strings.Repeat(`"x",`, 100) + `"x"]}`: mcp.CodeInvalidParams,
			`{"taskIds":["` + strings.Repeat("x", 200_000) + `"]}`: mcp.CodeInvalidParams,
		} {
			p := watching()
			p.params["notifications"] = json.RawMessage(filter)
			if a := do(t, h, p.request(t)); a.code() != code {
				t.Errorf("%.60s: %.200s", filter, a.raw)
			}
		}
		for _, ids := range []string{`[]`, `["x"]`, `7`} { // T-42
			p := watching()
			p.meta, p.params["notifications"] = nil, json.RawMessage(`{"taskIds":`+ids+`}`)
			if a := do(t, h, p.request(t)); a.status != 400 || a.code() != mcp.CodeMissingCapability ||
				!strings.Contains(a.raw, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
				t.Errorf("%s: %s", ids, a.raw)
			}
		}
		s := hear(t.Context(), t, h, watching())
		if messages := s.more(t); len(messages) != 1 || acknowledged(t, messages) != "map[taskIds:[]]" {
			t.Errorf("%v", messages)
		}
		plain := watching()
		plain.meta, plain.params["notifications"] = nil, json.RawMessage(`{}`)
		if messages := hear(t.Context(), t, h, plain).more(t); acknowledged(t, messages) != "map[]" {
			t.Errorf("%v", messages)
		}
		h.Drain()
	})
}

// Where the extension is off the member is one of those that are not known.
func TestListenTasksWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
		p := watching("x")
		p.meta = nil
		if messages := hear(t.Context(), t, h, p).more(t); acknowledged(t, messages) != "map[]" {
			t.Errorf("%v", messages)
		}
		h.Drain()
	})
}

// nowhere is a task.Dispatcher whose messages reach nobody.
type nowhere struct{}

func (nowhere) Dispatch(context.Context, string, time.Duration) error { return nil }

// L-12: where an instance is paid for while it waits, a stream ends in order after a minute,
// and everywhere before the platform cuts it off.
func TestListenEndsInOrder(t *testing.T) {
	function := host.Facts{Streaming: true}
	for name, c := range map[string]struct {
		facts host.Facts
		limit time.Duration // of the platform; 0: none
		lives time.Duration
	}{
		"function":             {function, 0, time.Minute},
		"function, 15 minutes": {function, 15 * time.Minute, time.Minute},
		"function, 30 seconds": {function, 30 * time.Second, 29 * time.Second},
		"process, 15 minutes":  {resident, 15 * time.Minute, 15*time.Minute - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _ := newHandler(t, thaw.Server{}, Options{Host: c.facts, Store: memstore.New(nil), Dispatcher: nowhere{}})
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				s := hear(ctx, t, h, watching("x"))
				time.Sleep(c.lives - time.Millisecond)
				if messages := s.more(t); len(messages) != 1 || s.ended.Load() {
					t.Errorf("%v", messages)
				}
				time.Sleep(time.Millisecond)
				if messages := s.more(t); len(messages) != 1 || messages[0]["id"] != "sub" || messages[0]["result"] == nil || !s.ended.Load() {
					t.Errorf("%v", messages)
				}
			})
		})
	}
	t.Run("a host that cannot stream", func(t *testing.T) {
		h, _ := newHandler(t, thaw.Server{}, Options{Store: memstore.New(nil), Dispatcher: nowhere{}})
		if a := do(t, h, watching("x").request(t)); a.status != 404 || a.code() != mcp.CodeMethodNotFound { // L-15
			t.Errorf("%s", a.raw)
		}
	})
}

// sick is a store that fails while it is down.
type sick struct {
	task.Store
	heads, parts atomic.Bool
}

var errDown = errors.New("the table secret-table is down")

func (s *sick) Head(ctx context.Context, id string) (task.Head, error) {
	if s.heads.Load() {
		return task.Head{}, errDown
	}
	return s.Store.Head(ctx, id)
}

func (s *sick) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	if s.parts.Load() && k == task.PartOutcome {
		return nil, errDown
	}
	return s.Store.Parts(ctx, id, k, name, from, to)
}

func (s *sick) Due(ctx context.Context, before time.Time, shard, limit int) ([]string, error) {
	return s.Store.(task.Sweeper).Due(ctx, before, shard, limit)
}

// A store that fails for a while delays what is told and loses nothing.
func TestListenTasksOutage(t *testing.T) {
	store := &sick{Store: memstore.New(nil)}
	tool := tool1(func(ctx context.Context) (any, error) {
		return strings.Repeat("x", 10_000), thaw.Sleep(ctx, "nap", time.Minute)
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	working(t, []*thaw.Tool{tool}, Options{Store: store}, func(t *testing.T, h *Handler) {
		id := created(t, h, tasking(callT()))
		store.heads.Store(true)
		if a := do(t, h, watching(id).request(t)); a.status != 503 || a.header.Get("Retry-After") == "" || strings.Contains(a.raw, "secret") {
			t.Errorf("%s", a.raw)
		}
		store.heads.Store(false)
		s := hear(t.Context(), t, h, watching(id))
		if messages := s.more(t); len(messages) != 2 {
			t.Fatalf("%v", messages)
		}
		store.heads.Store(true)
		time.Sleep(10 * time.Second)
		store.heads.Store(false)
		store.parts.Store(true)
		time.Sleep(2 * time.Minute)
		if messages := s.more(t); len(messages) != 0 {
			t.Errorf("%v", messages)
		}
		store.parts.Store(false)
		time.Sleep(taskPoll)
		if shown := told(t, s.more(t)); shown["status"] != "completed" || len(fmt.Sprint(shown["result"])) < 10_000 {
			t.Errorf("%v", shown)
		}
		s.leave()
	})
}

// A stream does not outlive its credential by much (L-18): it ends in order, and tells nothing more.
func TestListenEndsWithItsCredential(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *tokens)
		ends   bool
	}{
		"taken away":            {func(s *tokens) { delete(s.callers, "alice-token") }, true},
		"another's now":         {func(s *tokens) { s.callers["alice-token"] = person("mallory") }, true},
		"still good":            {func(*tokens) {}, false},
		"not to be judged now":  {func(s *tokens) { s.down = true }, false},
		"with other scopes now": {func(s *tokens) { s.callers["alice-token"] = person("alice") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			tool := tool1(func(ctx context.Context) (any, error) { return nil, thaw.Sleep(ctx, "nap", 5*time.Minute) }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
			var now atomic.Pointer[tokens]
			now.Store(people())
			scheme := schemeFunc(func(r *http.Request) (thaw.Principal, bool, error) { return now.Load().Authenticate(r) })
			working(t, []*thaw.Tool{tool}, Options{Auth: []auth.Scheme{scheme}}, func(t *testing.T, h *Handler) {
				as := map[string]string{"Authorization": "Bearer alice-token"}
				call := tasking(callT())
				call.headers = as
				p := watching(created(t, h, call))
				p.headers = as
				stream := hear(t.Context(), t, h, p)
				stream.more(t)
				time.Sleep(30 * time.Second)
				after := people()
				c.change(after)
				now.Store(after)
				time.Sleep(recheckEvery)
				last := stream.more(t)
				if c.ends != stream.ended.Load() || c.ends != (len(last) == 1 && last[0]["result"] != nil) {
					t.Errorf("ended %t: %v", stream.ended.Load(), last)
				}
				time.Sleep(5 * time.Minute)
				if more := stream.more(t); c.ends == (len(more) > 0) {
					t.Errorf("then %v", more)
				}
			})
		})
	}
}
