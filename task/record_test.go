package task_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// fullHead has something in every field that a test of ours could forget.
func fullHead() task.Head {
	zone := time.FixedZone("elsewhere", 2*3600)
	at := func(minute int) time.Time { return time.Date(2026, 7, 28, 12, minute, 0, 123_999_999, zone) }
	return task.Head{
		ID: "t-1", Tool: "tool", Traceparent: "00-trace", Format: 1, Revision: 2, Version: 3,
		Status: task.Working, Phase: task.Running, Owner: [32]byte{1}, Created: at(1), Updated: at(2), Expires: at(3),
		Poll: time.Second + time.Millisecond - 1, Message: "message", Epoch: 4, Claims: 5, Worker: "worker", LeaseUntil: at(4),
		Interrupted: 6, Sends: 7, Sent: at(5), Wake: at(6), Journal: 8,
		Asked:   []task.Asked{{Key: "a", Epoch: 1, Digest: [16]byte{1}}, {Key: "b", Inline: []byte("inline")}},
		Outcome: &task.OutcomeRef{Epoch: 9, Inline: []byte("outcome")},
	}
}

func TestHeadKept(t *testing.T) {
	h := fullHead()
	value := reflect.ValueOf(h)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Fatalf("fullHead has no %s", value.Type().Field(i).Name)
		}
	}
	kept := h.Kept()
	for i := range value.NumField() {
		name, before, after := value.Type().Field(i).Name, value.Field(i).Interface(), reflect.ValueOf(kept).Field(i).Interface()
		switch before := before.(type) {
		case time.Time:
			want := before.UTC().Truncate(time.Millisecond)
			if after := after.(time.Time); !after.Equal(want) || after.Location() != time.UTC || after.Nanosecond() != 123_000_000 {
				t.Errorf("%s is %v, want %v", name, after, want)
			}
		case time.Duration:
			if after.(time.Duration) != before.Truncate(time.Millisecond) {
				t.Errorf("%s is %v", name, after)
			}
		default:
			if !reflect.DeepEqual(before, after) {
				t.Errorf("%s is %v, want %v", name, after, before)
			}
		}
	}

	kept.Asked[0].Key, kept.Asked[1].Inline[0], kept.Outcome.Epoch, kept.Outcome.Inline[0] = "changed", 'X', 99, 'X'
	if want := fullHead(); !reflect.DeepEqual(h, want) {
		t.Errorf("Kept shares with its head: %+v", h)
	}
	if zero := (task.Head{Asked: []task.Asked{}}).Kept(); !reflect.DeepEqual(zero, task.Head{}) {
		t.Errorf("of nothing is kept %+v", zero)
	}
	old := task.Head{Created: time.Date(1969, 7, 20, 20, 17, 40, 999_999_999, time.UTC)}.Kept()
	if want := time.Date(1969, 7, 20, 20, 17, 40, 999_000_000, time.UTC); !old.Created.Equal(want) {
		t.Errorf("before 1970: %v, want %v", old.Created, want)
	}
}

func TestHeadEqual(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*task.Head)
		want bool
	}{
		{"the same", func(*task.Head) {}, true},
		{"another zone", func(h *task.Head) { h.Created = h.Created.In(time.FixedZone("there", -3600)) }, true},
		{"within the millisecond", func(h *task.Head) { h.Wake = h.Wake.Truncate(time.Millisecond) }, true},
		{"a millisecond later", func(h *task.Head) { h.Wake = h.Wake.Add(time.Millisecond) }, false},
		{"version", func(h *task.Head) { h.Version++ }, false},
		{"worker", func(h *task.Head) { h.Worker = "other" }, false},
		{"no wake", func(h *task.Head) { h.Wake = time.Time{} }, false},
		{"no outcome", func(h *task.Head) { h.Outcome = nil }, false},
		{"outcome in a part", func(h *task.Head) { h.Outcome.Inline = nil }, false},
		{"an empty question, inline", func(h *task.Head) { h.Asked[0].Inline = []byte{} }, false},
		{"asked in another order", func(h *task.Head) { h.Asked[0], h.Asked[1] = h.Asked[1], h.Asked[0] }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := fullHead(), fullHead()
			c.edit(&b)
			if a.Equal(b) != c.want || b.Equal(a) != c.want {
				t.Errorf("equal %t, want %t", a.Equal(b), c.want)
			}
		})
	}
}
