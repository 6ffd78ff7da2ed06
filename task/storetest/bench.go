package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

// BenchmarkUses measures what a round of a call costs in a backend.
func BenchmarkUses(b *testing.B, backend Backend) {
	small := make([]byte, 2<<10)
	b.Run("Claim", func(b *testing.B) {
		s := backend(b)()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			claimFirst(b, s, use(strconv.Itoa(i), 1))
		}
	})
	b.Run("ClaimReplayed", func(b *testing.B) {
		s, u := backend(b)(), use("c", 1)
		claimFirst(b, s, u)
		finished(b, s, u, small)
		want, other := done(u, small), use("c", 1)
		b.ReportAllocs()
		for b.Loop() {
			claimUsed(b, s, other, want)
		}
	})
	b.Run("ClaimFinish2KB", func(b *testing.B) { claimFinish(b, backend(b)(), small) })
	b.Run("ClaimFinish350KB", func(b *testing.B) { claimFinish(b, backend(b)(), make([]byte, task.MaxResponse)) })
}

// claimFinish is a whole round. Calls come back each hundred rounds, so that a store in
// memory does not grow with the run.
func claimFinish(b *testing.B, s task.Store, response []byte) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		u := use(strconv.Itoa(i%100), 1+i/100)
		claimFirst(b, s, u)
		finished(b, s, u, response)
	}
}

// BenchmarkStore measures what a task costs in a backend.
func BenchmarkStore(b *testing.B, backend Backend) {
	b.Run("Life10Entries", func(b *testing.B) {
		s := backend(b)()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			life(b, s, strconv.Itoa(i))
		}
	})
	b.Run("Head", func(b *testing.B) {
		s := backend(b)()
		createTask(b, s, newHead("t"))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Head(b.Context(), "t"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Heartbeat", func(b *testing.B) {
		s := backend(b)()
		h := createTask(b, s, newHead("t"))
		b.ReportAllocs()
		for b.Loop() {
			h = commitNext(b, s, h, func(h *task.Head) { h.LeaseUntil = h.LeaseUntil.Add(time.Second) })
		}
	})
	b.Run("Parts1000Entries", func(b *testing.B) {
		s := backend(b)()
		var entries []task.Part
		for seq := range uint32(1000) {
			entries = append(entries, entryPart(1, seq, noise(1, 256)))
		}
		createTask(b, s, newHead("t"), entries...)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Parts(b.Context(), "t", task.PartEntry, "", 0, 1000); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// life is a task from its creation to when its client reads the result.
func life(b *testing.B, s task.Store, id string) {
	data := make([]byte, 256)
	h := createTask(b, s, newHead(id), callPart(data))
	h = commitNext(b, s, h, func(h *task.Head) {
		h.Phase, h.Epoch, h.Claims, h.Worker = task.Running, 1, 1, "worker"
		h.LeaseUntil = h.Created.Add(time.Minute)
		h.Wake = h.LeaseUntil
	})
	if _, err := s.Parts(b.Context(), id, task.PartCall, "", 0, 0); err != nil {
		b.Fatal(err)
	}
	for seq := range uint32(10) {
		h = commitNext(b, s, h, journal(seq+1), entryPart(1, seq, data))
	}
	h = commitNext(b, s, h, func(h *task.Head) {
		h.Status, h.Phase, h.Worker, h.LeaseUntil, h.Wake = task.Completed, task.Done, "", time.Time{}, time.Time{}
		h.Outcome = &task.OutcomeRef{Epoch: 1, Inline: data}
	})
	isThere(b, s, h)
}
