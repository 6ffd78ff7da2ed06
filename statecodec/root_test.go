package statecodec

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errDenied = fmt.Errorf("%w: test", ErrKeyDenied)

func failing(context.Context) error { return errors.New("outage") }

// midnight starts epoch 20787.
var midnight = time.Unix(20787*86400, 0)

func epochOfToken(t *testing.T, token string) int64 {
	t.Helper()
	return int64(readHeader(rawToken(t, token)).epoch)
}

// TestMinting is the rule of which day's key seals.
func TestMinting(t *testing.T) {
	const today, yesterday = 20787, 20786
	denying := func(context.Context) error { return errDenied }
	for _, c := range []struct {
		name   string
		cached []time.Time // the instance sealed at these times
		now    time.Time
		fail   func(context.Context) error
		jitter float64
		epoch  int64
		calls  int64 // for the last seal
		want   error
	}{
		{name: "cold", now: midnight.Add(12 * time.Hour), epoch: today, calls: 1},
		{name: "cold in the first hour", now: midnight, jitter: 0.9, epoch: today, calls: 1},
		{name: "warm", cached: []time.Time{midnight}, now: midnight.Add(23 * time.Hour), epoch: today},
		{name: "yesterday's, within this instance's part of the first hour", cached: []time.Time{midnight.Add(-time.Hour)},
			now: midnight.Add(30*time.Minute - 1), jitter: 0.5, epoch: yesterday},
		{name: "yesterday's, after it", cached: []time.Time{midnight.Add(-time.Hour)},
			now: midnight.Add(30 * time.Minute), jitter: 0.5, epoch: today, calls: 1},
		{name: "yesterday's, no jitter", cached: []time.Time{midnight.Add(-time.Hour)}, now: midnight, epoch: today, calls: 1},
		{name: "yesterday's, at noon", cached: []time.Time{midnight.Add(-time.Hour)}, now: midnight.Add(12 * time.Hour), jitter: 0.9, epoch: today, calls: 1},
		{name: "yesterday's in an outage", cached: []time.Time{midnight.Add(-time.Hour)}, now: midnight.Add(12 * time.Hour),
			fail: failing, epoch: yesterday, calls: 2},
		{name: "yesterday's when denied", cached: []time.Time{midnight.Add(-time.Hour)}, now: midnight.Add(12 * time.Hour),
			fail: denying, epoch: yesterday, calls: 1},
		{name: "the day before yesterday's does not mint", cached: []time.Time{midnight.Add(-25 * time.Hour)}, now: midnight,
			jitter: 0.9, epoch: today, calls: 1},
		{name: "the day before yesterday's does not mint in an outage", cached: []time.Time{midnight.Add(-25 * time.Hour)}, now: midnight,
			fail: failing, calls: 2, want: ErrKeyUnavailable},
		{name: "cold in an outage", now: midnight, fail: failing, calls: 2, want: ErrKeyUnavailable},
		{name: "cold and denied", now: midnight, fail: denying, calls: 1, want: ErrKeyDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newFakeKey("awskms:k", 1)
			clock := &testClock{now: midnight}
			jitter := c.jitter
			codec := newCodec(t, &Options{Now: clock.Now, Jitter: func() float64 { return jitter }}, k)
			jitter = 0 // no pauses
			for _, then := range c.cached {
				clock.Set(then)
				mustSeal(t, codec, someState(""), someBinding)
			}
			before := k.calls.Load()
			clock.Set(c.now)
			k.fail = c.fail
			token, err := codec.Seal(t.Context(), someState(""), someBinding)
			if !errors.Is(err, c.want) {
				t.Fatalf("sealed with error %v, want %v", err, c.want)
			}
			if n := k.calls.Load() - before; n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			if c.want != nil {
				return
			}
			if got := epochOfToken(t, token); got != c.epoch {
				t.Errorf("sealed in epoch %d, want %d", got, c.epoch)
			}
			if err := codec.Ready(t.Context()); err != nil {
				t.Errorf("sealed, but not ready: %v", err)
			}
			if _, err := newCodec(t, &Options{Now: clock.Now}, newFakeKey("awskms:k", 1)).Open(t.Context(), token, someBinding, 0); err != nil {
				t.Errorf("another instance: %v", err)
			}
		})
	}
}

