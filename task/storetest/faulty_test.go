package storetest_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

func withoutFaults(testing.TB) func() task.Store {
	s := memstore.New(nil)
	return func() task.Store {
		return &storetest.Faulty{Store: s, Fault: func(string) (before, after error) { return nil, nil }}
	}
}

func TestFaultyWithoutFaults(t *testing.T) {
	t.Run("Uses", func(t *testing.T) { storetest.Uses(t, withoutFaults) })
	t.Run("Store", func(t *testing.T) { storetest.Store(t, withoutFaults) })
}

func TestFaulty(t *testing.T) {
	lost := errors.New("lost")
	at := time.Now()
	u := task.Use{Call: "c", Round: 1, Write: [16]byte{1}, Deadline: at, Expires: at.Add(time.Hour)}
	other := u
	other.Write = [16]byte{2}
	h := task.Head{ID: "t", Version: 1, Wake: at}
	next := h
	next.Version = 2

	claim := func(s task.Store, u task.Use) bool {
		first, _, _ := s.Claim(t.Context(), u)
		return first
	}
	for method, c := range map[string]struct {
		before  func(s task.Store) error
		call    func(s task.Store) (any, error)
		none    any                     // what a failed call answers
		applied func(s task.Store) bool // nil: it only reads
	}{
		"Claim": {
			call: func(s task.Store) (any, error) {
				first, prev, err := s.Claim(t.Context(), u)
				return []any{first, prev}, err
			},
			none:    []any{false, task.Used{}},
			applied: func(s task.Store) bool { return !claim(s, other) },
		},
		"Finish": {
			before:  func(s task.Store) error { _, _, err := s.Claim(t.Context(), u); return err },
			call:    func(s task.Store) (any, error) { return nil, s.Finish(t.Context(), u, nil) },
			applied: func(s task.Store) bool { return !claim(s, u) },
		},
		"Release": {
			before:  func(s task.Store) error { _, _, err := s.Claim(t.Context(), u); return err },
			call:    func(s task.Store) (any, error) { return nil, s.Release(t.Context(), u) },
			applied: func(s task.Store) bool { return claim(s, other) },
		},
		"Create": {
			call:    func(s task.Store) (any, error) { return nil, s.Create(t.Context(), h, task.Part{Data: []byte("call")}) },
			applied: func(s task.Store) bool { _, err := s.Head(t.Context(), "t"); return err == nil },
		},
		"Commit": {
			before:  func(s task.Store) error { return s.Create(t.Context(), h) },
			call:    func(s task.Store) (any, error) { return nil, s.Commit(t.Context(), at, next) },
			applied: func(s task.Store) bool { got, _ := s.Head(t.Context(), "t"); return got.Version == 2 },
		},
		"Head": {
			before: func(s task.Store) error { return s.Create(t.Context(), h) },
			call:   func(s task.Store) (any, error) { return s.Head(t.Context(), "t") },
			none:   task.Head{},
		},
		"Parts": {
			before: func(s task.Store) error { return s.Create(t.Context(), h, task.Part{Data: []byte("call")}) },
			call:   func(s task.Store) (any, error) { return s.Parts(t.Context(), "t", task.PartCall, "", 0, 0) },
			none:   []task.Part(nil),
		},
		"Due": {
			before: func(s task.Store) error { return s.Create(t.Context(), h) },
			call:   func(s task.Store) (any, error) { return s.(task.Sweeper).Due(t.Context(), at, task.Shard("t"), 1) },
			none:   []string(nil),
		},
	} {
		for _, applied := range []bool{false, true} {
			name := "request lost"
			if applied {
				name = "answer lost"
			}
			t.Run(method+"/"+name, func(t *testing.T) {
				inner := memstore.New(nil)
				if c.before != nil {
					if err := c.before(inner); err != nil {
						t.Fatal(err)
					}
				}
				var asked []string
				got, err := c.call(&storetest.Faulty{Store: inner, Fault: func(method string) (before, after error) {
					asked = append(asked, method)
					if applied {
						return nil, lost
					}
					return lost, nil
				}})
				if !errors.Is(err, lost) || !reflect.DeepEqual(got, c.none) {
					t.Errorf("%v, %v; want the fault alone", got, err)
				}
				if !reflect.DeepEqual(asked, []string{method}) {
					t.Errorf("asked about %q", asked)
				}
				if c.applied != nil && c.applied(inner) != applied {
					t.Errorf("applied is %t, want %t", !applied, applied)
				}
			})
		}
	}
}

func TestFaultyOverNoSweeper(t *testing.T) {
	bare := struct{ task.Store }{memstore.New(nil)}
	s := &storetest.Faulty{Store: bare, Fault: func(string) (before, after error) { return nil, nil }}
	if ids, err := s.Due(t.Context(), time.Now(), 0, 1); err == nil || ids != nil || !strings.Contains(err.Error(), "is no task.Sweeper") {
		t.Errorf("%v, %v", ids, err)
	}
}
