package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/task"
)

// now is a moment before everything here expires.
var now = time.Now().UTC().Truncate(time.Millisecond)

func head(id string) task.Head {
	return task.Head{ID: id, Version: 1, Status: task.Working, Created: now, Updated: now, Expires: now.Add(time.Hour), Wake: now}
}

func use(call string, round int, write byte) task.Use {
	return task.Use{Call: call, Round: round, Write: [16]byte{write}, Deadline: now.Add(time.Minute), Expires: now.Add(time.Hour)}
}

// edited is the next version of h.
func edited(h task.Head, edit func(*task.Head)) task.Head {
	h.Version++
	edit(&h)
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// large is the data of a part that is stored in two pieces.
var large = []byte(strings.Repeat("sesame ", 60<<10))

// operation is a call of a Store on a record of its own.
type operation struct {
	name    string
	prepare func(t *testing.T, s task.Store, id string)
	// run makes the call and checks what it returns, if that is no error.
	run func(ctx context.Context, s task.Store, id string) error
	// done reports whether the write is there; nil for a call that only reads.
	done func(t *testing.T, s task.Store, id string) bool
}

var operations = []operation{
	{
		"Create",
		func(*testing.T, task.Store, string) {},
		func(ctx context.Context, s task.Store, id string) error {
			return s.Create(ctx, head(id), task.Part{Kind: task.PartCall, Data: []byte("sesame call")})
		},
		func(t *testing.T, s task.Store, id string) bool {
			h, err := s.Head(t.Context(), id)
			if errors.Is(err, task.ErrNotFound) {
				return false
			}
			parts, partsErr := s.Parts(t.Context(), id, task.PartCall, "", 0, 0)
			if err != nil || partsErr != nil || !h.Equal(head(id)) || string(parts[0].Data) != "sesame call" {
				t.Errorf("%+v, %v, %v", h, err, partsErr)
			}
			return true
		},
	},
	commitOf("Commit", []byte("sesame entry")),
	commitOf("Commit of a large entry", large),
	{
		"Head",
		func(t *testing.T, s task.Store, id string) { must(t, s.Create(t.Context(), head(id))) },
		func(ctx context.Context, s task.Store, id string) error {
			h, err := s.Head(ctx, id)
			if err == nil && !h.Equal(head(id)) {
				return fmt.Errorf("read %+v", h)
			}
			return err
		},
		nil,
	},
	{
		"Parts",
		func(t *testing.T, s task.Store, id string) {
			must(t, s.Create(t.Context(), head(id), task.Part{Kind: task.PartEntry, Data: large}, task.Part{Kind: task.PartEntry, Seq: 1, Data: []byte("e1")}))
		},
		func(ctx context.Context, s task.Store, id string) error {
			parts, err := s.Parts(ctx, id, task.PartEntry, "", 0, 2)
			if err == nil && (len(parts) != 2 || !bytes.Equal(parts[0].Data, large) || string(parts[1].Data) != "e1") {
				return fmt.Errorf("read %d parts", len(parts))
			}
			return err
		},
		nil,
	},
	{
		"Due",
		func(t *testing.T, s task.Store, id string) { must(t, s.Create(t.Context(), head(id))) },
		func(ctx context.Context, s task.Store, id string) error {
			_, err := s.(task.Sweeper).Due(ctx, now.Add(-time.Hour), 0, 10)
			return err
		},
		nil,
	},
	{
		"Claim",
		func(*testing.T, task.Store, string) {},
		func(ctx context.Context, s task.Store, id string) error {
			first, prev, err := s.Claim(ctx, use(id, 1, 1))
			if err == nil && (!first || prev.Round != 0) {
				return fmt.Errorf("first=%t %+v", first, prev)
			}
			return err
		},
		func(t *testing.T, s task.Store, id string) bool {
			first, prev, err := s.Claim(t.Context(), use(id, 1, 2))
			must(t, err)
			if first { // it was not there, and is now: give the round back
				must(t, s.Release(t.Context(), use(id, 1, 2)))
			} else if prev.Done || prev.Round != 1 {
				t.Errorf("%+v", prev)
			}
			return !first
		},
	},
	{
		"Finish",
		func(t *testing.T, s task.Store, id string) { claimed(t, s, use(id, 1, 1), true) },
		func(ctx context.Context, s task.Store, id string) error {
			return s.Finish(ctx, use(id, 1, 1), []byte("sesame response"))
		},
		func(t *testing.T, s task.Store, id string) bool {
			prev := claimed(t, s, use(id, 1, 2), false)
			if prev.Done != (string(prev.Response) == "sesame response") {
				t.Errorf("%+v", prev)
			}
			return prev.Done
		},
	},
	{
		"Release",
		func(t *testing.T, s task.Store, id string) { claimed(t, s, use(id, 1, 1), true) },
		func(ctx context.Context, s task.Store, id string) error { return s.Release(ctx, use(id, 1, 1)) },
		func(t *testing.T, s task.Store, id string) bool {
			other := use(id, 1, 2)
			other.Answers[0]++
			return claimed(t, s, other, false).Done
		},
	},
}

// commitOf is a commit of an entry and an answer.
func commitOf(name string, data []byte) operation {
	return operation{
		name,
		func(t *testing.T, s task.Store, id string) { must(t, s.Create(t.Context(), head(id))) },
		func(ctx context.Context, s task.Store, id string) error {
			next := edited(head(id), func(h *task.Head) { h.Journal, h.Worker = 1, "w" })
			return s.Commit(ctx, now, next, task.Part{Kind: task.PartEntry, Epoch: 1, Data: data}, answer("sesame answer"))
		},
		func(t *testing.T, s task.Store, id string) bool {
			h, err := s.Head(t.Context(), id)
			must(t, err)
			answers, err := s.Parts(t.Context(), id, task.PartAnswer, "", 0, 0)
			must(t, err)
			if h.Version == 1 {
				if len(answers) != 0 {
					t.Errorf("an answer is seen before its commit")
				}
				return false
			}
			entries, err := s.Parts(t.Context(), id, task.PartEntry, "", 0, 1)
			if err != nil || h.Version != 2 || h.Worker != "w" || !bytes.Equal(entries[0].Data, data) || len(answers) != 1 || string(answers[0].Data) != "sesame answer" {
				t.Errorf("%+v, %d answers, %v", h, len(answers), err)
			}
			return true
		},
	}
}

// claimed claims u, and wants it to be first or not.
func claimed(t *testing.T, s task.Store, u task.Use, want bool) task.Used {
	t.Helper()
	first, prev, err := s.Claim(t.Context(), u)
	if err != nil || first != want {
		t.Fatalf("claim of round %d: first=%t %v, want first=%t", u.Round, first, err, want)
	}
	return prev
}

// nothingWritten reports whether err says so.
func nothingWritten(err error) bool {
	var conflict *task.Conflict
	return errors.As(err, &conflict) || errors.Is(err, task.ErrNotFound) || errors.Is(err, task.ErrExists) ||
		errors.Is(err, task.ErrTooLarge) || errors.Is(err, task.ErrNotClaimed)
}

// Each call meets each fault at each of its requests: once, for as long as it tries but one,
// and for ever. The emulators are one that returns the item that did not meet a condition, and
// one that does not.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ministack", "dynalite"} {
		t.Run(name, func(t *testing.T) {
			cfg := emulatorNamed(name).start(t)
			table := newTable(t, cfg)
			clean := open(t, cfg, table)
			var all sync.WaitGroup
			defer all.Wait()
			turns := make(chan struct{}, 24) // most of the time is spent on pauses
			for _, op := range operations {
				counted := &network{}
				op.prepare(t, clean, shared(op))
				must(t, op.run(t.Context(), through(t, cfg, table, counted, time.Minute), shared(op)))
				for at := range counted.requests {
					for f := range faults {
						for times, often := range map[int]string{1: "once", 3: "three times", forEver: "for ever"} {
							silent := strings.HasPrefix(faults[f].name, silence)
							if times == 3 && (at > 0 || silent) || at > 0 && strings.HasPrefix(op.name, "Commit of") && f%4 != 0 {
								continue // these take their time and show nothing new
							}
							turns <- struct{}{}
							all.Go(func() {
								defer func() { <-turns }()
								t.Run(fmt.Sprintf("%s/%s at request %d, %s", op.name, faults[f].name, at, often), func(t *testing.T) {
									meet(t, cfg, clean, op, &faults[f], at, times, at == counted.requests-1)
								})
							})
						}
					}
				}
			}
		})
	}
}

