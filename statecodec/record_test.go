package statecodec

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestRecords(t *testing.T) {
	c := newCodec(t, nil, newFakeKey("file:a", 1))
	for _, n := range []int{0, 1, 100, 400_000} {
		plaintext := bytes.Repeat([]byte("r"), n)
		record, err := c.SealRecord(t.Context(), "response", []byte("call 1"), plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if n > 1 && bytes.Contains(record, plaintext) {
			t.Error("the record is readable")
		}
		other := newCodec(t, nil, newFakeKey("file:b", 2), newFakeKey("file:a", 1))
		if got, err := other.OpenRecord(t.Context(), "response", []byte("call 1"), record); err != nil || !bytes.Equal(got, plaintext) {
			t.Errorf("%d bytes opened to %d, %v", n, len(got), err)
		}
	}
}

func TestRecordRefusals(t *testing.T) {
	const purpose, aad = "response", "call 1"
	now := midnight.Add(day - time.Second)
	k := newFakeKey("file:a", 1)
	c := newCodec(t, &Options{Now: at(now.Unix(), 0)}, k)
	record, err := c.SealRecord(t.Context(), purpose, []byte(aad), []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	token := mustSeal(t, c, someState(""), someBinding)
	flip := func(i int) []byte {
		b := bytes.Clone(record)
		b[(i+len(b))%len(b)] ^= 1
		return b
	}
	for _, test := range []struct {
		name         string
		purpose, aad string
		record       []byte
		after        time.Duration
		key          Key
		want         error
	}{
		{"accepted", purpose, aad, record, 0, k, nil},
		// A use is remembered for 24 h and 5 min (tasks.md rule 23), whatever days that touches.
		{"accepted a call's lifetime later", purpose, aad, record, CallLifetime + 5*time.Minute, k, nil},
		{"other purpose", "answers", aad, record, 0, k, ErrForged},
		{"other data", purpose, "call 2", record, 0, k, ErrForged},
		{"no data", purpose, "", record, 0, k, ErrForged},
		{"other format", purpose, aad, flip(0), 0, k, ErrMalformed},
		{"flipped kid", purpose, aad, flip(1), 0, k, ErrUnknownKey},
		{"flipped epoch", purpose, aad, flip(8), 0, k, ErrForged},
		{"flipped nonce", purpose, aad, flip(9), 0, k, ErrForged},
		{"flipped tag", purpose, aad, flip(-1), 0, k, ErrForged},
		{"empty", purpose, aad, nil, 0, k, ErrMalformed},
		{"short", purpose, aad, record[:48], 0, k, ErrMalformed},
		{"cut", purpose, aad, record[:len(record)-1], 0, k, ErrForged},
		{"a token's bytes", purpose, aad, append([]byte(recordFormat), rawToken(t, token)...), 0, k, ErrForged},
		{"key retired", purpose, aad, record, 0, newFakeKey("file:b", 2), ErrUnknownKey},
		{"days later", purpose, aad, record, 4 * day, k, ErrUnknownKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCodec(t, &Options{Now: at(now.Unix(), test.after)}, test.key)
			got, err := c.OpenRecord(t.Context(), test.purpose, []byte(test.aad), test.record)
			if !errors.Is(err, test.want) || err == nil && string(got) != "text" || err != nil && got != nil {
				t.Errorf("opened to %q, %v; want %v", got, err, test.want)
			}
		})
	}
	t.Run("a record's bytes as a token", func(t *testing.T) {
		padded, err := c.SealRecord(t.Context(), purpose, nil, make([]byte, 3*padTo))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Open(t.Context(), encodeToken(padded[len(recordFormat):]), someBinding, 0)
		refused(t, got, err, ErrForged)
	})
	t.Run("no purpose", func(t *testing.T) {
		if _, err := c.SealRecord(t.Context(), "", nil, nil); err == nil {
			t.Error("sealed")
		}
		if _, err := c.OpenRecord(t.Context(), "", nil, record); err == nil {
			t.Error("opened")
		}
	})
}

// A record that was sealed just before midnight with yesterday's key lives through two
// more days.
func TestRecordOfYesterdaysKey(t *testing.T) {
	clock := &testClock{now: midnight.Add(-day)}
	k := newFakeKey("file:a", 1)
	c := newCodec(t, &Options{Now: clock.Now}, k)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.fail = failing
	clock.Set(midnight.Add(day - time.Minute))
	record, err := c.SealRecord(t.Context(), "response", nil, []byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	clock.Set(clock.Now().Add(CallLifetime + 5*time.Minute))
	if _, err := c.OpenRecord(t.Context(), "response", nil, record); err != nil {
		t.Error(err)
	}
}
