package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

// place is where tasks are kept: each opens one process's Tasks on it.
type place struct {
	store func() task.Store
	now   time.Time
}

func (p *place) open() *task.Tasks { return p.openOn(p.store()) }

func (p *place) openOn(s task.Store) *task.Tasks {
	return task.NewTasks(s, &task.TasksOptions{Now: func() time.Time { return p.now }})
}

func raws(pairs ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return m
}

// begun is a new task, with these requests outstanding.
func begun(t *testing.T, s *task.Tasks, requests ...string) string {
	t.Helper()
	i, err := s.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) > 0 {
		ok(t, s.SetInputRequests(t.Context(), i.ID, raws(requests...)))
	}
	return i.ID
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is checks the status of a task and the keys that are outstanding.
func is(t *testing.T, s *task.Tasks, id string, status task.Status, keys ...string) task.Info {
	t.Helper()
	i, err := s.Get(t.Context(), id)
	if got := slices.Sorted(maps.Keys(i.InputRequests)); err != nil || i.Status != status || !slices.Equal(got, keys) {
		t.Errorf("%s with %v, %v; want %s with %v", i.Status, got, err, status, keys)
	}
	return i
}

// The contract IMcpTaskStore, sentence by sentence, and what this one says beside it.
func TestTasks(t *testing.T) {
	cases := []struct {
		name string
		run  func(*testing.T, *place)
	}{
		{"Create: a unique id, initially Working, with timing metadata", tasksCreate},
		{"Create: durable, and a Get in another process resolves", func(t *testing.T, p *place) { is(t, p.open(), begun(t, p.open()), task.Working) }},
		{"Get: the current state, or that the task does not exist", tasksGet},
		{"SetCompleted: stores the result and moves to Completed", tasksCompleted},
		{"SetFailed: stores the error and moves to Failed", tasksFailed},
		{"SetCancelled: moves to Cancelled and says true; false if there is no task or it has ended", tasksCancelled},
		{"SetInputRequests: adds requests and moves to InputRequired", tasksAsk},
		{"SetInputRequests: keys are arbitrary and values of any size", tasksAskAnything},
		{"SetInputRequests: merges with those that are pending", tasksMerge},
		{"ResolveInputRequests: removes what matches and raises the event for each", tasksResolve},
		{"ResolveInputRequests: raises after the state is updated", tasksRaiseAfter},
		{"ResolveInputRequests: the originating process is notified", tasksRaiseElsewhere},
		{"thread-safe", tasksAtOnce},

		{"what has ended stays as it ended", tasksEnded},
		{"what is no JSON is refused and nothing changes", tasksNoJSON},
		{"a key is of one request for the task's life", tasksKeyOnce},
		{"an executor that was restarted asks again and gets the answer", tasksRestarted},
		{"of two answers the first counts", tasksFirstAnswer},
		{"answers wait for a subscriber, and stop ends it", tasksSubscribers},
		{"lost answers of the store change nothing", tasksLostAnswers},
		{"no engine works on it and none shows it", tasksNoEngine},
		{"a task expires", tasksExpire},
	}
	for name, backend := range map[string]func(t *testing.T) func() task.Store{
		"memstore": func(t *testing.T) func() task.Store {
			s := memstore.New(nil)
			return func() task.Store { return s }
		},
		"sqlitestore": func(t *testing.T) func() task.Store {
			path := filepath.Join(t.TempDir(), "tasks.db")
			return func() task.Store {
				s, err := sqlitestore.Open(path, nil)
				ok(t, err)
				t.Cleanup(func() { ok(t, s.Close()) })
				return s
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, &place{backend(t), time.Now().UTC().Truncate(time.Millisecond)}) })
			}
		})
	}
}

func tasksCreate(t *testing.T, p *place) {
	s := p.open()
	a, err := s.Create(t.Context())
	ok(t, err)
	b, err := s.Create(t.Context())
	ok(t, err)
	if a.ID == b.ID || len(a.ID) < 26 || a.Status != task.Working || !a.Created.Equal(p.now) || !a.Updated.Equal(p.now) || a.TTL != 24*time.Hour || a.Poll != time.Second {
		t.Errorf("%+v, %+v", a, b)
	}
	got, err := s.Get(t.Context(), a.ID)
	if want := fmt.Sprint(a); err != nil || fmt.Sprint(got) != want {
		t.Errorf("%+v, %v, want %s", got, err, want)
	}
	for ttl, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, -1: 0} {
		i, err := task.NewTasks(p.store(), &task.TasksOptions{TTL: ttl, Poll: time.Minute}).Create(t.Context())
		if err != nil || i.TTL != want || i.Poll != time.Minute {
			t.Errorf("ttl %v: %+v, %v", ttl, i, err)
		}
	}
}

