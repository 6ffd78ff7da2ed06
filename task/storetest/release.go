package storetest

import (
	"errors"
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

func released(t *testing.T, open func() task.Store) {
	s := open()
	one, two := use("call", 1), use("call", 2)
	claimFirst(t, s, one)
	finished(t, s, one, []byte("one"))
	claimFirst(t, s, two)
	release(t, s, two, nil)
	given := task.Used{Round: 2, Answers: two.Answers, Deadline: two.Deadline, Done: true}
	claimUsed(t, s, use("call", 1), given)
	claimUsed(t, s, use("call", 2), given) // with other answers
	release(t, s, two, task.ErrNotClaimed)
	notClaimed(t, s, two)
	again := use("call", 2)
	again.Answers = two.Answers
	claimFirst(t, s, again)
	claimFirst(t, s, again)
	finished(t, s, again, []byte("two"))
	claimUsed(t, s, use("call", 2), done(again, []byte("two")))

	first := use("other", 1)
	claimFirst(t, s, first)
	release(t, s, first, nil)
	later := use("other", 2)
	claimFirst(t, s, later)
}

func releasedByOthers(t *testing.T, open func() task.Store) {
	s := open()
	u := use("call", 2)
	release(t, s, u, task.ErrNotClaimed)
	claimFirst(t, s, u)
	stranger := use("call", 2)
	release(t, s, stranger, task.ErrNotClaimed)
	earlier := u
	earlier.Round = 1
	release(t, s, earlier, task.ErrNotClaimed)
	claimUsed(t, s, stranger, running(u))
	finished(t, s, u, []byte("r"))
	release(t, s, u, task.ErrNotClaimed)
	claimUsed(t, s, stranger, done(u, []byte("r")))
	bad := u
	bad.Call = ""
	if err := s.Release(t.Context(), bad); err == nil || errors.Is(err, task.ErrNotClaimed) {
		t.Errorf("release of a bad use: %v", err)
	}
}

// release releases u and wants this error.
func release(tb testing.TB, s task.Store, u task.Use, want error) {
	tb.Helper()
	if err := s.Release(tb.Context(), u); !errors.Is(err, want) {
		tb.Fatalf("release of round %d: %v, want %v", u.Round, err, want)
	}
}
