package task_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// asks has the task wait for questions with these keys.
func asks(keys ...string) task.Run {
	return func(context.Context, *task.Claim) task.Result {
		p := &task.Park{}
		for _, k := range keys {
			p.Questions = append(p.Questions, task.Question{Key: k, Data: []byte("question " + k)})
		}
		return task.Result{Park: p}
	}
}

// judge takes "yes" alone.
func judge(question, answer []byte) error {
	if string(answer) != "yes" {
		return fmt.Errorf("not an answer to %s", question)
	}
	return nil
}

func (w *world) outstanding() string {
	w.Helper()
	s, err := w.api.Get(w.Context(), id, owner)
	if err != nil {
		w.Fatal(err)
	}
	var keys []string
	for _, q := range s.Questions {
		if string(q.Data) != "question "+q.Key {
			w.Errorf("question %q is %q", q.Key, q.Data)
		}
		keys = append(keys, q.Key)
	}
	return strings.Join(keys, " ")
}

func TestRule13Updates(t *testing.T) {
	yes, no := []byte("yes"), []byte("no")
	for name, c := range map[string]struct {
		answers  map[string][]byte
		wrong    string // key of the error
		left     string // outstanding
		messages int
	}{
		"nothing":              {left: "a b"},
		"unknown keys, unread": {answers: map[string][]byte{"c": no, "": no}, left: "a b"},
		"some":                 {answers: map[string][]byte{"b": yes}, left: "a"},
		"all":                  {answers: map[string][]byte{"a": yes, "b": yes, "c": no}, messages: 1},
		"one is wrong":         {answers: map[string][]byte{"a": yes, "b": no}, wrong: "b", left: "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				p := w.worker()
				p.wantWork(asks("a", "b"), true)
				w.queue.take()
				before := w.head()
				err := w.api.Update(w.Context(), id, owner, c.answers, judge)
				var wrong *task.InvalidAnswer
				if c.wrong == "" && err != nil || c.wrong != "" && (!errors.As(err, &wrong) || wrong.Key != c.wrong) {
					w.Fatalf("%v", err)
				}
				if left := w.outstanding(); left != c.left {
					w.Errorf("outstanding are %q, want %q", left, c.left)
				}
				after := w.head()
				if (c.left == "a b") != after.Equal(before) {
					w.Errorf("was written: %t", !after.Equal(before))
				}
				if !after.Equal(before) && !after.Updated.After(before.Updated) {
					w.Error("lastUpdatedAt did not grow")
				}
				if n := w.queue.take(); n != c.messages {
					w.Errorf("%d messages", n)
				}
				if c.left == "" {
					w.want(task.Working, task.Ready)
				} else {
					w.want(task.InputRequired, task.Asking)
				}
			})
		})
	}
	t.Run("nothing outstanding", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			w.queue.take()
			time.Sleep(32 * time.Second)
			if err := w.api.Update(w.Context(), id, owner, map[string][]byte{"a": no}, judge); err != nil {
				w.Error(err)
			}
			if n := w.queue.take(); n != 1 {
				w.Errorf("%d messages: it is claimable and to be healed", n)
			}
			p := w.worker()
			p.wantWork(p.program(""), true)
			before := w.head()
			if err := w.api.Update(w.Context(), id, owner, map[string][]byte{"a": no}, judge); err != nil || !w.head().Equal(before) {
				w.Errorf("%v: %+v", err, w.head())
			}
		})
	})
	t.Run("the first answer stays", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			p := w.worker()
			p.wantWork(asks("a"), true)
			for _, answer := range []string{"first", "second"} {
				if err := w.api.Update(w.Context(), id, owner, map[string][]byte{"a": []byte(answer)}, anything); err != nil {
					w.Fatal(err)
				}
			}
			p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
				if answers, err := c.Answers(ctx); err != nil || string(answers["a"]) != "first" {
					w.Errorf("%q, %v", answers, err)
				}
				return p.program("")(ctx, c)
			}, true)
		})
	})
	t.Run("a cancellation wins", func(t *testing.T) {
		everywhere(t, func(w *world) {
			w.create()
			w.worker().wantWork(asks("a"), true)
			p := w.worker()
			p.faulty(func(method string) (error, error) {
				if method == "Commit" { // has just read that a is outstanding
					p.faulty(nil)
					if err := w.api.Cancel(w.Context(), id, owner); err != nil {
						w.Error(err)
					}
				}
				return nil, nil
			})
			if err := p.engine.Update(w.Context(), id, owner, map[string][]byte{"a": yes}, judge); err != nil {
				w.Error(err)
			}
			w.want(task.Cancelled, task.Ready)
		})
	})
}

