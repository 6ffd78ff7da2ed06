// Package storetest is the contract of task.Store as tests: every implementation runs
// them. It also has a Store that fails on demand.
package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// Backend prepares an empty place for records and returns what opens a Store on it. Stores
// opened on one place share its records. What has to be closed or removed goes into
// tb.Cleanup.
type Backend func(tb testing.TB) (open func() task.Store)

// Uses holds a backend to task.Uses. Each subtest has a place of its own.
func Uses(t *testing.T, backend Backend) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, func() task.Store)
	}{
		{"a first claim is first", firstClaim},
		{"the same write again is that first claim", sameWrite},
		{"another write finds what is stored", otherWrite},
		{"a later round takes the record", laterRound},
		{"an earlier round finds the later one", earlierRound},
		{"calls do not touch each other", otherCalls},
		{"a finished round is done", finish},
		{"the first response stays", finishTwice},
		{"only the claimant finishes", finishByOthers},
		{"a later round is not finished by the earlier one", finishLate},
		{"a released round is claimed anew", released},
		{"only the claimant of an open round releases", releasedByOthers},
		{"responses come back exactly", responses},
		{"responses are copied", copies},
		{"times are kept to the millisecond", times},
		{"records stay until they expire", staysUntilExpiry},
		{"an expired record is there or not", expired},
		{"two stores on one place see each other", twoStores},
		{"an ended context writes nothing", endedContext},
		{"a bad use writes nothing", badUse},
		{"of many claims on a round one is first", oneFirst},
		{"of many tries of one write all are first", sameWriteAtOnce},
		{"of many rounds the last one stays", roundsAtOnce},
		{"of many responses one stays", finishAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, backend(t)) }) // R-19, each of them
	}
}

// use is a claim on a round as good callers make it: live for an hour, with a fresh write.
func use(call string, round int) task.Use {
	u := task.Use{Call: call, Round: round, Deadline: now().Add(5 * time.Minute), Expires: now().Add(time.Hour)}
	rand.Read(u.Write[:])
	rand.Read(u.Answers[:])
	return u
}

// now is the real clock, as precise as records are. Backends may let another service judge
// what has expired, so no test here stands at the edge of it.
func now() time.Time { return time.Now().Truncate(time.Millisecond) }

// claimFirst claims u and wants it to be first.
func claimFirst(tb testing.TB, s task.Store, u task.Use) {
	tb.Helper()
	first, prev, err := s.Claim(tb.Context(), u)
	if err != nil || !first || !same(prev, task.Used{}) {
		tb.Fatalf("claim of round %d: first=%t prev=%s err=%v, want first and nothing stored", u.Round, first, show(prev), err)
	}
}

// claimUsed claims u and wants it to find want.
func claimUsed(tb testing.TB, s task.Store, u task.Use, want task.Used) {
	tb.Helper()
	first, prev, err := s.Claim(tb.Context(), u)
	if err != nil || first || !same(prev, want) {
		tb.Fatalf("claim of round %d: first=%t prev=%s err=%v, want prev=%s", u.Round, first, show(prev), err, show(want))
	}
}

// finished finishes u and wants no error.
func finished(tb testing.TB, s task.Store, u task.Use, response []byte) {
	tb.Helper()
	if err := s.Finish(tb.Context(), u, response); err != nil {
		tb.Fatalf("finish of round %d: %v", u.Round, err)
	}
}

// notClaimed finishes u and wants task.ErrNotClaimed.
func notClaimed(tb testing.TB, s task.Store, u task.Use) {
	tb.Helper()
	if err := s.Finish(tb.Context(), u, []byte("not mine")); !errors.Is(err, task.ErrNotClaimed) {
		tb.Fatalf("finish of round %d: %v, want ErrNotClaimed", u.Round, err)
	}
}

// running is what others find of u until it is finished.
func running(u task.Use) task.Used {
	return task.Used{Round: u.Round, Answers: u.Answers, Deadline: u.Deadline}
}

// done is what others find of u when it is finished.
func done(u task.Use, response []byte) task.Used {
	d := running(u)
	d.Done, d.Response = true, response
	return d
}

func same(a, b task.Used) bool {
	return a.Round == b.Round && a.Answers == b.Answers && a.Deadline.Equal(b.Deadline) &&
		a.Done == b.Done && bytes.Equal(a.Response, b.Response) && (a.Response == nil) == (b.Response == nil)
}

func show(u task.Used) string {
	return fmt.Sprintf("{round %d, answers %x, deadline %s, done %t, %d bytes}",
		u.Round, u.Answers[:4], u.Deadline.Format(time.RFC3339Nano), u.Done, len(u.Response))
}

func firstClaim(t *testing.T, open func() task.Store) {
	claimFirst(t, open(), use("c", 1))
}

func sameWrite(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 1)
	claimFirst(t, s, u)
	claimFirst(t, s, u)
	again := u
	again.Deadline = u.Deadline.Add(time.Minute)
	again.Answers[0]++
	claimFirst(t, s, again)
	claimUsed(t, s, use("c", 1), running(u)) // as it was
	finished(t, s, u, []byte("answer"))
	claimUsed(t, s, u, done(u, []byte("answer")))
}

