package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

func sizes(t *testing.T, open func() task.Store) {
	s := open()
	const kb, mb = 1 << 10, 1 << 20
	for i, size := range []int{0, 1, 4 * kb, 350 * kb, 400*kb - 1, 400 * kb, mb, 5 * mb} {
		id, data := fmt.Sprint("t-", i), noise(byte(i), size)
		h := createTask(t, s, newHead(id), callPart(data))
		partsAre(t, s, id, task.PartCall, "", 0, 0, callPart(data))
		if size > mb { // the other kinds are cut up in the same way
			continue
		}
		data = noise(byte(100+i), size)
		h = commitNext(t, s, h, journal(1), entryPart(1, 0, data), questionPart(1, "q", data))
		commitNext(t, s, h, unchanged, answerPart("q", data), outcomePart(1, data))
		partsAre(t, s, id, task.PartEntry, "", 0, 1, entryPart(1, 0, data))
		partsAre(t, s, id, task.PartQuestion, "q", 1, 0, questionPart(1, "q", data))
		partsAre(t, s, id, task.PartAnswer, "q", 0, 0, answerPart("q", data))
		partsAre(t, s, id, task.PartOutcome, "", 1, 0, outcomePart(1, data))
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	createTask(t, s, newHead("every-byte"), callPart(all))
	partsAre(t, s, "every-byte", task.PartCall, "", 0, 0, callPart(all))
}

func callOnce(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"), callPart([]byte("call")))
	second := callPart(noise(1, 1<<20))
	second.Epoch = 9
	h = commitNext(t, s, h, unchanged, second)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
	isThere(t, s, h)
}

func ranges(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"), entryPart(0, 0, []byte("e0")), entryPart(0, 1, nil))
	h = commitNext(t, s, h, journal(3), entryPart(1, 2, []byte("e2")))
	h = commitNext(t, s, h, journal(12), slices.Collect(func(yield func(task.Part) bool) {
		for seq := uint32(11); seq > 2; seq-- { // in any order
			if !yield(entryPart(2, seq, fmt.Append(nil, "e", seq))) {
				return
			}
		}
	})...)
	all := []task.Part{entryPart(0, 0, []byte("e0")), entryPart(0, 1, nil), entryPart(1, 2, []byte("e2"))}
	for seq := uint32(3); seq < 12; seq++ {
		all = append(all, entryPart(2, seq, fmt.Append(nil, "e", seq)))
	}
	for _, c := range [][2]uint32{{0, 12}, {0, 1}, {11, 12}, {1, 11}, {8, 11}, {5, 5}, {0, 0}, {7, 3}, {99, 99}} {
		from, to := c[0], c[1]
		partsAre(t, s, "t", task.PartEntry, "", from, to, all[min(from, 12):max(min(from, 12), min(to, 12))]...)
	}
	partsAre(t, s, "t", task.PartEntry, "no name counts", 3, 4, all[3])
	isThere(t, s, h)
}

func thousand(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	const n, atOnce = 1000, 50
	var all []task.Part
	for len(all) < n {
		for range atOnce {
			seq := uint32(len(all))
			all = append(all, entryPart(1, seq, noise(byte(seq), 3000))) // more in all than a page of DynamoDB
		}
		h = commitNext(t, s, h, journal(uint32(len(all))), all[len(all)-atOnce:]...)
	}
	partsAre(t, s, "t", task.PartEntry, "", 0, n, all...)
	partsAre(t, s, "t", task.PartEntry, "", 333, 999, all[333:999]...)
	isThere(t, s, h)
}

func entryEpochs(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	h = commitNext(t, s, h, journal(1), entryPart(5, 0, []byte("five")))
	for _, c := range []struct {
		epoch uint32
		data  string
		want  task.Part
	}{
		{4, "four", entryPart(5, 0, []byte("five"))},
		{0, "none", entryPart(5, 0, []byte("five"))},
		{5, "five again", entryPart(5, 0, []byte("five again"))},
		{10, "ten", entryPart(10, 0, []byte("ten"))}, // by number, not by letters
		{9, "nine", entryPart(10, 0, []byte("ten"))},
		{1<<32 - 1, "last", entryPart(1<<32-1, 0, []byte("last"))},
		{10, "ten", entryPart(1<<32-1, 0, []byte("last"))},
	} {
		h = commitNext(t, s, h, unchanged, entryPart(c.epoch, 0, []byte(c.data)))
		partsAre(t, s, "t", task.PartEntry, "", 0, 1, c.want)
	}
}

func entrySizes(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	for i, size := range []int{1 << 20, 10, 500 << 10, 0, 1 << 20, 800 << 10} {
		e := entryPart(uint32(i), 0, noise(byte(i), size))
		h = commitNext(t, s, h, journal(1), e)
		partsAre(t, s, "t", task.PartEntry, "", 0, 1, e)
		if i > 0 { // one of an older epoch leaves nothing of itself
			h = commitNext(t, s, h, unchanged, entryPart(uint32(i-1), 0, noise(99, 1<<20)))
			partsAre(t, s, "t", task.PartEntry, "", 0, 1, e)
		}
	}
}

func epochs(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	h = commitNext(t, s, h, unchanged, questionPart(1, "a", []byte("a1")), questionPart(1, "b", []byte("b1")), outcomePart(1, []byte("o1")))
	h = commitNext(t, s, h, unchanged, questionPart(11, "a", []byte("a11")), outcomePart(11, noise(1, 1<<20)))
	h = commitNext(t, s, h, unchanged, questionPart(2, "a", []byte("a2")), outcomePart(2, nil), outcomePart(1<<32-1, []byte("last")))
	for _, p := range []task.Part{
		questionPart(1, "a", []byte("a1")), questionPart(1, "b", []byte("b1")), questionPart(2, "a", []byte("a2")), questionPart(11, "a", []byte("a11")),
	} {
		partsAre(t, s, "t", task.PartQuestion, p.Name, p.Epoch, 0, p)
	}
	for _, p := range []task.Part{
		outcomePart(1, []byte("o1")), outcomePart(2, nil), outcomePart(11, noise(1, 1<<20)), outcomePart(1<<32-1, []byte("last")),
	} {
		partsAre(t, s, "t", task.PartOutcome, "", p.Epoch, 0, p)
	}
	partsAre(t, s, "t", task.PartQuestion, "", 1, 0, questionPart(1, "a", []byte("a1")), questionPart(1, "b", []byte("b1")))
	partsAre(t, s, "t", task.PartQuestion, "", 11, 0, questionPart(11, "a", []byte("a11")))
	partsAre(t, s, "t", task.PartQuestion, "", 3, 0)

	h = commitNext(t, s, h, unchanged, questionPart(2, "a", []byte("a2")), outcomePart(1, []byte("o1"))) // the same again
	partsAre(t, s, "t", task.PartQuestion, "", 2, 0, questionPart(2, "a", []byte("a2")))
	partsAre(t, s, "t", task.PartOutcome, "", 1, 0, outcomePart(1, []byte("o1")))
	isThere(t, s, h)
}

func firstAnswer(t *testing.T, open func() task.Store) { // T-30
	s := open()
	h := createTask(t, s, newHead("t"))
	large := noise(1, 1<<20)
	h = commitNext(t, s, h, unchanged, answerPart("small", []byte("yes")), answerPart("large", large), answerPart("empty", nil))
	second := []task.Part{answerPart("small", noise(2, 1<<20)), answerPart("large", []byte("no")), answerPart("empty", []byte("no")), answerPart("new", []byte("new"))}
	for i := range second {
		second[i].Epoch = 9
	}
	h = commitNext(t, s, h, unchanged, second...)
	partsAre(t, s, "t", task.PartAnswer, "small", 0, 0, answerPart("small", []byte("yes")))
	partsAre(t, s, "t", task.PartAnswer, "large", 0, 0, answerPart("large", large))
	partsAre(t, s, "t", task.PartAnswer, "empty", 0, 0, answerPart("empty", nil))
	partsAre(t, s, "t", task.PartAnswer, "", 0, 0,
		answerPart("empty", nil), answerPart("large", large), second[3], answerPart("small", []byte("yes")))
	isThere(t, s, h)
}

func names(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"))
	all := []string{ // B-13
		"\x00", " ", "!", "#", "#0001", "%", "_", "a", "a\x00", "a ", "a!", "a#", "a#0", "a#0001", "a#1", "a/b", "a~2", "A", "aa",
		"\u00e9", "e\u0301", "😀", "\ufffd", "\u007f",
	}
	long := noise(1, task.MaxName-1)
	for i := range long {
		long[i] = 'a' + long[i]%26
	}
	all = append(all, string(long)+"x", string(long)+"y", string(long))
	for _, name := range all {
		h = commitNext(t, s, h, unchanged, answerPart(name, []byte("answer to "+name)), questionPart(3, name, []byte("question "+name)))
	}
	slices.Sort(all) // by bytes
	var answers, questions []task.Part
	for _, name := range all {
		answers = append(answers, answerPart(name, []byte("answer to "+name)))
		questions = append(questions, questionPart(3, name, []byte("question "+name)))
	}
	partsAre(t, s, "t", task.PartAnswer, "", 0, 0, answers...)
	partsAre(t, s, "t", task.PartQuestion, "", 3, 0, questions...)
	for i, name := range all {
		partsAre(t, s, "t", task.PartAnswer, name, 0, 0, answers[i])
		partsAre(t, s, "t", task.PartQuestion, name, 3, 0, questions[i])
	}
}

func lostSwap(t *testing.T, open func() task.Store) {
	s := open()
	h := createTask(t, s, newHead("t"), callPart([]byte("call")))
	first := commitNext(t, s, h, func(h *task.Head) { h.Epoch = 1 })
	second := commitNext(t, s, first, func(h *task.Head) { h.Epoch, h.Journal = 2, 1 }, entryPart(2, 0, []byte("e0")), questionPart(2, "q", []byte("q2")))
	late := first
	late.Version, late.Journal = first.Version+1, 3
	conflicts(t, s, late, second, entryPart(1, 0, noise(1, 1<<20)), entryPart(1, 1, noise(1, 1<<20)), entryPart(1, 2, []byte("late")),
		questionPart(1, "q", []byte("late")), outcomePart(1, []byte("late")), answerPart("q", []byte("late")))
	notCommitted(t, s, second.Expires, late, entryPart(1, 0, []byte("late")), outcomePart(1, []byte("late")))
	seen := func(h task.Head, entries ...task.Part) {
		t.Helper()
		isThere(t, s, h)
		partsAre(t, s, "t", task.PartEntry, "", 0, h.Journal, entries...)
		partsAre(t, s, "t", task.PartQuestion, "", 2, 0, questionPart(2, "q", []byte("q2")))
	}
	seen(second, entryPart(2, 0, []byte("e0")))

	third := commitNext(t, s, second, journal(2), entryPart(2, 1, []byte("e1")))
	seen(third, entryPart(2, 0, []byte("e0")), entryPart(2, 1, []byte("e1")))
	fourth := commitNext(t, s, third, journal(3), entryPart(2, 2, nil), outcomePart(2, []byte("o2")))
	seen(fourth, entryPart(2, 0, []byte("e0")), entryPart(2, 1, []byte("e1")), entryPart(2, 2, nil))
	partsAre(t, s, "t", task.PartOutcome, "", 2, 0, outcomePart(2, []byte("o2")))

	// An answer is there or not, and one that is there stays.
	before, err := s.Parts(t.Context(), "t", task.PartAnswer, "q", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	commitNext(t, s, fourth, unchanged, answerPart("q", []byte("in time")))
	want := answerPart("q", []byte("in time"))
	if len(before) > 0 {
		want = answerPart("q", []byte("late"))
	}
	partsAre(t, s, "t", task.PartAnswer, "q", 0, 0, want)
}

func neverPut(t *testing.T, open func() task.Store) {
	s := open()
	for _, k := range []task.Kind{task.PartCall, task.PartEntry, task.PartOutcome} {
		partsFail(t, s, "gone", k, "", 0, 1, task.ErrNotFound, task.ErrCorrupt)
	}
	h := createTask(t, s, newHead("t"))
	commitNext(t, s, h, func(h *task.Head) {
		h.Journal = 5
		h.Asked = []task.Asked{{Key: "a", Epoch: 1}, {Key: "b", Epoch: 1}}
		h.Outcome = &task.OutcomeRef{Epoch: 1}
	}, entryPart(1, 1, []byte("e1")), entryPart(1, 2, []byte("e2")), entryPart(1, 4, []byte("e4")), questionPart(1, "b", []byte("b")))
	for _, c := range [][2]uint32{{0, 5}, {0, 1}, {0, 2}, {2, 4}, {3, 4}, {4, 6}, {3, 1<<32 - 1}} {
		partsFail(t, s, "t", task.PartEntry, "", c[0], c[1], task.ErrCorrupt)
	}
	partsAre(t, s, "t", task.PartEntry, "", 1, 3, entryPart(1, 1, []byte("e1")), entryPart(1, 2, []byte("e2")))
	partsFail(t, s, "t", task.PartCall, "", 0, 0, task.ErrCorrupt)
	partsFail(t, s, "t", task.PartOutcome, "", 1, 0, task.ErrCorrupt)
	partsFail(t, s, "t", task.PartQuestion, "a", 1, 0, task.ErrCorrupt)
	partsFail(t, s, "t", task.PartQuestion, "b", 2, 0, task.ErrCorrupt)
	partsAre(t, s, "t", task.PartQuestion, "", 1, 0, questionPart(1, "b", []byte("b")))
	partsAre(t, s, "t", task.PartAnswer, "a", 0, 0) // nobody has to answer
	partsAre(t, s, "t", task.PartAnswer, "", 0, 0)
}

func cut(t *testing.T, open func() task.Store) {
	s := open()
	cutter := s.(Cutter)
	h := createTask(t, s, newHead("t"), callPart(noise(1, 1<<20)))
	parts := []task.Part{
		entryPart(2, 0, noise(2, 1<<20)), entryPart(2, 1, []byte("small")), entryPart(2, 2, noise(3, 1<<20)),
		questionPart(2, "large", noise(4, 1<<20)), questionPart(2, "small", []byte("small")), outcomePart(2, noise(5, 1<<20)), outcomePart(3, []byte("small")),
		answerPart("large", noise(6, 1<<20)), answerPart("small", []byte("small")),
	}
	commitNext(t, s, h, journal(3), parts...)
	partsAre(t, s, "t", task.PartEntry, "", 0, 3, parts[:3]...)

	cutter.Cut(t, "t", callPart(nil))
	partsFail(t, s, "t", task.PartCall, "", 0, 0, task.ErrCorrupt)
	for _, p := range parts {
		cutter.Cut(t, "t", p)
		switch p.Kind {
		case task.PartEntry:
			partsFail(t, s, "t", task.PartEntry, "", p.Seq, p.Seq+1, task.ErrCorrupt)
			partsFail(t, s, "t", task.PartEntry, "", 0, 3, task.ErrCorrupt)
		case task.PartQuestion, task.PartOutcome:
			partsFail(t, s, "t", p.Kind, p.Name, p.Epoch, 0, task.ErrCorrupt)
		case task.PartAnswer: // what is gone as a whole was never given
			if got, err := s.Parts(t.Context(), "t", p.Kind, p.Name, 0, 0); len(got) > 0 || err != nil && !errors.Is(err, task.ErrCorrupt) {
				t.Errorf("a cut answer: %d parts, %v", len(got), err)
			}
		}
	}
}