func tasksGet(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s)
	for _, other := range []string{"", "a b", id + "x", strings.ToLower(id)} {
		if _, err := s.Get(t.Context(), other); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%q: %v", other, err)
		}
		for what, err := range map[string]error{
			"complete": s.SetCompleted(t.Context(), other, []byte("1")), "fail": s.SetFailed(t.Context(), other, []byte("1")),
			"ask": s.SetInputRequests(t.Context(), other, raws("k", "1")), "resolve": s.ResolveInputRequests(t.Context(), other, raws("k", "1")),
		} {
			if !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s %q: %v", what, other, err)
			}
		}
	}
}

func tasksCompleted(t *testing.T, p *place) {
	for _, result := range []string{`{"resultType":"complete","content":[]}`, `"` + strings.Repeat("long ", 10_000) + `"`} {
		s := p.open()
		id := begun(t, s, "k", `{"method":"x"}`)
		before := is(t, s, id, task.InputRequired, "k")
		ok(t, s.SetCompleted(t.Context(), id, []byte(result)))
		if i := is(t, p.open(), id, task.Completed); string(i.Result) != result || i.Error != nil || !i.Updated.After(before.Updated) {
			t.Errorf("%d bytes, error %s", len(i.Result), i.Error)
		}
	}
}

func tasksFailed(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s)
	ok(t, s.SetFailed(t.Context(), id, []byte(`{"code":-32603}`)))
	if i := is(t, p.open(), id, task.Failed); string(i.Error) != `{"code":-32603}` || i.Result != nil {
		t.Errorf("%s, %s", i.Error, i.Result)
	}
}

func tasksCancelled(t *testing.T, p *place) {
	s := p.open()
	id, asking, completed := begun(t, s), begun(t, s, "k", "1"), begun(t, s)
	ok(t, s.SetCompleted(t.Context(), completed, []byte("1")))
	for _, c := range []struct {
		id   string
		want bool
	}{{id, true}, {id, false}, {asking, true}, {completed, false}, {"nobody", false}} {
		if did, err := s.SetCancelled(t.Context(), c.id); did != c.want || err != nil {
			t.Errorf("%t, %v; want %t", did, err, c.want)
		}
	}
	is(t, s, id, task.Cancelled)
	is(t, s, asking, task.Cancelled)
	is(t, s, completed, task.Completed)
}

func tasksAtOnce(t *testing.T, p *place) {
	s := p.open()
	got, _ := heard(s)
	id := begun(t, s)
	const n = 12
	var w sync.WaitGroup
	var want, cancelled []string
	for i := range n {
		key := fmt.Sprintf("k%02d", i)
		want = append(want, key+"=1")
		w.Go(func() {
			if err := s.SetInputRequests(t.Context(), id, raws(key, "0")); err != nil {
				t.Error(err)
			}
			if err := s.ResolveInputRequests(t.Context(), id, raws(key, "1")); err != nil {
				t.Error(err)
			}
		})
	}
	w.Wait()
	is(t, s, id, task.Working)
	if all := slices.Compact(got()); !slices.Equal(all, want) {
		t.Errorf("heard %v", all)
	}
	var mu sync.Mutex
	for i := range n {
		w.Go(func() {
			did, err := s.SetCancelled(t.Context(), id)
			if err != nil {
				t.Error(err)
			}
			if did {
				mu.Lock()
				defer mu.Unlock()
				cancelled = append(cancelled, fmt.Sprint(i))
			}
		})
	}
	w.Wait()
	if len(cancelled) != 1 {
		t.Errorf("%d have cancelled it", len(cancelled))
	}
}

