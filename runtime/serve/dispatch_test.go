package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// outbox is a dispatcher whose messages leave the process.
type outbox struct {
	mu   sync.Mutex
	sent []sent
	err  error
}

type sent struct {
	id    string
	after time.Duration
}

// Dispatch implements task.Dispatcher.
func (o *outbox) Dispatch(_ context.Context, id string, after time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, sent{id, after})
	return o.err
}

// far is a place that is sent messages, and keeps no process.
var far = host.Host{Name: "far", Ephemeral: true, Messages: true, Here: func(getenv func(string) string) bool { return getenv("FAR") != "" }}

func postKit(d task.Dispatcher, s task.Store) Kit {
	return Kit{
		Stores: []task.StoreScheme{{Name: "shared", Usage: "shared:", Open: func(context.Context, string) (task.Store, error) { return s, nil }}},
		Dispatch: []task.DispatchScheme{{Name: "post", Usage: "post:BOX", Open: func(_ context.Context, rest string) (task.Dispatcher, error) {
			if rest != "box" {
				return nil, errors.New("no such box")
			}
			return d, nil
		}}},
	}
}

func TestDispatchSetting(t *testing.T) {
	box := &outbox{}
	laptop := host.Host{Name: "local", Facts: resident}
	for _, c := range []struct {
		value string
		at    host.Host
		want  string // of the problem
	}{
		{"local", laptop, ""},
		{"post:box", laptop, ""},
		{"local", host.Host{Name: "far"}, "THAW_DISPATCH=\"local\": no process stays on far; allowed is local, where a process stays; post:BOX"},
		{"post:office", laptop, "no such box"},
		{"pigeon:x", laptop, "this program has no such scheme"},
		{"https://user:hunter2@x/", laptop, "this program has no such scheme"},
	} {
		o, problems := configure(env("THAW_DISPATCH", c.value, "THAW_AUTH", "none", "THAW_STORE", "none", "THAW_STATE_KEY", "none"), environmentOf(c.at, []Kit{postKit(box, nil)}))
		all := strings.Join(problems, "\n")
		if len(problems) > 1 || (c.want == "") != (len(problems) == 0) || !strings.Contains(all, c.want) || strings.Contains(all, "hunter2") {
			t.Errorf("%s: %q", c.value, problems)
		}
		if (o.Dispatcher != nil) != (c.value == "post:box") {
			t.Errorf("%s: dispatcher %v", c.value, o.Dispatcher)
		}
	}
}

// Settings that leave tasks to nobody are told at start.
func TestCheckWork(t *testing.T) {
	laptop := host.Host{Name: "local", Facts: resident}
	asleep := host.Host{Name: "cloudrun"}
	alone, box := memstore.New(nil), &outbox{}
	store := sharedStore{alone}
	for name, c := range map[string]struct {
		o    Options
		at   host.Host
		want []string
	}{
		"nothing":                         {Options{}, laptop, nil},
		"nothing, far":                    {Options{}, far, nil},
		"all in one process":              {Options{Store: store}, laptop, nil},
		"a worker beside an api":          {Options{Store: store, role: roleWorker}, laptop, nil},
		"a worker that is sent messages":  {Options{Store: store, Dispatcher: box, role: roleWorker}, far, nil},
		"all where messages come":         {Options{Store: store, Dispatcher: box}, far, nil},
		"an api that sends":               {Options{Store: store, Dispatcher: box, role: roleAPI}, asleep, nil},
		"a worker without a store":        {Options{role: roleWorker}, laptop, []string{"THAW_ROLE=worker needs a THAW_STORE"}},
		"messages without a store":        {Options{Dispatcher: box}, far, []string{"THAW_DISPATCH needs a THAW_STORE"}},
		"a worker that nobody tells":      {Options{Store: store, role: roleWorker}, far, []string{"THAW_ROLE=worker needs a THAW_DISPATCH on far"}},
		"a worker where no messages come": {Options{Store: store, Dispatcher: box, role: roleWorker}, laptop, []string{"THAW_DISPATCH needs THAW_ROLE=api on local"}},
		"an api that nobody sees":         {Options{Store: alone, role: roleAPI}, laptop, []string{"THAW_ROLE=api needs a THAW_STORE that other processes see"}},
		"a worker that sees nobody":       {Options{Store: alone, role: roleWorker}, laptop, []string{"THAW_ROLE=worker needs a THAW_STORE that other processes see"}},
		"one process alone":               {Options{Store: alone, role: roleAll}, laptop, nil},
		"work where no messages come":     {Options{Store: store, Dispatcher: box}, asleep, []string{"THAW_DISPATCH needs THAW_ROLE=api on cloudrun"}},
	} {
		c.o.Host = c.at.Facts
		problems := checkWork(&c.o, c.at)
		if len(problems) != len(c.want) || !slices.EqualFunc(problems, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, problems, c.want)
		}
	}
}