// TestEpochWindow: a token's day is judged before anyone is asked for its key.
func TestEpochWindow(t *testing.T) {
	const today = 20787
	for _, c := range []struct {
		name  string
		now   time.Time
		epoch uint32
		want  bool
	}{
		{"today", midnight.Add(time.Hour), today, true},
		{"yesterday", midnight.Add(time.Hour), today - 1, true},
		{"three days back", midnight.Add(time.Hour), today - 3, true},
		{"four days back", midnight.Add(time.Hour), today - 4, false},
		{"tomorrow", midnight.Add(time.Hour), today + 1, false},
		{"tomorrow, a minute before it", midnight.Add(day - time.Minute), today + 1, true},
		{"tomorrow, over a minute before it", midnight.Add(day - time.Minute - time.Second), today + 1, false},
		{"the day after tomorrow, a minute before tomorrow", midnight.Add(day - time.Minute), today + 2, false},
		{"three days back, over a minute before midnight", midnight.Add(day - time.Minute - time.Second), today - 3, true},
		{"three days back, a minute before midnight", midnight.Add(day - time.Minute), today - 3, false},
		{"1970", midnight, 0, false},
		{"the last", midnight, 1<<32 - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newFakeKey("awskms:k", 1)
			codec := newCodec(t, &Options{Now: at(c.now.Unix(), 0)}, k)
			h := header{kidOf(k.id), c.epoch}
			token := encodeToken(append(h.append(nil), make([]byte, 184)...))
			_, err := codec.Open(t.Context(), token, someBinding, 0)
			want, calls := ErrUnknownKey, int64(0)
			if c.want {
				want, calls = ErrForged, 1
			}
			refused(t, State{}, err, want)
			if k.calls.Load() != calls {
				t.Errorf("%d calls, want %d", k.calls.Load(), calls)
			}
		})
	}
}

func TestManyWaitForOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKey("awskms:k", 1)
		k.fail = func(context.Context) error { <-time.After(900 * time.Millisecond); return nil }
		c := newCodec(t, nil, k)
		token := mustSeal(t, newCodec(t, nil, newFakeKey("awskms:k", 1)), someState(""), someBinding)
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				if _, err := c.Open(t.Context(), token, someBinding, 0); err != nil {
					t.Error(err)
				}
				if err := c.Ready(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := k.calls.Load(); n != 1 {
			t.Errorf("%d calls for 100 requests, want 1", n)
		}
	})
}

// A client that leaves must not fail the others, nor make the next one start again.
func TestCallOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKey("awskms:k", 1)
		k.fail = func(ctx context.Context) error {
			select {
			case <-time.After(800 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := newCodec(t, nil, k)
		leaving, leave := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			err := c.Ready(leaving)
			if !errors.Is(err, ErrKeyUnavailable) || !errors.Is(err, context.Canceled) {
				t.Errorf("the one that left got %v", err)
			}
		})
		synctest.Wait()
		group.Go(func() {
			if err := c.Ready(t.Context()); err != nil {
				t.Errorf("the one that stayed got %v", err)
			}
		})
		synctest.Wait()
		leave()
		group.Wait()
		if err := c.Ready(t.Context()); err != nil || k.calls.Load() != 1 {
			t.Errorf("then %v after %d calls", err, k.calls.Load())
		}
	})
}

func TestAttempts(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(context.Context) error { return errors.New("throttled") }
	for _, c := range []struct {
		name     string
		fails    []func(context.Context) error // by attempt
		jitter   float64
		want     error
		calls    int64
		min, max time.Duration
	}{
		{"at once", nil, 0, nil, 1, 0, 0},
		{"second attempt", []func(context.Context) error{fails}, 0.5, nil, 2, 125 * time.Millisecond, 125 * time.Millisecond},
		{"second after a hang", []func(context.Context) error{hangs}, 0.5, nil, 2, 1125 * time.Millisecond, 1125 * time.Millisecond},
		{"fails twice", []func(context.Context) error{fails, fails, nil}, 0.5, ErrKeyUnavailable, 2, 125 * time.Millisecond, 125 * time.Millisecond},
		{"hangs twice", []func(context.Context) error{hangs, hangs, nil}, 0.999, ErrKeyUnavailable, 2, 2 * time.Second, 2500 * time.Millisecond},
		{"denied", []func(context.Context) error{func(context.Context) error { return errDenied }, nil}, 0.5, ErrKeyDenied, 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newFakeKey("awskms:k", 1)
				k.fail = func(ctx context.Context) error {
					if n := int(k.calls.Load()) - 1; n < len(c.fails) && c.fails[n] != nil {
						return c.fails[n](ctx)
					}
					return nil
				}
				codec := newCodec(t, &Options{Jitter: func() float64 { return c.jitter }}, k)
				start := time.Now()
				err := codec.Ready(t.Context())
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if took := time.Since(start); took < c.min || took > c.max {
					t.Errorf("took %v, want %v to %v", took, c.min, c.max)
				}
				if k.calls.Load() != c.calls {
					t.Errorf("%d calls, want %d", k.calls.Load(), c.calls)
				}
			})
		})
	}
}

