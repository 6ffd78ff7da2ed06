package statecodec

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeKey is a key service in memory that counts its calls and fails as a test says.
type fakeKey struct {
	id     string
	secret []byte
	calls  atomic.Int64
	// fail, if set, is asked before each call, which it may hold up or fail.
	fail func(ctx context.Context) error
}

func newFakeKey(id string, fill byte) *fakeKey {
	return &fakeKey{id: id, secret: bytes.Repeat([]byte{fill}, 32)}
}

func (k *fakeKey) ID() string { return k.id }

func (k *fakeKey) MAC(ctx context.Context, message []byte) ([]byte, error) {
	k.calls.Add(1)
	if k.fail != nil {
		if err := k.fail(ctx); err != nil {
			return nil, err
		}
	}
	h := hmac.New(sha256.New, k.secret)
	h.Write(message)
	return h.Sum(nil), nil
}

// newCodec has a jitter of nothing unless o says otherwise: today's key is wanted at once.
func newCodec(t testing.TB, o *Options, keys ...Key) *Codec {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 0 }
	}
	c, err := New(keys, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// at is a clock that stands.
func at(unix int64, after time.Duration) func() time.Time {
	return func() time.Time { return time.Unix(unix, 0).Add(after) }
}

// testClock is a clock that a test moves.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func mustSeal(t testing.TB, c *Codec, s State, b Binding) string {
	t.Helper()
	token, err := c.Seal(t.Context(), s, b)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func rawToken(t testing.TB, token string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, prefix))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// logLines is a logger and what it wrote.
func logLines() (*slog.Logger, func() string) {
	var mu sync.Mutex
	var b strings.Builder
	w := writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	})
	return slog.New(slog.NewTextHandler(w, nil)), func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var someBinding = Binding{Audience: [16]byte{1}, Principal: [16]byte{2}, Request: [32]byte{3}}

// someState is a state in its first round.
func someState(journal string) State {
	return State{CallID: CallID{1, 2, 3}, Round: 1, Revision: 7, Journal: []byte(journal)}
}
