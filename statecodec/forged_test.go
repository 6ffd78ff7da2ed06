package statecodec

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// forge returns tokens of every kind that costs nothing to make.
func forge(genuine []byte, kids []kid, epoch uint32) func() string {
	r := rand.New(rand.NewPCG(1, 2))
	return func() string {
		raw := make([]byte, len(genuine))
		copy(raw, genuine)
		for range 1 + r.IntN(8) {
			raw[headerSize+r.IntN(len(raw)-headerSize)] ^= byte(1 + r.IntN(255))
		}
		h := header{kids[r.IntN(len(kids))], epoch + uint32(r.IntN(14)) - 10}
		if r.IntN(4) == 0 {
			h.kid = kid{byte(r.Int()), byte(r.Int()), byte(r.Int()), byte(r.Int())}
		}
		return encodeToken(append(h.append(nil), raw[headerSize:]...))
	}
}

// A forged token buys no call of a key service, but the few that fetch the keys of the
// last days, once.
func TestForgedTokensBuyNoCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		now    time.Time
		warm   bool
		forged int
	}{
		{"warm", midnight.Add(12 * time.Hour), true, 200_000},
		{"cold", midnight.Add(12 * time.Hour), false, 20_000},
		{"cold, a moment before midnight", midnight.Add(day - time.Second), false, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := []Key{newFakeKey("awskms:k1", 1), newFakeKey("awskms:k2", 2)}
			codec := newCodec(t, &Options{Now: at(c.now.Unix(), 0)}, keys...)
			genuine := mustSeal(t, newCodec(t, &Options{Now: at(c.now.Unix(), 0)}, newFakeKey("awskms:k1", 1)), someState(""), someBinding)
			next := forge(rawToken(t, genuine), []kid{kidOf("awskms:k1"), kidOf("awskms:k2")}, epochOf(c.now))
			open := func(n int) {
				for range n {
					if s, err := codec.Open(t.Context(), next(), someBinding, 0); !errors.Is(err, ErrForged) && !errors.Is(err, ErrUnknownKey) {
						t.Fatalf("opened a forged token to %+v, %v", s, err)
					}
				}
			}
			limit := int64(cachedEpochs)
			if c.warm {
				open(1000)
				limit = 0
			}
			before := [2]int64{keys[0].(*fakeKey).calls.Load(), keys[1].(*fakeKey).calls.Load()}
			open(c.forged)
			for i, k := range keys {
				if n := k.(*fakeKey).calls.Load() - before[i]; n > limit {
					t.Errorf("%d forged tokens made %d calls of key %d, allowed are %d", c.forged, n, i, limit)
				}
			}
			if _, err := codec.Open(t.Context(), genuine, someBinding, 0); err != nil {
				t.Errorf("after it a genuine token: %v", err)
			}
		})
	}
}

// An instance that has only sealed knows one day's key; tokens with that day's header cost
// no call.
func TestForgedTokensOfTodayBuyNoCallAtAll(t *testing.T) {
	k := newFakeKey("awskms:k", 1)
	c := newCodec(t, &Options{Now: at(vectorNow, 0)}, k)
	raw := rawToken(t, mustSeal(t, c, someState(""), someBinding))
	for i := range 10_000 {
		raw[headerSize+i%(len(raw)-headerSize)] ^= byte(1 + i%255)
		got, err := c.Open(t.Context(), encodeToken(raw), someBinding, 0)
		refused(t, got, err, ErrForged)
	}
	if n := k.calls.Load(); n != 1 {
		t.Errorf("%d calls, want the 1 of sealing", n)
	}
}
