package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

func createsAtOnce(t *testing.T, open func() task.Store) {
	var heads [many]task.Head
	for i := range heads {
		heads[i] = newHead("t")
		heads[i].Message = fmt.Sprint(i)
	}
	var won [many]bool
	atOnce(open, func(i int, s task.Store) {
		err := s.Create(t.Context(), heads[i], callPart([]byte("call")))
		won[i] = err == nil
		if err != nil && !errors.Is(err, task.ErrExists) {
			t.Error(err)
		}
	})
	s, winners := open(), 0
	for i, h := range heads {
		if won[i] {
			winners++
			isThere(t, s, h)
		}
	}
	if winners != 1 {
		t.Errorf("%d creates won, want 1", winners)
	}
	partsAre(t, s, "t", task.PartCall, "", 0, 0, callPart([]byte("call")))
}

func sameCreateAtOnce(t *testing.T, open func() task.Store) {
	h, call := newHead("t"), callPart(noise(1, 1<<10))
	atOnce(open, func(_ int, s task.Store) {
		if err := s.Create(t.Context(), h, call); err != nil {
			t.Error(err)
		}
	})
	s := open()
	isThere(t, s, h)
	partsAre(t, s, "t", task.PartCall, "", 0, 0, call)
}

// commitsAtOnce has every writer go on from what its conflict carried, a few times.
func commitsAtOnce(t *testing.T, open func() task.Store) {
	const tries = 3
	base := createTask(t, open(), newHead("t"))
	var mu sync.Mutex
	winners := map[uint64]string{} // by version
	var conflicted atomic.Int64
	atOnce(open, func(i int, s task.Store) {
		h := base
		for try := range tries {
			next := h
			next.Version++
			next.Worker = fmt.Sprintf("%d in try %d", i, try)
			err := s.Commit(t.Context(), now(), next)
			var conflict *task.Conflict
			switch {
			case err == nil:
				mu.Lock()
				if other, twice := winners[next.Version]; twice {
					t.Errorf("version %d was won by %s and by %s", next.Version, other, next.Worker)
				}
				winners[next.Version] = next.Worker
				mu.Unlock()
				h = next
			case !errors.As(err, &conflict):
				t.Error(err)
			case conflict.Now.Version < next.Version || conflict.Now.Worker == next.Worker:
				t.Errorf("version %d lost to version %d of %q", next.Version, conflict.Now.Version, conflict.Now.Worker)
			default:
				conflicted.Add(1)
				h = conflict.Now
			}
		}
	})
	last, err := open().Head(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if int(last.Version) != 1+len(winners) || last.Worker != winners[last.Version] {
		t.Errorf("the head is at version %d of %q after %d wins, the last of %q", last.Version, last.Worker, len(winners), winners[last.Version])
	}
	if int(conflicted.Load())+len(winners) != many*tries {
		t.Errorf("%d wins and %d conflicts of %d commits", len(winners), conflicted.Load(), many*tries)
	}
}

func sameCommitAtOnce(t *testing.T, open func() task.Store) {
	next := createTask(t, open(), newHead("t"))
	next.Version, next.Journal, next.Worker = 2, 1, "worker"
	entry := entryPart(1, 0, noise(1, 1<<10))
	atOnce(open, func(_ int, s task.Store) {
		if err := s.Commit(t.Context(), now(), next, entry); err != nil {
			t.Error(err)
		}
	})
	s := open()
	isThere(t, s, next)
	partsAre(t, s, "t", task.PartEntry, "", 0, 1, entry)
}

func answersAtOnce(t *testing.T, open func() task.Store) { // T-30
	base := createTask(t, open(), newHead("t"))
	var found [many]string
	atOnce(open, func(i int, s task.Store) {
		h := base
		for {
			h.Version++
			h.Worker = fmt.Sprint(i)
			err := s.Commit(t.Context(), now(), h, answerPart("q", fmt.Append(nil, "answer ", i)))
			var conflict *task.Conflict
			if err == nil || errors.As(err, &conflict) && conflict.Now.Version > 3 {
				break // answered, or others have
			}
			if conflict == nil {
				t.Error(err)
				return
			}
			h = conflict.Now
		}
		parts, err := s.Parts(t.Context(), "t", task.PartAnswer, "q", 0, 0)
		if err != nil || len(parts) != 1 {
			t.Errorf("%d answers, %v", len(parts), err)
			return
		}
		found[i] = string(parts[0].Data)
	})
	for i := range found {
		if found[i] != found[0] {
			t.Errorf("%d found %q, another %q", i, found[i], found[0])
		}
	}
}

func readersAtOnce(t *testing.T, open func() task.Store) {
	const writers, commits = 4, 25
	createTask(t, open(), newHead("t"))
	var done atomic.Bool
	var reading, writing sync.WaitGroup
	for range 3 {
		s := open()
		reading.Go(func() {
			var seen task.Head
			for again := true; again; {
				again = !done.Load() // once more after the last commit
				h, err := s.Head(t.Context(), "t")
				if err != nil {
					t.Error(err)
					return
				}
				if h.Version < seen.Version || h.Journal < seen.Journal {
					t.Errorf("version %d with %d entries after version %d with %d", h.Version, h.Journal, seen.Version, seen.Journal)
				}
				parts, err := s.Parts(t.Context(), "t", task.PartEntry, "", 0, h.Journal)
				if err != nil {
					t.Errorf("the entries of version %d: %v", h.Version, err)
				}
				for seq, p := range parts {
					if string(p.Data) != fmt.Sprint("entry ", seq) {
						t.Errorf("entry %d of version %d is %q", seq, h.Version, p.Data)
					}
				}
				seen = h
			}
		})
	}
	for i := range writers {
		s := open()
		writing.Go(func() {
			for won := 0; won < commits; {
				h, err := s.Head(t.Context(), "t")
				if err != nil {
					t.Error(err)
					return
				}
				seq := h.Journal
				h.Version++
				h.Journal++
				h.Worker = fmt.Sprint(i) // or the heads of two writers were the same
				err = s.Commit(t.Context(), now(), h, entryPart(1, seq, fmt.Append(nil, "entry ", seq)))
				var conflict *task.Conflict
				switch {
				case err == nil:
					won++
				case !errors.As(err, &conflict):
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()
	if h, err := open().Head(t.Context(), "t"); err != nil || h.Version != 1+writers*commits || h.Journal != writers*commits {
		t.Errorf("the head is at version %d with %d entries (%v), want %d commits", h.Version, h.Journal, err, writers*commits)
	}
}
