package storetest

import (
	"strconv"
	"testing"

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