func tasksEnded(t *testing.T, p *place) {
	s := p.open()
	ends := map[task.Status]func(id string) error{
		task.Completed: func(id string) error { return s.SetCompleted(t.Context(), id, []byte(`"first"`)) },
		task.Failed:    func(id string) error { return s.SetFailed(t.Context(), id, []byte(`"first"`)) },
		task.Cancelled: func(id string) error { _, err := s.SetCancelled(t.Context(), id); return err },
	}
	for status, end := range ends {
		id := begun(t, s, "k", "1")
		ok(t, end(id))
		before := is(t, s, id, status)
		for what, err := range map[string]error{
			"complete": s.SetCompleted(t.Context(), id, []byte(`"second"`)),
			"fail":     s.SetFailed(t.Context(), id, []byte(`"second"`)),
			"ask":      s.SetInputRequests(t.Context(), id, raws("other", "1")),
		} {
			if !errors.Is(err, task.ErrEnded) {
				t.Errorf("%s what is %s: %v", what, status, err)
			}
		}
		ok(t, s.ResolveInputRequests(t.Context(), id, raws("k", "2"))) // ignored
		if after := is(t, s, id, status); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%+v, was %+v", after, before)
		}
	}
}

func tasksNoJSON(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "k", "1")
	for what, err := range map[string]error{
		"complete": s.SetCompleted(t.Context(), id, []byte("{")), "fail": s.SetFailed(t.Context(), id, nil),
		"ask": s.SetInputRequests(t.Context(), id, raws("other", "x")), "resolve": s.ResolveInputRequests(t.Context(), id, raws("k", "")),
	} {
		if err == nil || !strings.Contains(err.Error(), "has to be JSON") {
			t.Errorf("%s: %v", what, err)
		}
	}
	is(t, s, id, task.InputRequired, "k")
}

// Each call of the store fails once, applied or not, and no operation shows it.
func tasksLostAnswers(t *testing.T, p *place) {
	for _, applied := range []bool{false, true} {
		failing := map[string]bool{}
		lost := errors.New("the network")
		s := p.openOn(&storetest.Faulty{Store: p.store(), Fault: func(method string) (before, after error) {
			if (method != "Create" && method != "Commit") || !failing[method] {
				failing[method] = true
				return nil, nil
			}
			failing[method] = false
			if applied {
				return nil, lost
			}
			return lost, nil
		}})
		got, _ := heard(s)
		for range 2 { // so that each operation meets it
			id := begun(t, s, "k", "1")
			ok(t, s.ResolveInputRequests(t.Context(), id, raws("k", "true")))
			ok(t, s.SetCompleted(t.Context(), id, []byte("1")))
			is(t, s, id, task.Completed)
			id = begun(t, s)
			if did, err := s.SetCancelled(t.Context(), id); !did || err != nil {
				t.Errorf("%t, %v", did, err)
			}
		}
		wantHeard(t, got(), "k=true", "k=true")
	}
}

func tasksNoEngine(t *testing.T, p *place) {
	store := p.store()
	s := p.openOn(store)
	e := task.New(store, &task.Options{Now: func() time.Time { return p.now }})
	ids := []string{begun(t, s), begun(t, s, "k", "1")}
	p.now = p.now.Add(time.Hour)
	if looked, err := e.Sweep(t.Context()); looked > 0 || err != nil {
		t.Errorf("%d are due, %v", looked, err)
	}
	for _, id := range ids {
		v := e.Work(t.Context(), id, func(context.Context, *task.Claim) task.Result {
			t.Error("a worker has it")
			return task.Result{Release: "not mine"}
		})
		if !v.Ack {
			t.Error("the message stays")
		}
		if _, err := e.Get(t.Context(), id, [32]byte{1}); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("%v", err)
		}
	}
}

func tasksExpire(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "k", "1")
	p.now = p.now.Add(24*time.Hour - time.Minute)
	is(t, s, id, task.InputRequired, "k")
	ended := begun(t, s)
	ok(t, s.SetCompleted(t.Context(), ended, []byte("1")))
	p.now = p.now.Add(time.Minute)
	if _, err := s.Get(t.Context(), id); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if did, err := s.SetCancelled(t.Context(), id); did || err != nil {
		t.Errorf("%t, %v", did, err)
	}
	_, stop := heard(s)
	defer stop()
	ok(t, s.Look(t.Context()))
	is(t, s, ended, task.Completed)
}
