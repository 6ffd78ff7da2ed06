package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

func created(t *testing.T, open func() task.Store) { // T-16
	s := open()
	isNotThere(t, s, "t")
	h := createTask(t, s, newHead("t"), callPart([]byte("call")), entryPart(0, 0, []byte("entry")))
	isThere(t, s, h)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
	partsAre(t, s, "t", task.PartEntry, "", 0, 1, entryPart(0, 0, []byte("entry")))

	for id, version := range map[string]uint64{"zero": 0, "two": 2, "last": 1<<64 - 1} { // it is 1, whatever h says
		h := newHead(id)
		h.Version = version
		isThere(t, s, createTask(t, s, h))
	}
}

func createdAgain(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"), callPart([]byte("call")))
	createTask(t, s, h, callPart([]byte("call")))
	again := h
	again.Wake = h.Wake.In(time.FixedZone("elsewhere", 3600)).Add(time.Millisecond - 1)
	createTask(t, open(), again, callPart([]byte("call")))
	isThere(t, s, h)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))

	full := createTask(t, s, fullHead("full"))
	createTask(t, s, full)
	isThere(t, s, full)
}

func createdByAnother(t *testing.T, open func() task.Store) {
	s := open()
	refused := func(h task.Head) {
		t.Helper()
		if err := s.Create(t.Context(), h, callPart([]byte("another")), outcomePart(7, []byte("another"))); !errors.Is(err, task.ErrExists) {
			t.Fatalf("%v, want ErrExists", err)
		}
	}
	h := createTask(t, s, newHead("t"), callPart([]byte("call")))
	for _, edit := range []func(*task.Head){
		func(h *task.Head) { h.Owner[31]++ },
		func(h *task.Head) { h.Created = h.Created.Add(time.Millisecond) },
		func(h *task.Head) { h.Asked = []task.Asked{{Key: "a"}} },
		func(h *task.Head) { h.Outcome = &task.OutcomeRef{} },
	} {
		other := h
		edit(&other)
		refused(other)
	}
	isThere(t, s, h)
	next := commitNext(t, s, h, unchanged)
	refused(h) // it was its own write once, and has been written over
	refused(next)
	isThere(t, s, next)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
}

func values(t *testing.T, open func() task.Store) {
	s := open()
	large, emptyOutcome, outcomeInPart := newHead("large"), newHead("empty-outcome"), newHead("outcome-in-a-part")
	large.Message = strings.Repeat("é", 256)
	large.Asked = []task.Asked{{Key: strings.Repeat("k", task.MaxName), Inline: noise(1, 1024)}}
	large.Outcome = &task.OutcomeRef{Inline: noise(2, 1024)}
	emptyOutcome.Outcome = &task.OutcomeRef{Epoch: 1, Inline: []byte{}}
	outcomeInPart.Outcome = &task.OutcomeRef{Epoch: 1}
	for _, h := range []task.Head{fullHead("full"), {ID: "empty"}, large, emptyOutcome, outcomeInPart} {
		h = createTask(t, s, h)
		isThere(t, s, h)
		isThere(t, s, commitNext(t, s, h, unchanged))
	}
}

