package dynamo

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/task"
)

// losing is a Store whose request number at, counted from 0, is applied and loses its answer;
// between that and the next try others do what they want.
func losing(t *testing.T, cfg aws.Config, table string, at int, others func()) *dynamostore.Store {
	return through(t, cfg, table, &network{
		fault: func(n int) *fault {
			if n != at {
				return nil
			}
			return &fault{applied: true, answer: refuse(500, "InternalServerError")}
		},
		lost: others,
	}, time.Minute)
}

// failing is a Store whose requests fail from number at on, without an effect.
func failing(t *testing.T, cfg aws.Config, table string, at int) *dynamostore.Store {
	return through(t, cfg, table, &network{fault: func(n int) *fault {
		if n < at {
			return nil
		}
		return &fault{answer: refuse(500, "InternalServerError")}
	}}, time.Minute)
}

// What others write between two tries of a call does not make it say what is not so.
func TestOthersWriteBetween(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) {
		table := newTable(t, cfg)
		s := open(t, cfg, table)
		for _, c := range []struct {
			name string
			run  func(t *testing.T, id string)
		}{
			{"a task is claimed before its creator knows it is there", func(t *testing.T, id string) {
				claim := edited(head(id), func(h *task.Head) { h.Epoch = 1 })
				lost := losing(t, cfg, table, 1, func() { must(t, s.Commit(t.Context(), now, claim)) })
				must(t, lost.Create(t.Context(), head(id), call("mine"))) // or its client is told that there is none
				is(t, s, claim)
				partsAre(t, s, id, task.PartCall, "mine")
			}},
			{"another commit is written over one that nobody answered", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id)))
				mine := edited(head(id), func(h *task.Head) { h.Worker = "mine" })
				other := edited(mine, func(h *task.Head) { h.Status = task.Cancelled })
				err := losing(t, cfg, table, 0, func() { must(t, s.Commit(t.Context(), now, other)) }).Commit(t.Context(), now, mine)
				var conflict *task.Conflict
				if !errors.As(err, &conflict) || !conflict.Now.Equal(other) { // which shows whose worker it was
					t.Errorf("%v, want a conflict with the other", err)
				}
				is(t, s, other)
			}},
			{"the head that nobody answered about expires", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id)))
				mine := edited(head(id), func(h *task.Head) { h.Expires = now })
				must(t, losing(t, cfg, table, 0, func() {}).Commit(t.Context(), now, mine))
				is(t, s, mine)
			}},
			{"a later round is claimed over a claim", func(t *testing.T, id string) {
				later := use(id, 2, 2)
				lost := losing(t, cfg, table, 0, func() { claimed(t, s, later, true) })
				if first, prev, err := lost.Claim(t.Context(), use(id, 1, 1)); err != nil || first || prev.Round != 2 {
					t.Errorf("first=%t %+v %v, want the later round", first, prev, err)
				}
			}},
			{"the round of a claim is finished by a second try", func(t *testing.T, id string) {
				u := use(id, 1, 1)
				lost := losing(t, cfg, table, 0, func() { must(t, s.Finish(t.Context(), u, []byte("response"))) })
				if first, prev, err := lost.Claim(t.Context(), u); err != nil || first || string(prev.Response) != "response" {
					t.Errorf("first=%t %+v %v, want the response", first, prev, err)
				}
			}},
			{"a later round is claimed over a finished one", func(t *testing.T, id string) {
				u := use(id, 1, 1)
				claimed(t, s, u, true)
				err := losing(t, cfg, table, 0, func() { claimed(t, s, use(id, 2, 2), true) }).Finish(t.Context(), u, nil)
				if err == nil || errors.Is(err, task.ErrNotClaimed) {
					t.Errorf("%v, want an error that leaves open whether it was written", err)
				}
			}},
			{"a released round is claimed anew", func(t *testing.T, id string) {
				u := use(id, 1, 1)
				claimed(t, s, u, true)
				err := losing(t, cfg, table, 0, func() { claimed(t, s, use(id, 1, 2), true) }).Release(t.Context(), u) // with the same answers
				if err == nil || errors.Is(err, task.ErrNotClaimed) {
					t.Errorf("%v, want an error that leaves open whether it was written", err)
				}
				if prev := claimed(t, s, use(id, 1, 3), false); prev.Done {
					t.Errorf("%+v, want the new claim", prev)
				}
			}},
			{"a round is released once", func(t *testing.T, id string) {
				u := use(id, 1, 1)
				claimed(t, s, u, true)
				must(t, losing(t, cfg, table, 0, func() {}).Release(t.Context(), u))
				if err := losing(t, cfg, table, 0, func() {}).Release(t.Context(), use(id, 9, 1)); err == nil {
					t.Error("a round that nobody claimed was released")
				}
			}},
		} {
			t.Run(c.name, func(t *testing.T) { c.run(t, fmt.Sprintf("t-%d", ids.Add(1))) })
		}
	})
}