func otherWrite(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 1)
	claimFirst(t, s, u)
	other := use("c", 1)
	claimUsed(t, s, other, running(u))
	claimUsed(t, s, other, running(u)) // no more first for having been tried before
	sameAnswers := use("c", 1)
	sameAnswers.Answers = u.Answers
	claimUsed(t, s, sameAnswers, running(u))
	claimFirst(t, s, u) // and the claimant is it still
}

func laterRound(t *testing.T, open func() task.Store) {
	s, one, two, nine := open(), use("c", 1), use("c", 2), use("c", 9)
	claimFirst(t, s, one)
	finished(t, s, one, []byte("one"))
	claimFirst(t, s, two) // over a finished round
	claimUsed(t, s, use("c", 2), running(two))
	claimFirst(t, s, nine) // over an unfinished one, and rounds may be left out
	claimUsed(t, s, use("c", 9), running(nine))
	sameWrite := use("c", 10)
	sameWrite.Write = nine.Write
	claimFirst(t, s, sameWrite)
	claimUsed(t, s, use("c", 10), running(sameWrite))
}

func earlierRound(t *testing.T, open func() task.Store) {
	s, one, three := open(), use("c", 1), use("c", 3)
	claimFirst(t, s, one)
	claimFirst(t, s, three)
	claimUsed(t, s, use("c", 2), running(three))
	claimUsed(t, s, one, running(three)) // its own write is no longer there
	sameWrite := use("c", 2)
	sameWrite.Write = three.Write
	claimUsed(t, s, sameWrite, running(three))
	finished(t, s, three, []byte("three"))
	claimUsed(t, s, one, done(three, []byte("three")))
}

func otherCalls(t *testing.T, open func() task.Store) {
	s := open()
	uses := []task.Use{use("c", 3), use("C", 1), use("c.", 1), use("c%", 1), use("_", 1), use("cc", 1)} // no case folding, no patterns, no prefixes
	for i := range uses {
		uses[i].Write = uses[0].Write
		claimFirst(t, s, uses[i])
	}
	finished(t, s, uses[1], []byte("C"))
	for i, u := range uses {
		want := running(u)
		if i == 1 {
			want = done(u, []byte("C"))
		}
		claimUsed(t, s, use(u.Call, u.Round), want)
	}
}

func finish(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 1)
	claimFirst(t, s, u)
	other := u // only Call, Round and Write count
	other.Answers[0]++
	other.Deadline, other.Expires = u.Deadline.Add(time.Hour), u.Expires.Add(time.Hour)
	finished(t, s, other, []byte("answer"))
	claimUsed(t, s, use("c", 1), done(u, []byte("answer")))
}

func finishTwice(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 1)
	claimFirst(t, s, u)
	finished(t, s, u, []byte("first"))
	finished(t, s, u, []byte("first"))
	finished(t, s, u, []byte("second"))
	finished(t, s, u, nil)
	claimUsed(t, s, use("c", 1), done(u, []byte("first")))

	v := use("d", 1)
	claimFirst(t, s, v)
	finished(t, s, v, nil)
	finished(t, s, v, []byte("second"))
	claimUsed(t, s, use("d", 1), done(v, nil))
}

func finishByOthers(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 2)
	notClaimed(t, s, u) // before anyone has
	claimFirst(t, s, u)
	notClaimed(t, s, use("c", 2))
	for _, round := range []int{1, 3} {
		other := u
		other.Round = round
		notClaimed(t, s, other)
	}
	other := u
	other.Call = "d"
	notClaimed(t, s, other)
	claimUsed(t, s, use("c", 2), running(u))
	finished(t, s, u, []byte("mine"))
	notClaimed(t, s, use("c", 2))
	claimUsed(t, s, use("c", 2), done(u, []byte("mine")))
}

func finishLate(t *testing.T, open func() task.Store) {
	s, one, two := open(), use("c", 1), use("c", 2)
	claimFirst(t, s, one)
	claimFirst(t, s, two)
	notClaimed(t, s, one)
	claimUsed(t, s, use("c", 2), running(two))
	finished(t, s, two, []byte("two"))
	notClaimed(t, s, one)
	claimUsed(t, s, use("c", 2), done(two, []byte("two")))
}

func responses(t *testing.T, open func() task.Store) {
	s := open()
	random := mathrand.NewChaCha8([32]byte{1})
	for i, c := range []struct {
		size int
		kept bool
	}{{-1, false}, {0, false}, {1, true}, {256, true}, {4097, true}, {task.MaxResponse, true}, {task.MaxResponse + 1, false}} {
		var response, want []byte
		if c.size >= 0 {
			response = make([]byte, c.size)
			random.Read(response)
		}
		if c.kept {
			want = response
		}
		u := use(fmt.Sprintf("c-%d", i), 1)
		claimFirst(t, s, u)
		finished(t, s, u, response)
		claimUsed(t, s, use(u.Call, 1), done(u, want))
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	u := use("every-byte", 1)
	claimFirst(t, s, u)
	finished(t, s, u, all)
	claimUsed(t, s, use(u.Call, 1), done(u, all))
}

func copies(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 1)
	claimFirst(t, s, u)
	response := []byte("answer")
	finished(t, s, u, response)
	clear(response)
	_, prev, err := s.Claim(t.Context(), use("c", 1))
	if err != nil {
		t.Fatal(err)
	}
	clear(prev.Response)
	claimUsed(t, s, use("c", 1), done(u, []byte("answer")))
}