// TestFailuresAreRemembered: during an outage a key service is asked less and less often,
// and a denied key twice a minute.
func TestFailuresAreRemembered(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name   string
		fail   error
		jitter float64
		calls  int64 // each time
		want   []time.Duration
	}{
		{"unavailable, longest waits", errors.New("outage"), 1, 2,
			[]time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms}},
		{"unavailable, shortest waits", errors.New("outage"), 0, 2,
			[]time.Duration{125 * ms, 250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 2500 * ms, 2500 * ms}},
		{"denied", errDenied, 0.5, 1, []time.Duration{30 * time.Second, 30 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newFakeKey("awskms:k", 1)
				k.fail = func(context.Context) error { return c.fail }
				codec := newCodec(t, &Options{Jitter: func() float64 { return c.jitter }}, k)
				first := codec.Ready(t.Context())
				for i, wait := range c.want {
					calls := k.calls.Load()
					<-time.After(wait - 1)
					if err := codec.Ready(t.Context()); err.Error() != first.Error() || k.calls.Load() != calls {
						t.Errorf("wait %d: got %v after %d calls, want what is remembered", i, err, k.calls.Load()-calls)
					}
					<-time.After(1)
					if err := codec.Ready(t.Context()); err == nil || k.calls.Load() != calls+c.calls {
						t.Errorf("wait %d: got %v after %d calls, want %d", i, err, k.calls.Load()-calls, c.calls)
					}
				}
				// A success ends it, and the next failure starts anew.
				k.fail = nil
				<-time.After(c.want[len(c.want)-1])
				if err := codec.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				k.fail = func(context.Context) error { return c.fail }
				<-time.After(2 * day)
				if err := codec.Ready(t.Context()); err == nil {
					t.Fatal("sealed with a key of two days ago")
				}
				calls := k.calls.Load()
				<-time.After(c.want[0])
				if err := codec.Ready(t.Context()); err == nil || k.calls.Load() != calls+c.calls {
					t.Errorf("after a success the first wait is not %v", c.want[0])
				}
			})
		})
	}
}

// TestRotation is B-36: a list that grows and shrinks, on instances that differ.
func TestRotation(t *testing.T) {
	instance := func(ids ...string) *Codec {
		var keys []Key
		for _, id := range ids {
			keys = append(keys, newFakeKey(id, id[len(id)-1]))
		}
		return newCodec(t, &Options{Now: at(vectorNow, 0)}, keys...)
	}
	type sealed struct{ by, token string }
	seal := func(by string, c *Codec) sealed { return sealed{by, mustSeal(t, c, someState(""), someBinding)} }
	both := []sealed{seal("OLD", instance("k1")), seal("OLD,NEW", instance("k1", "k2")), seal("NEW,OLD", instance("k2", "k1"))}
	for _, s := range both {
		for name, c := range map[string]*Codec{"OLD,NEW": instance("k1", "k2"), "NEW,OLD": instance("k2", "k1")} {
			if _, err := c.Open(t.Context(), s.token, someBinding, 0); err != nil {
				t.Errorf("sealed by %s, opened by %s: %v", s.by, name, err)
			}
		}
	}
	got, err := instance("k2").Open(t.Context(), both[0].token, someBinding, 0)
	refused(t, got, err, ErrUnknownKey)
	if _, err := instance("k2").Open(t.Context(), both[2].token, someBinding, 0); err != nil {
		t.Errorf("sealed by NEW,OLD, opened by NEW: %v", err)
	}
}

// A state lives to its end through every change of day, and its last instance is cold.
func TestStatesOutliveTheDay(t *testing.T) {
	for hour := range 24 {
		sealedAt := midnight.Add(time.Duration(hour) * time.Hour)
		clock := &testClock{now: sealedAt}
		o := func() *Options { return &Options{Now: clock.Now, TTL: MaxTTL} }
		token := mustSeal(t, newCodec(t, o(), newFakeKey("awskms:k", 1)), someState(""), someBinding)
		for _, age := range []time.Duration{0, 12 * time.Hour, MaxTTL - 1} {
			clock.Set(sealedAt.Add(age))
			if _, err := newCodec(t, o(), newFakeKey("awskms:k", 1)).Open(t.Context(), token, someBinding, 0); err != nil {
				t.Errorf("sealed at %d o'clock, %v later: %v", hour, age, err)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	clock := &testClock{now: midnight.Add(-time.Minute)}
	ring := newFakeRing(newFakeKey("file:a", 1))
	c := newCodec(t, &Options{Now: clock.Now}, ring)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				if worker == 0 {
					clock.Set(midnight.Add(time.Duration(i-100) * time.Second))
				}
				token, err := c.Seal(t.Context(), someState("x"), someBinding)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := c.Open(t.Context(), token, someBinding, 0); err != nil {
					t.Error(err)
					return
				}
				c.Describe(token)
			}
		})
	}
	group.Wait()
}
