package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

func versions(t *testing.T, open func() task.Store) { // T-23
	s := open()
	one := createTask(t, s, newHead("t"))
	two := commitNext(t, s, one, func(h *task.Head) { h.Message = "two" })
	for _, version := range []uint64{0, 1, 2, 4, 1<<63 + 3, 1<<64 - 1} {
		next := one
		next.Version, next.Message = version, "lost"
		conflicts(t, s, next, two)
	}
	isThere(t, s, two)
	isThere(t, s, commitNext(t, s, two, unchanged)) // nothing new is a new version too
}

func committedAgain(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	next := h
	next.Version, next.Worker, next.Epoch, next.Journal = 2, "w", 1, 1
	for range 3 {
		if err := s.Commit(t.Context(), now(), next, entryPart(1, 0, []byte("e"))); err != nil {
			t.Fatal(err)
		}
		isThere(t, s, next)
	}
	sameMoment := next
	sameMoment.Wake = next.Wake.Add(time.Millisecond - 1)
	if err := s.Commit(t.Context(), now(), sameMoment); err != nil {
		t.Fatal(err)
	}
	other := next
	other.Worker = "other"
	conflicts(t, s, other, next)

	last := commitNext(t, s, next, unchanged)
	conflicts(t, s, next, last) // its own write lies below another
	partsAre(t, s, "t", task.PartEntry, "", 0, 1, entryPart(1, 0, []byte("e")))

	// Its own write stays its own when the head has expired since.
	short := commitNext(t, s, last, unchanged)
	if err := s.Commit(t.Context(), short.Expires.Add(time.Minute), short); err != nil {
		t.Errorf("again after the expiry: %v", err)
	}
}

// notCommitted commits next as of at and wants ErrNotFound.
func notCommitted(tb testing.TB, s task.Store, at time.Time, next task.Head, parts ...task.Part) {
	tb.Helper()
	if err := s.Commit(tb.Context(), at, next, parts...); !errors.Is(err, task.ErrNotFound) {
		tb.Fatalf("commit of version %d: %v, want ErrNotFound", next.Version, err)
	}
}

func neverCreates(t *testing.T, open func() task.Store) {
	s := open()
	for _, version := range []uint64{0, 1, 2, 7} {
		h := newHead("t")
		h.Version = version
		notCommitted(t, s, now(), h, callPart([]byte("no")), outcomePart(1, []byte("no")))
		isNotThere(t, s, "t")
	}
	isThere(t, s, createTask(t, s, newHead("t")))
}

func expiredHead(t *testing.T, open func() task.Store) { // T-27
	s := open()
	h := createTask(t, s, newHead("t"))
	late := h
	late.Version, late.Journal = 2, 1
	for _, at := range []time.Time{h.Expires, h.Expires.Add(time.Millisecond - 1), h.Expires.Add(time.Hour)} {
		notCommitted(t, s, at, late, entryPart(1, 0, []byte("late")))
		wrong := late
		wrong.Version = 9
		notCommitted(t, s, at, wrong) // whatever its version
	}
	longer := late
	longer.Expires = h.Expires.Add(24 * time.Hour)
	notCommitted(t, s, h.Expires, longer) // what counts is the head that is there
	isThere(t, s, h)
	if err := s.Commit(t.Context(), h.Expires.Add(-time.Millisecond), late, entryPart(1, 0, []byte("in time"))); err != nil {
		t.Fatalf("a millisecond before it expires: %v", err)
	}
	isThere(t, s, late)
}

func expiredIsThereOrNot(t *testing.T, open func() task.Store) {
	s := open()
	h := newHead("t")
	h.Expires = now().Add(-time.Minute)
	createTask(t, s, h, callPart([]byte("call")))
	others := []task.Head{newHead("a"), newHead("b"), newHead("c")}
	for _, other := range others { // with which a store may clean up
		createTask(t, s, other)
	}
	next := h
	next.Version = 2
	notCommitted(t, s, now(), next)
	switch got, err := s.Head(t.Context(), "t"); {
	case err == nil:
		if !got.Equal(h) {
			t.Errorf("an expired head changed:%s", differences(got, h.Kept()))
		}
	case !errors.Is(err, task.ErrNotFound):
		t.Fatal(err)
	}
	// Who has read the head before reads its parts still.
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
	for _, other := range others {
		isThere(t, s, other)
	}
}

func neverExpires(t *testing.T, open func() task.Store) {
	s := open()
	h := newHead("t")
	h.Expires = time.Time{}
	h = createTask(t, s, h)
	for _, at := range []time.Time{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), now(), time.Unix(0, 0)} {
		h.Version++
		if err := s.Commit(t.Context(), at, h); err != nil {
			t.Fatalf("at %v: %v", at, err)
		}
		isThere(t, s, h)
	}
	h = commitNext(t, s, h, func(h *task.Head) { h.Expires = now().Add(time.Hour) })
	h.Version++
	notCommitted(t, s, now().Add(2*time.Hour), h)
}

func expiryMoves(t *testing.T, open func() task.Store) { // T-26
	s := open()
	h := createTask(t, s, newHead("t"))
	first := h.Expires
	h = commitNext(t, s, h, func(h *task.Head) { h.Expires = first.Add(time.Hour) })
	h.Version++
	if err := s.Commit(t.Context(), first.Add(time.Minute), h); err != nil {
		t.Fatalf("after the first expiry: %v", err)
	}
	h = commitNext(t, s, h, func(h *task.Head) { h.Expires = first.Add(-time.Minute) })
	late := h
	late.Version++
	notCommitted(t, s, first.Add(-time.Minute), late)
	h = commitNext(t, s, h, func(h *task.Head) { h.Expires = time.Time{} })
	h.Version++
	if err := s.Commit(t.Context(), first.AddDate(100, 0, 0), h); err != nil {
		t.Fatalf("without an expiry: %v", err)
	}
	isThere(t, s, h)
}

func extended(t *testing.T, open func() task.Store) {
	s := open()
	x := s.(Extender)
	h := createTask(t, s, newHead("t"))
	x.Extend(t, "t", "of a newer version")
	isThere(t, s, h)
	h = commitNext(t, s, h, func(h *task.Head) { *h = fullHead("t"); h.Version = 2 })
	h = commitNext(t, s, h, func(h *task.Head) { *h = task.Head{ID: "t", Version: 3} })
	lost := h
	lost.Version = 9
	conflicts(t, s, lost, h)
	isThere(t, s, h)
	if got := x.Extension(t, "t"); got != "of a newer version" {
		t.Errorf("%q is left", got)
	}
}
