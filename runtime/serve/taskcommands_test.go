package serve

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// toldWorkers notes whom workers are told of.
type toldWorkers struct{ ids []string }

func (s *toldWorkers) Dispatch(_ context.Context, id string, _ time.Duration) error {
	s.ids = append(s.ids, id)
	return nil
}

// onlyDue lists no more than what is due.
type onlyDue struct {
	task.Store
	task.Sweeper
}

// operating is a server with a task in each situation, and its command tasks.
func operating(t *testing.T, hide func(*memstore.Store) task.Store) (run func(args ...string) (code int, out, errs string), ids map[string]string, messages *toldWorkers) {
	t.Helper()
	store := memstore.New(nil)
	messages = &toldWorkers{}
	tool := tool1(func(ctx context.Context) (any, error) {
		if err := thaw.Do(ctx, "one", func(context.Context) error { return nil }); err != nil {
			return nil, err
		}
		if err := thaw.Do(ctx, "two\x1b[2J", func(context.Context) error { return thaw.Errorf("secret failure") }); err == nil {
			return nil, thaw.Errorf("no failure")
		}
		thaw.Progress(ctx, 1, 2, "\x1b[2Jhalf")
		sure, err := thaw.Confirm(ctx, "sure", "Secret question?")
		if err != nil {
			return nil, err
		}
		if sure {
			err = thaw.Sleep(ctx, "nap", time.Hour)
		}
		return "secret result", err
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways, Revision: 3})
	options := func(o *Options) error {
		o.Store, o.StateKeys, o.Host = hide(store), keys(&testKey{secret: "k"}), resident
		if _, ok := o.Store.(task.Sweeper); ok {
			o.Dispatcher, o.role = messages, roleAPI
		}
		return nil
	}
	o := Options{}
	_ = options(&o) // has no error
	h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, o)
	ids = map[string]string{}
	for _, name := range []string{"ready", "asking", "asleep", "completed"} {
		id := created(t, h, tasking(callT()))
		ids[name] = id
		if name == "ready" {
			continue
		}
		h.RunTask(t.Context(), id)
		if answer := map[string]string{"asleep": "true", "completed": "false"}[name]; answer != "" {
			action := map[string]string{"true": "accept", "false": "decline"}[answer]
			do(t, h, taskMethod("tasks/update", id, `{"sure":{"action":"`+action+`"}}`).request(t)).result(t)
			h.RunTask(t.Context(), id)
		}
	}
	messages.ids = nil
	run = func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		p := program{server: thaw.Server{Name: "s", Version: "1", Tools: []*thaw.Tool{tool}}, kits: []Kit{{Configure: options}}, getenv: env(), in: strings.NewReader(""), out: &out, err: &errs}
		code := p.main(t.Context(), append([]string{"tasks"}, args...))
		return code, out.String(), errs.String()
	}
	return run, ids, messages
}

func whole(s *memstore.Store) task.Store { return sharedStore{s} }