func times(t *testing.T, open func() task.Store) {
	s := open()
	for i, deadline := range []time.Time{
		time.Date(2026, 7, 28, 12, 0, 0, 123_999_999, time.UTC),
		time.Date(2026, 7, 28, 12, 0, 0, 1, time.FixedZone("elsewhere", -5*3600)),
		time.Date(1969, 7, 20, 20, 17, 40, 999_999_999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		u := use(fmt.Sprintf("c-%d", i), 1)
		u.Deadline = deadline
		claimFirst(t, s, u)
		_, prev, err := s.Claim(t.Context(), use(u.Call, 1))
		if want := deadline.Truncate(time.Millisecond); err != nil || !prev.Deadline.Equal(want) || prev.Deadline.Location() != time.UTC {
			t.Errorf("deadline %v came back as %v (%v), want %v in UTC", deadline, prev.Deadline, err, want)
		}
	}
}

// cleaningClaims makes claims whose records may go at once, and with which a store cleans
// as much as it does on the way.
func cleaningClaims(t *testing.T, s task.Store) {
	for i := range 100 {
		u := use(fmt.Sprintf("over-%d", i), 1)
		u.Deadline, u.Expires = now().Add(-2*time.Hour), now().Add(-time.Hour)
		claimFirst(t, s, u)
	}
}

func staysUntilExpiry(t *testing.T, open func() task.Store) {
	s, u, v := open(), use("c", 1), use("d", 1)
	claimFirst(t, s, u)
	finished(t, s, u, []byte("answer"))
	claimFirst(t, s, v)
	cleaningClaims(t, s)
	claimUsed(t, s, use("c", 1), done(u, []byte("answer")))
	claimUsed(t, s, use("d", 1), running(v))
}

func expired(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 1)
	u.Expires = now().Add(-time.Hour)
	claimFirst(t, s, u)
	cleaningClaims(t, s)
	if err := s.Finish(t.Context(), u, []byte("answer")); err == nil {
		claimUsed(t, s, use("c", 1), done(u, []byte("answer")))
	} else if errors.Is(err, task.ErrNotClaimed) {
		claimFirst(t, s, use("c", 1))
	} else {
		t.Fatal(err)
	}
}

func twoStores(t *testing.T, open func() task.Store) {
	a, b := open(), open()
	one, two := use("c", 1), use("c", 2)
	claimFirst(t, a, one)
	claimFirst(t, b, one)
	claimUsed(t, b, use("c", 1), running(one))
	finished(t, b, one, []byte("one"))
	claimUsed(t, a, use("c", 1), done(one, []byte("one")))
	claimFirst(t, b, two)
	claimUsed(t, a, one, running(two))
	claimUsed(t, open(), one, running(two))
}

func endedContext(t *testing.T, open func() task.Store) {
	s := open()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	untouched := func(u task.Use) {
		t.Helper()
		if first, prev, err := s.Claim(ended, u); !errors.Is(err, context.Canceled) || first || !same(prev, task.Used{}) {
			t.Errorf("claim: first=%t prev=%s err=%v, want context.Canceled alone", first, show(prev), err)
		}
	}
	untouched(use("c", 1)) // the first use of the store, where files are opened
	u := use("c", 1)
	claimFirst(t, s, u)
	untouched(use("c", 1))
	untouched(use("c", 2))
	if err := s.Finish(ended, u, []byte("answer")); !errors.Is(err, context.Canceled) {
		t.Errorf("finish: %v, want context.Canceled", err)
	}
	claimUsed(t, s, use("c", 1), running(u))
}

func badUse(t *testing.T, open func() task.Store) {
	s, u := open(), use("c", 2)
	claimFirst(t, s, u)
	for name, edit := range map[string]func(*task.Use){
		"no call":     func(u *task.Use) { u.Call = "" },
		"round zero":  func(u *task.Use) { u.Round = 0 },
		"no write":    func(u *task.Use) { u.Write = [16]byte{} },
		"no deadline": func(u *task.Use) { u.Deadline = time.Time{} },
		"no expiry":   func(u *task.Use) { u.Expires = time.Time{} },
	} {
		bad := use("c", 3)
		bad.Write = u.Write
		edit(&bad)
		if first, _, err := s.Claim(t.Context(), bad); err == nil || err.Error() != bad.Check().Error() || first {
			t.Errorf("claim with %s: first=%t err=%v, want %v", name, first, err, bad.Check())
		}
		bad.Round = min(bad.Round, 2)
		if err := s.Finish(t.Context(), bad, []byte("answer")); err == nil || err.Error() != bad.Check().Error() {
			t.Errorf("finish with %s: %v, want %v", name, err, bad.Check())
		}
	}
	claimUsed(t, s, use("c", 2), running(u))
}