// What a lost message was about, only the list of what is due finds (tasks rules 5 and 22).
func TestMessagesNeedASweep(t *testing.T) {
	s := thaw.Server{Name: "test"}
	noList := struct{ task.Store }{memstore.New(nil)}
	if _, err := New(s, &Options{Store: noList, Dispatcher: &outbox{}}); !errors.Is(err, errNoSweep) {
		t.Errorf("%v", err)
	}
	if _, err := New(s, &Options{Store: memstore.New(nil), Dispatcher: &outbox{}}); err != nil {
		t.Error(err)
	}
}

// Each role gets from its host what it does, and answers what it should.
func TestRoles(t *testing.T) {
	ran := 0
	for _, c := range []struct {
		role       string
		works, mcp bool
	}{{"", true, true}, {"all", true, true}, {"api", false, true}, {"worker", true, false}} {
		place := far
		place.Serve = func(_ context.Context, a host.App) error {
			if (a.RunTask != nil) != c.works || (a.Sweep != nil) != c.works {
				t.Errorf("role %q: works %t", c.role, a.RunTask != nil)
			}
			for path, ok := range map[string]bool{"/health": true, "/base/health": true, "/mcp": c.mcp, "/base/mcp": c.mcp, "/other": false, "/.well-known/oauth-protected-resource": false} {
				w := httptest.NewRecorder()
				a.HTTP.ServeHTTP(w, httptest.NewRequest("GET", "http://far.example"+path, nil))
				if (w.Code != http.StatusNotFound) != ok {
					t.Errorf("role %q: GET %s: %d %s", c.role, path, w.Code, w.Body)
				}
			}
			return nil
		}
		log := &lockedBuffer{}
		kit := postKit(&outbox{}, sharedStore{memstore.New(nil)})
		kit.Hosts = []host.Host{place}
		p := program{server: testServer(&ran), out: log, err: log, kits: []Kit{kit}, getenv: env("FAR", "1", "THAW_AUTH", "none", "THAW_STATE_KEY", "none",
			"THAW_STORE", "shared:", "THAW_DISPATCH", "post:box", "THAW_ROLE", c.role, "THAW_BASE_PATH", "/base", "THAW_PUBLIC_URL", "https://far.example/mcp")}
		if err := p.serve(t.Context()); err != nil {
			t.Errorf("role %q: %v", c.role, err)
		}
	}
	// A wrong combination is a bad setting.
	if code, _, errs := runProgram(t, testServer(&ran), env("THAW_ROLE", "worker"), "", "check"); code != 2 || !strings.Contains(errs, "THAW_ROLE=worker needs a THAW_STORE") {
		t.Errorf("%d: %s", code, errs)
	}
}

// posted runs f with a server whose messages go to box.
func posted(t *testing.T, tool *thaw.Tool, f func(t *testing.T, h *Handler, box *outbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		box := &outbox{}
		h, log := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool}}, Options{Store: memstore.New(nil), StateKeys: keys(&testKey{secret: "k"}), Dispatcher: box})
		f(t, h, box)
		if t.Failed() {
			t.Log(log)
		}
	})
}