func headTimes(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	for _, at := range []time.Time{
		{},
		time.Date(2026, 7, 28, 12, 0, 0, 123_999_999, time.UTC),
		time.Date(2026, 7, 28, 12, 0, 0, 1, time.FixedZone("elsewhere", -5*3600)),
		time.Date(1969, 7, 20, 20, 17, 40, 999_999_999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
		time.Now(),
	} {
		h = commitNext(t, s, h, func(h *task.Head) {
			h.Created, h.Updated, h.LeaseUntil, h.Sent, h.Wake = at, at, at, at, at
			h.Poll = time.Second + 999*time.Microsecond
		})
		isThere(t, s, h)
	}
	h = commitNext(t, s, h, func(h *task.Head) { h.Expires = time.Now().Add(time.Hour) })
	isThere(t, s, h)
}

func replaced(t *testing.T, open func() task.Store) {
	s := open()
	full, empty := fullHead("t"), task.Head{ID: "t"}
	full.Created = full.Created.Add(time.Hour)
	h := createTask(t, s, empty)
	for _, next := range []task.Head{full, empty, newHead("t"), full, newHead("t")} {
		version := h.Version + 1
		h = commitNext(t, s, h, func(h *task.Head) { *h = next; h.Version = version })
		isThere(t, s, h)
	}
}

func otherTasks(t *testing.T, open func() task.Store) {
	s := open()
	names := []string{"t", "T", "t-", "t_", "_", "tt", "t-1", "t1", "t-H", strings.Repeat("t", 128), strings.Repeat("t", 127)}
	heads := map[string]task.Head{}
	for _, id := range names { // no case folding, no patterns, no prefixes
		heads[id] = createTask(t, s, newHead(id), callPart([]byte(id)))
	}
	u := use("t", 1) // nor is a call of that id a task
	claimFirst(t, s, u)
	finished(t, s, u, []byte("answer"))
	heads["T"] = commitNext(t, s, heads["T"], journal(1), entryPart(0, 0, []byte("T")), answerPart("t", []byte("T")))
	for _, id := range names {
		isThere(t, s, heads[id])
		partsAre(t, s, id, task.PartCall, "", 0, 0, callPart([]byte(id)))
		if id != "T" {
			partsFail(t, s, id, task.PartEntry, "", 0, 1, task.ErrCorrupt)
			partsAre(t, s, id, task.PartAnswer, "", 0, 0)
		}
	}
	claimUsed(t, s, use("t", 1), done(u, []byte("answer")))
}

func ids(t *testing.T, open func() task.Store) { // T-25, T-46
	s := open()
	for _, id := range []string{"", strings.Repeat("t", 129), "../t", "t#H", "t\x00", "t ", "é", strings.Repeat("x", 5000)} {
		h := newHead(id)
		want := task.CheckWrite(h, nil).Error()
		if err := s.Create(t.Context(), h); err == nil || err.Error() != want {
			t.Errorf("create: %v, want %s", err, want)
		}
		h.Version = 2
		if err := s.Commit(t.Context(), now(), h); err == nil || err.Error() != want {
			t.Errorf("commit: %v, want %s", err, want)
		}
		isNotThere(t, s, id)
		partsFail(t, s, id, task.PartAnswer, "", 0, 0, task.ErrNotFound)
	}
}

func wrongWrites(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	bad := h
	bad.Message = "\xff"
	for name, c := range map[string]struct {
		head task.Head
		part task.Part
	}{
		"message": {bad, answerPart("a", nil)},
		"kind":    {h, task.Part{Kind: 5}},
		"name":    {h, questionPart(1, "", nil)},
	} {
		parts := []task.Part{answerPart("good", []byte("good")), c.part}
		want := task.CheckWrite(c.head, parts).Error()
		next := c.head
		next.Version = 2
		if err := s.Commit(t.Context(), now(), next, parts...); err == nil || err.Error() != want {
			t.Errorf("commit of a wrong %s: %v, want %s", name, err, want)
		}
		other := c.head
		other.ID = "other"
		if err := s.Create(t.Context(), other, parts...); err == nil || err.Error() != want {
			t.Errorf("create of a wrong %s: %v, want %s", name, err, want)
		}
	}
	isThere(t, s, h)
	isNotThere(t, s, "other")
	partsAre(t, s, "t", task.PartAnswer, "", 0, 0)
	if _, err := s.Parts(t.Context(), "t", 5, "", 0, 0); err == nil || err.Error() != task.CheckParts("t", 5).Error() {
		t.Errorf("parts of no kind: %v", err)
	}
}

func recordsAreCopied(t *testing.T, open func() task.Store) {
	s := open()
	given, data := fullHead("t"), []byte("call")
	want := given.Kept()
	createTask(t, s, given, callPart(data))
	spoil := func(h task.Head) {
		clear(h.Asked[1].Inline)
		h.Asked[0].Key = "spoiled"
		h.Outcome.Epoch = 0
		clear(h.Outcome.Inline)
	}
	spoil(given)
	clear(data)
	isThere(t, s, want)

	read, err := s.Head(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	spoil(read)
	parts, err := s.Parts(t.Context(), "t", task.PartCall, "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
	clear(parts[0].Data)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
	isThere(t, s, want)

	var conflict *task.Conflict
	stale := want.Kept()
	stale.Version = 3
	if err := s.Commit(t.Context(), now(), stale); !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	spoil(conflict.Now)
	isThere(t, s, want)

	data = []byte("answer")
	next := want.Kept()
	next.Version, want.Version = 2, 2
	if err := s.Commit(t.Context(), now(), next, answerPart("a", data)); err != nil {
		t.Fatal(err)
	}
	spoil(next)
	clear(data)
	isThere(t, s, want)
	partsAre(t, s, "t", task.PartAnswer, "a", 0, 0, answerPart("a", []byte("answer")))
}

func endedContextOfTasks(t *testing.T, open func() task.Store) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := open()
	canceled := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", what, err)
		}
	}
	canceled("create", s.Create(ended, newHead("t"), callPart([]byte("ended")))) // the first use of the store, where files are opened
	h := createTask(t, s, newHead("t"), callPart([]byte("call")))
	canceled("create", s.Create(ended, newHead("other")))
	isNotThere(t, s, "other")
	next := h
	next.Version, next.Journal = 2, 1
	canceled("commit", s.Commit(ended, now(), next, entryPart(1, 0, nil), answerPart("a", nil)))
	read, err := s.Head(ended, "t")
	canceled("head", err)
	parts, err := s.Parts(ended, "t", task.PartCall, "", 0, 0)
	canceled("parts", err)
	if read.ID != "" || len(parts) > 0 {
		t.Errorf("read %q and %d parts", read.ID, len(parts))
	}
	if sweeper, ok := s.(task.Sweeper); ok {
		_, err := sweeper.Due(ended, now(), 0, 1)
		canceled("due", err)
	}
	isThere(t, s, h)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
	partsAre(t, s, "t", task.PartAnswer, "", 0, 0)
}

func twoStoresOfTasks(t *testing.T, open func() task.Store) {
	a, b := open(), open()
	h := createTask(t, a, newHead("t"), callPart([]byte("call")))
	isThere(t, b, h)
	next := commitNext(t, b, h, journal(1), entryPart(1, 0, []byte("b")))
	isThere(t, a, next)
	partsAre(t, a, "t", task.PartEntry, "", 0, 1, entryPart(1, 0, []byte("b")))
	h.Version = 2
	conflicts(t, a, h, next)
	isThere(t, open(), next)
}