func TestRule12QuestionsOfAnySize(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		sizes := map[string]int{"none": 0, "some": 1500, "more": 600, "most": 500_000}
		w.worker().wantWork(func(context.Context, *task.Claim) task.Result {
			p := &task.Park{}
			for _, k := range []string{"none", "some", "more", "most"} {
				p.Questions = append(p.Questions, task.Question{Key: k, Data: []byte(strings.Repeat("x", sizes[k]))})
			}
			return task.Result{Park: p}
		}, true)
		s, err := w.api.Get(w.Context(), id, owner)
		if err != nil || len(s.Questions) != len(sizes) {
			w.Fatalf("%d questions, %v", len(s.Questions), err)
		}
		for _, q := range s.Questions {
			if len(q.Data) != sizes[q.Key] {
				w.Errorf("%s has %d bytes", q.Key, len(q.Data))
			}
		}
	})
}

func TestRule15WhatEndsLateStaysReadable(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"completed": func(w *world) { p := w.worker(); p.wantWork(p.program(""), true) },
		"cancelled": func(w *world) {
			if err := w.api.Cancel(w.Context(), id, owner); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(w *world) {
				w.create()
				time.Sleep(24*time.Hour - time.Minute)
				end(w)
				time.Sleep(time.Hour - time.Millisecond)
				if s, err := w.api.Get(w.Context(), id, owner); err != nil || string(s.Head.Status) != name {
					w.Errorf("%s, %v", s.Head.Status, err)
				}
				time.Sleep(time.Millisecond)
				if _, err := w.api.Get(w.Context(), id, owner); !errors.Is(err, task.ErrNotFound) {
					w.Errorf("%v", err)
				}
			})
		})
	}
}

func TestRule15ATaskExpiresInMidRun(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		time.Sleep(24*time.Hour - 10*time.Second)
		p := w.worker()
		p.wantWork(func(ctx context.Context, c *task.Claim) task.Result {
			time.Sleep(11 * time.Second)
			if err := c.Record(w.Context(), []byte("S")); !errors.Is(err, task.ErrLost) {
				w.Errorf("record: %v", err)
			}
			if !errors.Is(context.Cause(ctx), task.ErrLost) {
				w.Errorf("the run goes on: %v", context.Cause(ctx))
			}
			return task.Result{Outcome: &task.Outcome{Status: task.Completed}}
		}, false)
		p.wantWork(none, true)
		w.sweep()
		if _, err := w.api.Get(w.Context(), id, owner); !errors.Is(err, task.ErrNotFound) {
			w.Errorf("%v", err)
		}
	})
}

// A task that is not the owner's is one that never was (T-47).
func TestRule16ForeignIsUnknown(t *testing.T) {
	everywhere(t, func(w *world) {
		w.create()
		w.worker().wantWork(asks("a"), true)
		before := w.head()
		other := owner
		other[31]++
		for name, call := range map[string]func(id string, owner [32]byte) error{
			"get": func(id string, owner [32]byte) error { _, err := w.api.Get(w.Context(), id, owner); return err },
			"update": func(id string, owner [32]byte) error {
				return w.api.Update(w.Context(), id, owner, map[string][]byte{"a": []byte("yes")}, judge)
			},
			"cancel": func(id string, owner [32]byte) error { return w.api.Cancel(w.Context(), id, owner) },
		} {
			foreign, unknown := call(id, other), call("unknown", owner)
			if !errors.Is(foreign, task.ErrNotFound) || !errors.Is(unknown, task.ErrNotFound) {
				w.Errorf("%s: %v, %v", name, foreign, unknown)
			}
		}
		if !w.head().Equal(before) {
			w.Errorf("%+v", w.head())
		}
	})
}

func TestRule17OutcomesOfAnySize(t *testing.T) {
	for _, size := range []int{0, 2048, 2049, 1_000_000} {
		everywhere(t, func(w *world) {
			w.create()
			data := strings.Repeat("x", size)
			w.worker().wantWork(func(_ context.Context, c *task.Claim) task.Result {
				return task.Result{Outcome: &task.Outcome{Status: task.Completed, Message: strings.Repeat("ü", 300), Data: []byte(data)}}
			}, true)
			s, err := w.api.Get(w.Context(), id, owner)
			if err != nil || s.Outcome == nil || string(s.Outcome) != data {
				w.Errorf("%d bytes of %d, %v", len(s.Outcome), size, err)
			}
			if m := s.Head.Message; len(m) > 512 || !strings.HasSuffix(m, "ü…") {
				w.Errorf("message of %d bytes", len(m))
			}
		})
	}
}
