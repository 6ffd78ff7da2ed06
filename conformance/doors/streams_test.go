package doors

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// lambdaTime is the time of functions that a test wants to run out of it.
const lambdaTime = 3 * time.Second

// Progress comes as a stream where the door streams, and an answer comes everywhere.
func TestProgress(t *testing.T) {
	everywhere(t, func(t *testing.T, d door) {
		r := d.open(t, request{method: "tools/call", name: "test_tool_with_progress", progress: true})
		messages := read(t, r)
		want := map[bool]int{true: 4, false: 1}[d.streams]
		if r.StatusCode != http.StatusOK || len(messages) != want || messages[want-1].Result == nil {
			t.Fatalf("%s: %+v, want %d messages", r.Status, messages, want)
		}
		for _, m := range messages[:want-1] {
			if m.Method != "notifications/progress" {
				t.Errorf("%+v", m)
			}
		}
		if kind := r.Header.Get("Content-Type"); (kind == "text/event-stream") != d.streams {
			t.Errorf("content type %s", kind)
		}
	})
}

// What a tool says reaches the client while the tool works.
func TestProgressArrivesAtOnce(t *testing.T) {
	for _, door := range []string{"Function URL", "REST API"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			progressAtOnce(t, door)
		})
	}
}

func progressAtOnce(t *testing.T, door string) {
	f := start(t, deployed, lambdasim.Config{Env: []string{"THAW_LAMBDA_STREAMING=on"}, Concurrency: 1})
	for _, d := range doorsOf(t, f, "on") {
		if d.name != door {
			continue
		}
		s := newStream(d.open(t, request{method: "tools/call", name: "sleep", params: map[string]any{"arguments": map[string]any{"seconds": 2}}, progress: true}).Body)
		if m, err := s.next(); err != nil || m.Method != "notifications/progress" {
			t.Fatalf("%s: %+v, %v", d.name, m, err)
		}
		// The only sandbox there may be is still at work.
		if _, err := f.Invoke(t.Context(), []byte("{}")); err != lambdasim.ErrThrottled {
			t.Errorf("%s: another invocation beside it: %v", d.name, err)
		}
		if m, err := s.next(); err != nil || m.text() != "slept" {
			t.Errorf("%s: %+v, %v", d.name, m, err)
		}
		if m, err := s.next(); err != io.EOF {
			t.Errorf("%s: %+v, %v after the answer", d.name, m, err)
		}
	}
}

// A tool that panics in the middle of its stream has an answer all the same.
func TestPanicInTheStream(t *testing.T) {
	f := start(t, deployed, lambdasim.Config{Env: []string{"THAW_LAMBDA_STREAMING=on"}})
	for _, d := range doorsOf(t, f, "on") {
		m, _ := d.ask(t, request{method: "tools/call", name: "panic_after_event", progress: true})
		if m.Error == nil || m.text() != "panic" {
			t.Errorf("%s: %+v", d.name, m)
		}
	}
	if f.Started() != 1 {
		t.Errorf("%d sandboxes", f.Started())
	}
}

// A client that leaves in the middle of a stream ends neither the function nor another's call.
func TestClientLeavesAStream(t *testing.T) {
	t.Parallel()
	f := start(t, deployed, lambdasim.Config{Env: []string{"THAW_LAMBDA_STREAMING=on"}})
	d := doorsOf(t, f, "on")[0]
	r := d.open(t, request{method: "tools/call", name: "sleep", params: map[string]any{"arguments": map[string]any{"seconds": 60}}, progress: true})
	if m, err := newStream(r.Body).next(); err != nil || m.Method != "notifications/progress" {
		t.Fatalf("%+v, %v", m, err)
	}
	_ = r.Body.Close()
	if m := d.call(t, "echo", map[string]any{"text": "hello"}); m.text() != "hello" || f.Started() != 2 {
		t.Errorf("beside it: %+v from sandbox %d", m, f.Started())
	}
}
