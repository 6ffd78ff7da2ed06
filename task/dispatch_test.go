package task_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

func TestMessage(t *testing.T) {
	for _, c := range []struct {
		m    task.Message
		want string
	}{
		{task.Message{ID: "a"}, `{"type":"thaw.task","id":"a"}`},
	} {
		text := c.m.Text()
		back, err := task.ParseMessage(text)
		if text != c.want || err != nil || back != c.m {
			t.Errorf("%+v: %s, back %+v, %v", c.m, text, back, err)
		}
	}
	if m, err := task.ParseMessage(`{"type":"thaw.task","id":"a","later":[1]}`); err != nil || m.ID != "a" {
		t.Errorf("a later version's message: %+v, %v", m, err)
	}
	for _, text := range []string{"", "secret", "null", "[]", `{"id":"a"}`, `{"type":"thaw.task"}`, `{"type":"thaw.task","id":""}`, `{"type":"thaw.task","id":1}`,
		`{"type":"REQUEST","id":"a"}`, `{"type":"thaw.task","id":"a"} {}`, `{"type":"thaw.task","id":"` + strings.Repeat("a", 257) + `"}`} {
		if m, err := task.ParseMessage(text); !errors.Is(err, task.ErrNoMessage) || m != (task.Message{}) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}

// FuzzParseMessage: whatever a queue holds, what is taken for a message reads the same when
// it is sent on.
func FuzzParseMessage(f *testing.F) {
	f.Add(task.Message{ID: "a"}.Text())
	f.Add(`{"type":"thaw.task","id":"\ud800"}`)
	f.Add(`{"TYPE":"thaw.task","Id":"x","id":"y"}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := task.ParseMessage(text)
		if err != nil {
			return
		}
		if back, err := task.ParseMessage(m.Text()); err != nil || back != m {
			t.Errorf("%+v became %+v, %v", m, back, err)
		}
	})
}