func TestTasksList(t *testing.T) {
	run, ids, _ := operating(t, whole)
	code, out, errs := run("ls")
	for name, want := range map[string]string{"ready": "a worker takes it", "asking": "waits for its client", "asleep": "sleeps until 20", "completed": "nothing"} {
		i := strings.Index(out, ids[name])
		if i < 0 {
			t.Fatalf("%s is not listed: exit %d, %q, %q", name, code, out, errs)
		}
		if line, _, _ := strings.Cut(out[i:], "\n"); code != 0 || !strings.Contains(line, want) || !strings.Contains(line, " t ") {
			t.Errorf("%s: exit %d, %q, want %q", name, code, line, want)
		}
	}
	if code, out, _ := run("ls", "-n", "2"); code != 0 || strings.Count(out, "\n") != 4 || !strings.Contains(out, "the last 2; -n says how many") {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestTasksListOfWhatIsDue(t *testing.T) {
	run, ids, _ := operating(t, func(s *memstore.Store) task.Store { return onlyDue{s, s} })
	code, out, _ := run("ls")
	if code != 0 || !strings.Contains(out, "lists only tasks that are due within an hour") {
		t.Errorf("exit %d, %q", code, out)
	}
	ready, asleep := strings.Index(out, ids["ready"]), strings.Index(out, ids["asleep"])
	if ready < 0 || asleep < ready || strings.Contains(out, ids["asking"]) || strings.Contains(out, ids["completed"]) {
		t.Errorf("%q", out)
	}
	run, _, _ = operating(t, func(s *memstore.Store) task.Store { return struct{ task.Store }{s} })
	if code, _, errs := run("ls"); code != 1 || !strings.Contains(errs, "cannot list tasks") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func TestTasksShow(t *testing.T) {
	run, ids, _ := operating(t, whole)
	secrets := []string{"Secret question", "secret failure", "secret result", `"accept"`, "decline"}
	for _, c := range []struct {
		id     string
		want   []string
		values []string // with -values
	}{
		{"asking", []string{"t, revision 3", "input_required", `\x1b[2Jhalf`, "waits for its client", `asks     "sure", `, `0: "one" recorded, 4 bytes`, `1: "two\x1b[2J" failed, `, `2: "sure" asked as "sure"`, "claims   1, interrupted 0"},
			[]string{"Secret question", "secret failure"}},
		{"asleep", []string{"sleeps until", `answer   "sure", `, `"nap" recorded`}, []string{`"accept"`}},
		{"completed", []string{"status   completed", "outcome  completed, "}, []string{"secret result", "decline"}},
	} {
		code, out, errs := run("show", ids[c.id])
		if code != 0 || strings.Contains(out+errs, "\x1b") || slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(out+errs, s) }) {
			t.Errorf("%s: exit %d, %q, %q", c.id, code, out, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", c.id, want, out)
			}
		}
		code, out, _ = run("show", "-values", ids[c.id])
		for _, want := range c.values {
			if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
				t.Errorf("%s with -values: no %q in\n%s", c.id, want, out)
			}
		}
	}
}

func TestTasksCancelAndRedrive(t *testing.T) {
	run, ids, messages := operating(t, whole)
	for _, c := range []struct {
		command, id string
		code        int
		want        string
		sends       bool
	}{
		{"redrive", ids["ready"], 0, "workers are told of it again", true},
		{"redrive", ids["asking"], 1, "next: waits for its client", false},
		{"redrive", ids["asleep"], 1, "next: sleeps until", false},
		{"redrive", ids["completed"], 1, "has ended: completed", false},
		{"redrive", "nobody", 1, "no such task", false},
		{"cancel", ids["asleep"], 0, "cancelled; next: a worker takes it", true}, // to clean up
		{"cancel", ids["asleep"], 0, "has ended already: cancelled", false},
		{"cancel", ids["completed"], 0, "has ended already: completed", false},
		{"cancel", "no id", 1, "no such task", false},
		{"show", "nobody", 1, "no such task", false},
	} {
		messages.ids = nil
		code, out, errs := run(c.command, c.id)
		if was := slices.Equal(messages.ids, []string{c.id}); code != c.code || !strings.Contains(out+errs, c.want) || was != c.sends {
			t.Errorf("%s %s: exit %d, %q, %q, told %v", c.command, c.id, code, out, errs, messages.ids)
		}
	}
}

func TestTasksUsage(t *testing.T) {
	ran := 0
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "tasks takes ls, show, cancel or redrive"},
		{[]string{"eat"}, 2, "tasks takes ls, show, cancel or redrive"},
		{[]string{"ls", "x"}, 2, "takes no arguments"},
		{[]string{"ls", "-n", "0"}, 2, "-n 0; allowed is 1 or more"},
		{[]string{"ls", "-values"}, 2, "usage"},
		{[]string{"show"}, 2, "tasks show takes the id of a task"},
		{[]string{"cancel", "a", "b"}, 2, "tasks cancel takes the id of a task"},
		{[]string{"redrive", "-values", "a"}, 2, "usage"},
		{[]string{"ls"}, 1, "THAW_STORE names no store"},
	} {
		code, out, errs := runProgram(t, testServer(&ran), env(), "", append([]string{"tasks"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %q, %q", c.args, code, out, errs)
		}
	}
	if code, out, _ := runProgram(t, testServer(&ran), env(), "", "help"); code != 0 || !strings.Contains(out, "tasks cancel|redrive ID") {
		t.Errorf("exit %d, %s", code, fmt.Sprintf("%q", out))
	}
}