// shared is the id of a record that calls which only read may share.
func shared(op operation) string { return "shared-" + strings.ReplaceAll(op.name, " ", "-") }

const forEver = 1 << 30

var ids atomic.Int64

// meet has op meet f so many times, from its request at on, which may be its last.
func meet(t *testing.T, cfg aws.Config, clean *place, op operation, f *fault, at, times int, last bool) {
	id := shared(op)
	if op.done != nil {
		id = fmt.Sprintf("t-%d", ids.Add(1))
		op.prepare(t, clean, id)
	}
	attempt := time.Minute
	if strings.HasPrefix(f.name, silence) {
		attempt = 2 * time.Second // more than an emulator under load needs
	}
	left := times
	err := op.run(t.Context(), through(t, cfg, clean.table, &network{fault: func(n int) *fault {
		if n < at || left == 0 {
			return nil
		}
		left--
		return f
	}}, attempt), id)
	switch {
	case times < forEver && err != nil:
		t.Errorf("%v, want it to be tried again", err)
	case times == forEver && (err == nil || nothingWritten(err) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "sesame")):
		t.Errorf("%v, want an error that says nothing of what was written, nor what", err)
	}
	if op.done == nil {
		return
	}
	if done, want := op.done(t, clean, id), times < forEver || f.applied && last; done != want {
		t.Errorf("the write is there: %t, want %t", done, want)
	}
	if op.name == "Release" && (err == nil || f.applied) {
		return // of which nothing is left that tells whose it was
	}
	// Whoever does not know may do it again.
	if err := op.run(t.Context(), clean, id); err != nil || !op.done(t, clean, id) {
		t.Errorf("the same again: %v", err)
	}
}