// What a writer that failed or lost has stored of parts is never in the record of another.
func TestPartsOfOthersDoNotMixIn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) {
		table := newTable(t, cfg)
		s := open(t, cfg, table)
		other := func(id string) task.Head { h := head(id); h.Message = "other"; return h }
		for _, c := range []struct {
			name string
			run  func(t *testing.T, id string)
		}{
			{"a creator that died before the head", func(t *testing.T, id string) {
				if err := failing(t, cfg, table, 3).Create(t.Context(), head(id), call("dead"), entry(0, "dead"), entry(1, "dead")); err == nil {
					t.Fatal("the head was written")
				}
				must(t, s.Create(t.Context(), head(id), call("mine"), entry(0, "mine")))
				partsAre(t, s, id, task.PartCall, "mine")
				partsAre(t, s, id, task.PartEntry, "mine")
			}},
			{"a creator that came too late", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id), call("mine"), entry(0, "mine")))
				if err := s.Create(t.Context(), other(id), call("late"), entry(0, "late")); !errors.Is(err, task.ErrExists) {
					t.Fatal(err)
				}
				partsAre(t, s, id, task.PartCall, "mine")
				partsAre(t, s, id, task.PartEntry, "mine")
			}},
			{"two creators at once", func(t *testing.T, id string) {
				// The second does all of its work when the first has stored its parts.
				n := &network{fault: func(n int) *fault {
					if n != 1 {
						return nil
					}
					return &fault{applied: true, answer: refuse(500, "InternalServerError")}
				}}
				n.lost = func() { must(t, s.Create(t.Context(), other(id), call("second"), entry(0, "second"))) }
				if err := through(t, cfg, table, n, time.Minute).Create(t.Context(), head(id), call("first"), entry(0, "first")); !errors.Is(err, task.ErrExists) {
					t.Fatal(err)
				}
				partsAre(t, s, id, task.PartCall, "second")
				partsAre(t, s, id, task.PartEntry, "second")
			}},
			{"an update that died before the head", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id)))
				next := edited(head(id), func(*task.Head) {})
				if err := failing(t, cfg, table, 1).Commit(t.Context(), now, next, answer("yes")); err == nil {
					t.Fatal("the head was written")
				}
				partsAre(t, s, id, task.PartAnswer)
				must(t, s.Commit(t.Context(), now, next, answer("no"))) // its client has thought better of it
				partsAre(t, s, id, task.PartAnswer, "no")
			}},
			{"an update that lost its swap", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id)))
				next := edited(head(id), func(*task.Head) {})
				late := edited(head(id), func(h *task.Head) { h.Message = "late" })
				must(t, s.Commit(t.Context(), now, next, answer("no")))
				var conflict *task.Conflict
				if err := s.Commit(t.Context(), now, late, answer("yes")); !errors.As(err, &conflict) {
					t.Fatal(err)
				}
				partsAre(t, s, id, task.PartAnswer, "no")
			}},
			{"a commit that died in the middle of a large entry", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id)))
				h := edited(head(id), func(h *task.Head) { h.Journal = 1 })
				must(t, s.Commit(t.Context(), now, h, entry(0, "small")))
				for at := range 2 {
					next := edited(h, func(*task.Head) {})
					if err := failing(t, cfg, table, at).Commit(t.Context(), now, next, task.Part{Kind: task.PartEntry, Epoch: 1, Data: large}); err == nil {
						t.Fatal("the head was written")
					}
					partsAre(t, s, id, task.PartEntry, "small")
				}
			}},
			{"a worker that lost its claim", func(t *testing.T, id string) {
				must(t, s.Create(t.Context(), head(id)))
				claim := edited(head(id), func(h *task.Head) { h.Epoch, h.Journal = 2, 1 })
				must(t, s.Commit(t.Context(), now, claim, task.Part{Kind: task.PartEntry, Epoch: 2, Data: []byte("mine")}))
				late := edited(head(id), func(h *task.Head) { h.Epoch, h.Journal = 1, 1 })
				var conflict *task.Conflict
				if err := s.Commit(t.Context(), now, late, task.Part{Kind: task.PartEntry, Epoch: 1, Data: large}); !errors.As(err, &conflict) {
					t.Fatal(err)
				}
				partsAre(t, s, id, task.PartEntry, "mine")
			}},
		} {
			t.Run(c.name, func(t *testing.T) { c.run(t, fmt.Sprintf("t-%d", ids.Add(1))) })
		}
	})
}

func call(data string) task.Part { return task.Part{Kind: task.PartCall, Data: []byte(data)} }

func entry(seq uint32, data string) task.Part {
	return task.Part{Kind: task.PartEntry, Seq: seq, Data: []byte(data)}
}

func answer(data string) task.Part {
	return task.Part{Kind: task.PartAnswer, Name: "agree", Data: []byte(data)}
}

// is wants the head to be this.
func is(t *testing.T, s task.Store, want task.Head) {
	t.Helper()
	got, err := s.Head(t.Context(), want.ID)
	if err != nil || !got.Equal(want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// partsAre wants the parts of a kind, entries from 0 on, to have this data.
func partsAre(t *testing.T, s task.Store, id string, k task.Kind, want ...string) {
	t.Helper()
	parts, err := s.Parts(t.Context(), id, k, "", 0, uint32(len(want)))
	if err != nil || len(parts) != len(want) {
		t.Fatalf("%d parts of kind %d, %v; want %q", len(parts), k, err, want)
	}
	for n, p := range parts {
		if string(p.Data) != want[n] {
			t.Errorf("part %d of kind %d is %.20q, want %q", n, k, p.Data, want[n])
		}
	}
}
