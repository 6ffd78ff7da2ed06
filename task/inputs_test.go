package task_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

// The input requests of Tasks, and the event that tells of their answers.

// heard collects what a subscriber got, as key=response.
func heard(s *task.Tasks) (got func() []string, stop func()) {
	var mu sync.Mutex
	var all []string
	stop = s.OnInputResponse(func(r task.InputResponse) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, fmt.Sprintf("%s=%s", r.Key, r.Response))
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(all)
		return slices.Clone(all)
	}, stop
}

func wantHeard(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("heard %v, want %v", got, want)
	}
}

func tasksAsk(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "k", `{"method":"elicitation/create"}`)
	if i := is(t, p.open(), id, task.InputRequired, "k"); string(i.InputRequests["k"]) != `{"method":"elicitation/create"}` {
		t.Errorf("%s", i.InputRequests["k"])
	}
	none := begun(t, s)
	ok(t, s.SetInputRequests(t.Context(), none, nil))
	is(t, s, none, task.Working)
}

func tasksAskAnything(t *testing.T, p *place) {
	s := p.open()
	large := `"` + strings.Repeat("x", 5000) + `"`
	requests := raws("a/b #1 ü", large, " ", "1", strings.Repeat("k", 200), large, "k", "null")
	id := begun(t, s)
	ok(t, s.SetInputRequests(t.Context(), id, requests))
	i := is(t, p.open(), id, task.InputRequired, slices.Sorted(maps.Keys(requests))...)
	for key, want := range requests {
		if string(i.InputRequests[key]) != string(want) {
			t.Errorf("%q: %d bytes, want %d", key, len(i.InputRequests[key]), len(want))
		}
	}
	if err := s.SetInputRequests(t.Context(), id, raws("", "1")); err == nil {
		t.Error("an empty key")
	}
}

func tasksMerge(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "a", "1", "b", "2")
	ok(t, p.open().SetInputRequests(t.Context(), id, raws("c", "3", "b", "2")))
	if i := is(t, s, id, task.InputRequired, "a", "b", "c"); string(i.InputRequests["a"]) != "1" || string(i.InputRequests["c"]) != "3" {
		t.Errorf("%v", i.InputRequests)
	}
}

func tasksResolve(t *testing.T, p *place) {
	s := p.open()
	got, _ := heard(s)
	id := begun(t, s, "a", "1", "b", "2", "c", "3")
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("a", `"yes"`, "b", `"no"`, "never asked", "0")))
	wantHeard(t, got(), `a="yes"`, `b="no"`)
	is(t, p.open(), id, task.InputRequired, "c")
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("c", `"last"`)))
	wantHeard(t, got(), `a="yes"`, `b="no"`, `c="last"`)
	is(t, p.open(), id, task.Working)
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("c", `"late"`)))
	is(t, s, id, task.Working)
}

func tasksRaiseAfter(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "k", "1")
	raised := 0
	s.OnInputResponse(func(r task.InputResponse) {
		raised++
		if r.Task != id {
			t.Errorf("task %q", r.Task)
		}
		is(t, s, id, task.Working)
	})
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("k", "2")))
	if raised != 1 {
		t.Errorf("raised %d times", raised)
	}
}

func tasksRaiseElsewhere(t *testing.T, p *place) {
	asker, resolver, stranger := p.open(), p.open(), p.open()
	got, _ := heard(asker)
	other, _ := heard(stranger)
	id := begun(t, asker, "a", "1", "b", "2")
	ok(t, resolver.ResolveInputRequests(t.Context(), id, raws("a", `"here"`)))
	ok(t, asker.Look(t.Context()))
	wantHeard(t, got(), `a="here"`)
	ok(t, resolver.ResolveInputRequests(t.Context(), id, raws("b", `"there"`)))
	ok(t, resolver.SetCompleted(t.Context(), id, []byte("1")))
	for range 2 {
		ok(t, asker.Look(t.Context()))
		ok(t, stranger.Look(t.Context()))
	}
	wantHeard(t, got(), `a="here"`, `b="there"`)
	wantHeard(t, other())
}

func tasksKeyOnce(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "k", "1")
	if err := s.SetInputRequests(t.Context(), id, raws("k", "2", "new", "3")); err == nil || !strings.Contains(err.Error(), `"k"`) {
		t.Errorf("%v", err)
	}
	is(t, s, id, task.InputRequired, "k")
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("k", "true")))
	ok(t, s.SetInputRequests(t.Context(), id, raws("k", "1")))
	is(t, s, id, task.Working)
}

func tasksRestarted(t *testing.T, p *place) {
	id := begun(t, p.open(), "k", "1")
	ok(t, p.open().ResolveInputRequests(t.Context(), id, raws("k", "true")))
	again := p.open()
	got, _ := heard(again)
	ok(t, again.SetInputRequests(t.Context(), id, raws("k", "1")))
	ok(t, again.Look(t.Context()))
	wantHeard(t, got(), "k=true")
}

func tasksFirstAnswer(t *testing.T, p *place) {
	s := p.open()
	got, _ := heard(s)
	id := begun(t, s, "k", "1", "other", "1")
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("k", `"first"`)))
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("k", `"second"`, "other", "2")))
	wantHeard(t, got(), `k="first"`, "other=2")
}

func tasksSubscribers(t *testing.T, p *place) {
	s := p.open()
	id := begun(t, s, "a", "1", "b", "2")
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("a", "true")))
	ok(t, s.Look(t.Context()))
	one, stop := heard(s)
	two, _ := heard(s)
	ok(t, s.Look(t.Context()))
	stop()
	ok(t, s.ResolveInputRequests(t.Context(), id, raws("b", "true")))
	wantHeard(t, one(), "a=true")
	wantHeard(t, two(), "a=true", "b=true")
}

func TestTasksWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(nil)
		var down atomic.Bool
		asker := task.NewTasks(&storetest.Faulty{Store: store, Fault: func(method string) (before, after error) {
			if method == "Head" && down.Load() {
				return errors.New("the network"), nil
			}
			return nil, nil
		}}, &task.TasksOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		got, _ := heard(asker)
		id := begun(t, asker, "k", "1")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- asker.Watch(ctx) }()
		synctest.Wait()
		down.Store(true)
		ok(t, task.NewTasks(store, nil).ResolveInputRequests(t.Context(), id, raws("k", "true")))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantHeard(t, got())
		down.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		wantHeard(t, got(), "k=true")
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
