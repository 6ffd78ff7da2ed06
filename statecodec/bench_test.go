package statecodec

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// benchEntry is a step of usual size in a journal.
var benchEntry = strings.Repeat("e", 106)

func BenchmarkSeal(b *testing.B) {
	benchEntries(b, func(b *testing.B, c *Codec, s State, _ string) {
		for b.Loop() {
			if _, err := c.Seal(b.Context(), s, someBinding); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	benchEntries(b, func(b *testing.B, c *Codec, _ State, token string) {
		for b.Loop() {
			if _, err := c.Open(b.Context(), token, someBinding, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOpenForged(b *testing.B) {
	benchEntries(b, func(b *testing.B, c *Codec, _ State, token string) {
		raw := rawToken(b, token)
		raw[len(raw)-1] ^= 1
		token = encodeToken(raw)
		for b.Loop() {
			if _, err := c.Open(b.Context(), token, someBinding, 0); err == nil {
				b.Fatal("opened")
			}
		}
	})
}

func benchEntries(b *testing.B, run func(b *testing.B, c *Codec, s State, token string)) {
	for _, n := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			c := newCodec(b, nil, newFakeKey("file:a", 1))
			s := someState(strings.Repeat(benchEntry, n))
			token := mustSeal(b, c, s, someBinding)
			b.ReportAllocs()
			run(b, c, s, token)
			b.ReportMetric(float64(len(token)), "chars")
		})
	}
}

func BenchmarkBinding(b *testing.B) {
	for b.Loop() {
		Principal("jwt", "https://idp.example.com", "auth0|6650f2c1e4b0a1", "", "https://client.example/cimd.json")
		Request("tools/call", "delete_files", [32]byte{})
	}
}

func BenchmarkReady(b *testing.B) {
	c := newCodec(b, nil, newFakeKey("file:a", 1))
	for b.Loop() {
		if err := c.Ready(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCold is what an instance computes for the first state of a key and a day, the
// key service's own time apart.
func BenchmarkCold(b *testing.B) {
	k := newFakeKey("file:a", 1)
	token := mustSeal(b, newCodec(b, nil, k), someState(""), someBinding)
	for b.Loop() {
		c := newCodec(b, &Options{Now: time.Now}, k)
		if _, err := c.Open(b.Context(), token, someBinding, 0); err != nil {
			b.Fatal(err)
		}
	}
}