// A task goes on by messages alone: one when it is created, one that waits with it, and none
// for a wait that no message can have, which is the sweep's.
func TestTaskByMessages(t *testing.T) {
	tool := tool1(func(ctx context.Context) (any, error) {
		if err := thaw.Sleep(ctx, "short", time.Minute); err != nil {
			return nil, err
		}
		if err := thaw.Sleep(ctx, "long", time.Hour); err != nil {
			return nil, err
		}
		return "rested", nil
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	posted(t, tool, func(t *testing.T, h *Handler, box *outbox) {
		id := created(t, h, tasking(callT()))
		run := func(want int, last sent) {
			t.Helper()
			if len(box.sent) != want || box.sent[want-1] != last {
				t.Fatalf("sent %v, want %d and %v at the end", box.sent, want, last)
			}
			if ack, _ := h.RunTask(t.Context(), id); !ack {
				t.Error("the message was kept")
			}
		}
		run(1, sent{id, 0})
		if ack, after := h.RunTask(t.Context(), id); ack || after != time.Minute {
			t.Errorf("a message that came early: ack %t, after %v", ack, after)
		}
		time.Sleep(time.Minute)
		run(2, sent{id, time.Minute})
		if len(box.sent) != 2 {
			t.Errorf("sent %v for an hour", box.sent)
		}
		time.Sleep(time.Hour)
		if err := h.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		run(3, sent{id, 0})
		if s := got(t, h, id); s["status"] != "completed" {
			t.Errorf("%v", s)
		}
	})
}

// A task that no worker can ever be told of fails at once (tasks rule 7); any other failure
// to send is healed by the sweep.
func TestUnreachableWorkers(t *testing.T) {
	tool := tool1(func(context.Context) (any, error) { return "done", nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	posted(t, tool, func(t *testing.T, h *Handler, box *outbox) {
		box.err = task.ErrUndeliverable
		if s := got(t, h, created(t, h, tasking(callT()))); s["status"] != "failed" || s["statusMessage"] != "No worker can be reached." {
			t.Errorf("%v", s)
		}
		box.err = errors.New("slow down")
		id := created(t, h, tasking(callT()))
		if s := got(t, h, id); s["status"] != "working" {
			t.Errorf("%v", s)
		}
		box.err, box.sent = nil, nil
		time.Sleep(31 * time.Second)
		if err := h.Sweep(t.Context()); err != nil || !slices.Equal(box.sent, []sent{{id, 0}}) {
			t.Errorf("%v, sent %v", err, box.sent)
		}
	})
	h, _ := newHandler(t, thaw.Server{}, Options{})
	if err := h.Sweep(t.Context()); err == nil {
		t.Error("a sweep without a store")
	}
}

// A worker that has no time left begins nothing, which would count as its death.
func TestNoTimeLeft(t *testing.T) {
	tool := tool1(func(context.Context) (any, error) { return "done", nil }, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
		id := created(t, h, tasking(callT()))
		for _, c := range []struct {
			left time.Duration
			ack  bool
		}{{time.Second, false}, {taskReserve, false}, {taskReserve, false}, {taskReserve + time.Second, true}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.left)
			if ack, _ := h.RunTask(ctx, id); ack != c.ack {
				t.Errorf("%v left: ack %t", c.left, ack)
			}
			cancel()
		}
		if s := got(t, h, id); s["status"] != "completed" {
			t.Errorf("%v", s)
		}
	})
}

// The message of a run is hidden at its claim and with each heartbeat, and not after it
// (tasks rule 9).
func TestMessageIsHidden(t *testing.T) {
	tool := tool1(func(ctx context.Context) (any, error) {
		return thaw.Step(ctx, "work", func(context.Context) (string, error) { time.Sleep(50 * time.Second); return "done", nil })
	}, &thaw.ToolOptions{Tasks: thaw.TaskAlways})
	for _, failing := range []error{nil, errors.New("denied")} {
		posted(t, tool, func(t *testing.T, h *Handler, _ *outbox) {
			id := created(t, h, tasking(callT()))
			began := time.Now()
			var at []time.Duration
			ctx := host.WithVisibility(t.Context(), func(_ context.Context, d time.Duration) error {
				if d != 70*time.Second {
					t.Errorf("hidden for %v", d)
				}
				at = append(at, time.Since(began))
				return failing
			})
			if ack, _ := h.RunTask(ctx, id); !ack {
				t.Error("the message was kept")
			}
			time.Sleep(time.Hour)
			if !slices.Equal(at, []time.Duration{0, 20 * time.Second, 40 * time.Second}) {
				t.Errorf("hidden at %v", at)
			}
		})
	}
}