// atOnce is how many requests of a call may be under way when the first is refused.
var atOnce = map[string]int{"Create": 1, "Commit": 2, "Commit of a large entry": 1, "Head": 1, "Parts": 1, "Due": 1, "Claim": 1, "Finish": 1, "Release": 1}

// A refusal is not tried again, and says what is wrong.
func TestRefused(t *testing.T) {
	t.Parallel()
	cfg := emulatorNamed("ministack").start(t)
	table := newTable(t, cfg)
	clean := open(t, cfg, table)
	for _, op := range operations {
		for _, code := range []string{"AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "ValidationException"} {
			t.Run(op.name+"/"+code, func(t *testing.T) {
				n := &network{fault: func(int) *fault { return &fault{answer: refuse(400, code)} }}
				id := fmt.Sprintf("t-%d", ids.Add(1))
				op.prepare(t, clean, id)
				err := op.run(t.Context(), through(t, cfg, table, n, time.Minute), id)
				if err == nil || nothingWritten(err) || !strings.Contains(err.Error(), code+": because of the weather") || !strings.Contains(err.Error(), table) || n.requests > atOnce[op.name] {
					t.Errorf("%v after %d requests", err, n.requests)
				}
			})
		}
	}
	t.Run("no table", func(t *testing.T) {
		s := open(t, cfg, "missing")
		for _, op := range operations {
			if err := op.run(t.Context(), s, "t"); err == nil || nothingWritten(err) || !strings.Contains(err.Error(), "table missing: ResourceNotFoundException") {
				t.Errorf("%s: %v", op.name, err)
			}
		}
	})
}

// The end of the caller's context ends a call at once, and is told from our own.
func TestContextEndsInMidCall(t *testing.T) {
	t.Parallel()
	cfg := emulatorNamed("ministack").start(t)
	table := newTable(t, cfg)
	clean := open(t, cfg, table)
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			id := fmt.Sprintf("t-%d", ids.Add(1))
			op.prepare(t, clean, id)
			ctx, cancel := context.WithCancel(t.Context())
			n := &network{fault: func(int) *fault {
				return &fault{answer: func(r *http.Request) (*http.Response, error) {
					cancel()
					<-r.Context().Done()
					return nil, r.Context().Err()
				}}
			}}
			if err := op.run(ctx, through(t, cfg, table, n, time.Minute), id); !errors.Is(err, context.Canceled) || nothingWritten(err) || n.requests > atOnce[op.name] {
				t.Errorf("%v after %d requests, want context.Canceled at once", err, n.requests)
			}
		})
	}
}
