package statecodec

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeRing is a ring whose file a test writes.
type fakeRing struct {
	mu      sync.Mutex
	file    []Key
	fail    error
	keys    []Key
	reloads int
}

func newFakeRing(keys ...Key) *fakeRing { return &fakeRing{file: keys, keys: keys} }

func (r *fakeRing) ID() string { return r.Keys()[0].ID() }

func (r *fakeRing) MAC(ctx context.Context, message []byte) ([]byte, error) {
	return r.Keys()[0].MAC(ctx, message)
}

func (r *fakeRing) Keys() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys
}

func (r *fakeRing) Reload(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reloads++
	if r.fail == nil {
		r.keys = r.file
	}
	return r.fail
}

func (r *fakeRing) write(fail error, keys ...Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file, r.fail = keys, fail
}

func (r *fakeRing) reloaded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reloads
}

func TestRing(t *testing.T) {
	a, b := newFakeKey("file:a", 1), newFakeKey("file:b", 2)
	clock := &testClock{now: time.Unix(vectorNow, 0)}
	logger, logged := logLines()
	ring := newFakeRing(a)
	c := newCodec(t, &Options{Now: clock.Now, Logger: logger}, ring)
	byA := mustSeal(t, c, someState(""), someBinding)
	other := newCodec(t, &Options{Now: clock.Now}, b) // another process that has rotated already
	byB := mustSeal(t, other, someState(""), someBinding)
	open := func(token string, want error) {
		t.Helper()
		got, err := c.Open(t.Context(), token, someBinding, 0)
		if want != nil {
			refused(t, got, err, want)
		} else if err != nil {
			t.Error(err)
		}
	}

	open(byA, nil)
	ring.write(nil, b, a)
	before := ring.reloaded()
	for range 100 { // one read serves all of a second, that of sealing a moment ago apart
		open(byB, nil)
		open(byA, nil)
	}
	if n := ring.reloaded() - before; n != 1 {
		t.Errorf("%d reads of the file for one new key, want 1", n)
	}
	if a.calls.Load() != 1 {
		t.Errorf("%d calls of the old key: a read must keep what is in memory", a.calls.Load())
	}

	// A file that cannot be read changes nothing.
	ring.write(errors.New("torn file"), nil)
	clock.Set(clock.Now().Add(time.Minute))
	if token := mustSeal(t, c, someState(""), someBinding); !strings.HasPrefix(token, byB[:8]) {
		t.Error("the new key does not mint")
	}
	open(byA, nil)
	if !strings.Contains(logged(), "torn file") {
		t.Errorf("logged %s", logged())
	}
	ring.write(nil, b, newFakeKey("file:b", 2))
	clock.Set(clock.Now().Add(time.Minute))
	mustSeal(t, c, someState(""), someBinding)
	if !strings.Contains(logged(), "listed twice") {
		t.Errorf("logged %s", logged())
	}

	// Retired.
	ring.write(nil, b)
	clock.Set(clock.Now().Add(time.Minute))
	mustSeal(t, c, someState(""), someBinding)
	open(byA, ErrUnknownKey)
	open(byB, nil)
}

// A key that mints is replaced within a minute, also where no token of the new one comes.
func TestRingMintsWithTheNewKeyWithinAMinute(t *testing.T) {
	a, b := newFakeKey("file:a", 1), newFakeKey("file:b", 2)
	clock := &testClock{now: time.Unix(vectorNow, 0)}
	ring := newFakeRing(a)
	c := newCodec(t, &Options{Now: clock.Now}, ring)
	kid := func() kid { return kid(rawToken(t, mustSeal(t, c, someState(""), someBinding))) }
	if kid() != kidOf("file:a") {
		t.Error("the first key does not mint")
	}
	ring.write(nil, b, a)
	clock.Set(clock.Now().Add(time.Minute - 1))
	if kid() != kidOf("file:a") {
		t.Error("read again too early")
	}
	clock.Set(clock.Now().Add(1))
	if kid() != kidOf("file:b") {
		t.Error("the new key does not mint after a minute")
	}
}

// Tokens with unknown keys read the file once a second, however many there are.
func TestForgedTokensReadTheRingOnceASecond(t *testing.T) {
	clock := &testClock{now: time.Unix(vectorNow, 0)}
	ring := newFakeRing(newFakeKey("file:a", 1))
	c := newCodec(t, &Options{Now: clock.Now}, ring)
	token := mustSeal(t, newCodec(t, &Options{Now: clock.Now}, newFakeKey("file:x", 9)), someState(""), someBinding)
	for range 3 {
		for range 1000 {
			got, err := c.Open(t.Context(), token, someBinding, 0)
			refused(t, got, err, ErrUnknownKey)
		}
		clock.Set(clock.Now().Add(time.Second))
	}
	if ring.reloaded() != 3 {
		t.Errorf("%d reads in 3 seconds", ring.reloaded())
	}
}

func TestRingBesideOtherKeys(t *testing.T) {
	kms, a, b := newFakeKey("awskms:k", 3), newFakeKey("file:a", 1), newFakeKey("file:b", 2)
	c := newCodec(t, nil, kms, newFakeRing(a, b))
	for _, k := range []Key{kms, a, b} {
		token := mustSeal(t, newCodec(t, nil, k), someState(""), someBinding)
		if _, err := c.Open(t.Context(), token, someBinding, 0); err != nil {
			t.Errorf("%s: %v", k.ID(), err)
		}
	}
	if got := kid(rawToken(t, mustSeal(t, c, someState(""), someBinding))); got != kidOf("awskms:k") {
		t.Errorf("%x mints", got)
	}
}
