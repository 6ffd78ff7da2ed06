package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// InputResponse is an answer to an input request of a task.
type InputResponse struct {
	Task, Key string
	Response  json.RawMessage
}

// ResolveInputRequests takes the requests that are answered from those that are outstanding;
// with the last of them the task is Working again. Then subscribers get each answer that counts:
// of two to one request the first. A key that is not outstanding, and any key of a task that has
// ended, is ignored (T-30, T-35).
func (t *Tasks) ResolveInputRequests(ctx context.Context, id string, responses map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(responses)) {
		if !json.Valid(responses[key]) {
			return fmt.Errorf("task: the response to %q has to be JSON", key)
		}
	}
	var resolved []string // in any try: one may have been applied that seemed to lose
	err := t.change(ctx, id, func(h Head) (Head, []Part, error) {
		next := h
		next.Asked = nil
		var parts []Part
		for _, a := range h.Asked {
			if response, ok := responses[a.Key]; ok {
				resolved = append(resolved, a.Key)
				parts = append(parts, Part{Kind: PartAnswer, Name: a.Key, Data: response})
			} else {
				next.Asked = append(next.Asked, a)
			}
		}
		if len(parts) == 0 {
			return h, nil, nil
		}
		next.Version++
		if len(next.Asked) == 0 {
			next.Status = Working
		}
		touch(&next, t.e.clock())
		return next, parts, nil
	})
	if err != nil || len(resolved) == 0 {
		return err
	}
	t.watch(id, resolved)
	return t.tell(ctx, id)
}

// OnInputResponse has f called with each answer to what was asked or resolved through this
// Tasks, until stop is called: by ResolveInputRequests after it has written, and by Look and Watch
// with what other processes have resolved. It is called at least once for each answer, in no
// order, and by several goroutines at a time if they resolve. Answers are kept for the first
// subscriber.
func (t *Tasks) OnInputResponse(f func(InputResponse)) (stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribed++
	number := t.subscribed
	t.subscribers[number] = f
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subscribers, number)
	}
}

// Watch looks for answers that other processes have resolved every so often, until ctx ends,
// which is its error. What the store fails in is tried again.
func (t *Tasks) Watch(ctx context.Context) error {
	tick := time.NewTicker(t.look)
	defer tick.Stop()
	for {
		if err := t.Look(ctx); err != nil && ctx.Err() == nil {
			t.e.logger.LogAttrs(ctx, slog.LevelWarn, "answers to tasks cannot be looked for", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Look asks the store once for answers to what was asked through this Tasks.
func (t *Tasks) Look(ctx context.Context) error {
	t.mu.Lock()
	ids := slices.Sorted(maps.Keys(t.watched))
	t.mu.Unlock()
	var failed []error
	for _, id := range ids {
		if err := t.tell(ctx, id); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (t *Tasks) watch(id string, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[id] == nil {
		t.watched[id] = map[string]bool{}
	}
	for _, key := range keys {
		t.watched[id][key] = true
	}
}

// tell has subscribers learn which watched keys of a task are answered. What they have got is
// watched no more, nor is a task that has ended.
func (t *Tasks) tell(ctx context.Context, id string) error {
	t.mu.Lock()
	subscribers := slices.Collect(maps.Values(t.subscribers))
	t.mu.Unlock()
	if len(subscribers) == 0 {
		return nil
	}
	h, err := t.head(ctx, id)
	if errors.Is(err, ErrNotFound) {
		t.forget(id)
		return nil
	}
	if err != nil {
		return err
	}
	answers, err := t.e.store.Parts(ctx, id, PartAnswer, "", 0, 0)
	if err != nil {
		return err
	}
	for _, p := range answers {
		// What is outstanding has no answer yet, whatever a lost write has left.
		outstanding := slices.ContainsFunc(h.Asked, func(a Asked) bool { return a.Key == p.Name })
		if outstanding || !t.watches(id, p.Name) {
			continue
		}
		for _, f := range subscribers {
			f(InputResponse{Task: id, Key: p.Name, Response: slices.Clone(p.Data)})
		}
		t.forget(id, p.Name)
	}
	if h.Status.Terminal() {
		t.forget(id)
	}
	return nil
}

func (t *Tasks) watches(id, key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watched[id][key]
}

// forget ends the watch of these keys of a task, or of all.
func (t *Tasks) forget(id string, keys ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		delete(t.watched[id], key)
	}
	if len(keys) == 0 || len(t.watched[id]) == 0 {
		delete(t.watched, id)
	}
}
