package storetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/storetest"
)

func TestFaultyWithoutFaults(t *testing.T) {
	storetest.Uses(t, func(testing.TB) func() task.Store {
		s := memstore.New(nil)
		return func() task.Store {
			return &storetest.Faulty{Store: s, Fault: func(string) (before, after error) { return nil, nil }}
		}
	})
}

func TestFaulty(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		name    string
		method  string
		applied bool
	}{
		{"claim lost", "Claim", false},
		{"answer to a claim lost", "Claim", true},
		{"finish lost", "Finish", false},
		{"answer to a finish lost", "Finish", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := memstore.New(nil)
			var asked []string
			s := &storetest.Faulty{Store: inner, Fault: func(method string) (before, after error) {
				asked = append(asked, method)
				switch {
				case method != c.method:
					return nil, nil
				case c.applied:
					return nil, lost
				}
				return lost, nil
			}}
			u := task.Use{Call: "c", Round: 1, Write: [16]byte{1}, Deadline: time.Now(), Expires: time.Now().Add(time.Hour)}
			first, prev, err := s.Claim(t.Context(), u)
			if c.method == "Claim" {
				if !errors.Is(err, lost) || first || prev.Round != 0 {
					t.Fatalf("first=%t prev=%+v err=%v, want the fault alone", first, prev, err)
				}
			} else if err != nil || !first {
				t.Fatalf("first=%t err=%v, want first", first, err)
			} else if err := s.Finish(t.Context(), u, []byte("answer")); !errors.Is(err, lost) {
				t.Fatalf("%v, want the fault", err)
			}
			if asked[len(asked)-1] != c.method {
				t.Errorf("asked about %q", asked)
			}

			other := u
			other.Write = [16]byte{2}
			first, prev, err = inner.Claim(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			if c.method == "Claim" && first == c.applied || c.method == "Finish" && prev.Done != c.applied {
				t.Errorf("then first=%t prev=%+v; applied should be %t", first, prev, c.applied)
			}
		})
	}
}
