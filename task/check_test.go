package task_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

// wrongIDs are the ids of no task, with what is said of them.
var wrongIDs = map[string]struct{ id, want string }{
	"none":         {"", "0 characters"},
	"too long":     {"secret" + strings.Repeat("x", 123), "129 characters; allowed are 1 to 128"},
	"a path":       {"../secret", "byte 0x2e at 0"},
	"a hash":       {"secret#1", "byte 0x23 at 6"},
	"NUL":          {"secret\x00", "byte 0x00 at 6; allowed are A-Z a-z 0-9 - and _"},
	"space":        {"secret ", "byte 0x20 at 6"},
	"beyond ASCII": {"secreté", "byte 0xc3 at 6"},
}

func TestCheckID(t *testing.T) { // T-25, T-46
	for _, id := range []string{"a", "0", "-", "_", "AZaz09-_", strings.Repeat("x", 128), "019bf2f4-7c1e-8a3b-9d7e-0123456789ab"} {
		if err := task.CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for name, c := range wrongIDs {
		t.Run(name, func(t *testing.T) {
			err := task.CheckID(c.id)
			if !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want ErrNotFound with %q and without the id", err, c.want)
			}
			if err := task.CheckWrite(task.Head{ID: c.id}, nil); err == nil || errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "Head.ID: the id has "+c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("to be written: %v, want %q", err, c.want)
			}
			if err := task.CheckParts(c.id, task.PartCall); !errors.Is(err, task.ErrNotFound) {
				t.Errorf("parts: %v, want ErrNotFound", err)
			}
		})
	}
}

func TestCheckWrite(t *testing.T) {
	const bad = "secret\xff"
	long := strings.Repeat("x", task.MaxName)
	for _, c := range []struct {
		name string
		edit func(*task.Head)
		part task.Part
		want string // "": good
	}{
		{name: "a call"},
		{name: "an entry", part: task.Part{Kind: task.PartEntry, Epoch: 1, Seq: 1 << 31}},
		{name: "a question", part: task.Part{Kind: task.PartQuestion, Epoch: 1, Name: "é\x00#~ "}},
		{name: "an answer", part: task.Part{Kind: task.PartAnswer, Name: long}},
		{name: "an outcome", part: task.Part{Kind: task.PartOutcome, Epoch: 1 << 31, Data: []byte{0xff}}},
		{name: "tool", edit: func(h *task.Head) { h.Tool = bad }, want: "Head.Tool is not UTF-8"},
		{name: "traceparent", edit: func(h *task.Head) { h.Traceparent = bad }, want: "Head.Traceparent is not UTF-8"},
		{name: "status", edit: func(h *task.Head) { h.Status = bad }, want: "Head.Status is not UTF-8"},
		{name: "message", edit: func(h *task.Head) { h.Message = bad }, want: "Head.Message is not UTF-8"},
		{name: "worker", edit: func(h *task.Head) { h.Worker = bad }, want: "Head.Worker is not UTF-8"},
		{name: "asked", edit: func(h *task.Head) { h.Asked = []task.Asked{{}, {Key: bad}} }, want: "Head.Asked[1].Key is not UTF-8"},
		{name: "no such kind", part: task.Part{Kind: 5}, want: "part 2 of 2: there is no kind 5; allowed are 0 to 4"},
		{name: "a question without a name", part: task.Part{Kind: task.PartQuestion}, want: "its name has 0 bytes; allowed are 1 to 900"},
		{name: "an answer without a name", part: task.Part{Kind: task.PartAnswer}, want: "its name has 0 bytes"},
		{name: "a name too long", part: task.Part{Kind: task.PartAnswer, Name: long + "x"}, want: "its name has 901 bytes"},
		{name: "a name that is no text", part: task.Part{Kind: task.PartAnswer, Name: bad}, want: "its name is not UTF-8"},
		{name: "a call with a name", part: task.Part{Name: "secret"}, want: "kind 0 has no name"},
		{name: "an entry with a name", part: task.Part{Kind: task.PartEntry, Name: "secret"}, want: "kind 1 has no name"},
		{name: "an outcome with a number", part: task.Part{Kind: task.PartOutcome, Seq: 1}, want: "kind 4 has no number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := fullHead()
			if c.edit != nil {
				c.edit(&h)
			}
			switch err := task.CheckWrite(h, []task.Part{{Kind: task.PartCall}, c.part}); {
			case c.want == "" && err != nil:
				t.Errorf("%v, want none", err)
			case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "task: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("%v, want one with %q alone", err, c.want)
			}
		})
	}
}

func TestCheckPartsAndDue(t *testing.T) {
	for k := task.PartCall; k <= task.PartOutcome; k++ {
		if err := task.CheckParts("t-1", k); err != nil {
			t.Errorf("kind %d: %v", k, err)
		}
	}
	if err := task.CheckParts("t-1", 5); err == nil || errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "no kind 5") {
		t.Errorf("kind 5: %v", err)
	}
	for _, c := range []struct {
		shard, limit int
		want         string
	}{
		{0, 1, ""}, {task.Shards - 1, 1 << 30, ""},
		{-1, 1, "no shard -1; allowed are 0 to 15"}, {task.Shards, 1, "no shard 16"},
		{0, 0, "the limit is 0; allowed is 1 or more"}, {0, -1, "the limit is -1"},
	} {
		if err := task.CheckDue(c.shard, c.limit); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("shard %d, limit %d: %v, want %q", c.shard, c.limit, err, c.want)
		}
	}
}

// Stores keep tasks under their shard, so it never changes.
func TestShard(t *testing.T) {
	if got := task.Shard("019bf2f4-7c1e-8a3b-9d7e-0123456789ab"); got != 2 {
		t.Errorf("%d, want %d as it always was", got, 2)
	}
	var of [task.Shards]int
	const n = 1600
	for i := range n {
		of[task.Shard(fmt.Sprint("t-", i))]++
	}
	for shard, got := range of {
		if got < n/task.Shards/2 || got > n/task.Shards*2 {
			t.Errorf("shard %d has %d of %d tasks", shard, got, n)
		}
	}
}

func TestConflictSaysNothingOfTheTask(t *testing.T) {
	var err error = &task.Conflict{Now: task.Head{ID: "secret", Message: "secret", Version: 7}}
	if text := fmt.Errorf("commit: %w", err).Error(); text != "commit: task: conflict: the head is at version 7" {
		t.Error(text)
	}
}
