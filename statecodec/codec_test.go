package statecodec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNewRefuses(t *testing.T) {
	k := newFakeKey("file:a", 1)
	many := []Key{}
	for i := range MaxKeys + 1 {
		many = append(many, newFakeKey(fmt.Sprint("file:", i), byte(i)))
	}
	a, b := clashingIDs(t)
	for _, c := range []struct {
		name string
		keys []Key
		o    Options
		want string
	}{
		{"no key", nil, Options{}, "0 keys; allowed are 1 to 4"},
		{"five keys", many, Options{}, "5 keys; allowed are 1 to 4"},
		{"nil key", []Key{k, nil}, Options{}, "a key without an id"},
		{"empty id", []Key{newFakeKey("", 1)}, Options{}, "a key without an id"},
		{"same key twice", []Key{k, newFakeKey("file:a", 1)}, Options{}, "key file:a is listed twice"},
		{"clash of short ids", []Key{newFakeKey(a, 1), newFakeKey(b, 2)}, Options{}, "have the same short id"},
		{"empty ring", []Key{&fakeRing{}}, Options{}, "a key ring without a key"},
		{"TTL above a day", []Key{k}, Options{TTL: MaxTTL + 1}, "allowed is 1s to 24h0m0s"},
		{"TTL below a second", []Key{k}, Options{TTL: time.Millisecond}, "allowed is 1s to 24h0m0s"},
		{"TTL below zero", []Key{k}, Options{TTL: -time.Hour}, "allowed is 1s to 24h0m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := New(c.keys, &c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
	if k.calls.Load() != 0 {
		t.Error("New called a key service")
	}
}

// clashingIDs finds two key ids with one short id.
func clashingIDs(t *testing.T) (a, b string) {
	t.Helper()
	seen := map[kid]string{}
	for i := range 1 << 20 {
		id := fmt.Sprint("file:", i)
		if other, ok := seen[kidOf(id)]; ok {
			return other, id
		}
		seen[kidOf(id)] = id
	}
	t.Fatal("no two ids clash")
	return "", ""
}

func TestSealAndOpen(t *testing.T) {
	c := newCodec(t, nil, newFakeKey("file:a", 1))
	for _, n := range []int{0, 1, 43, 44, 45, 92, 93, 1000, MaxJournal} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := someState(strings.Repeat("j", n))
			token := mustSeal(t, c, s, someBinding)
			if want := len(prefix) + chunk*(1+(atJournal+n+padTo-1)/padTo); len(token) != want || len(token) > MaxToken {
				t.Errorf("%d characters, want %d", len(token), want)
			}
			got, err := c.Open(t.Context(), token, someBinding, s.Revision)
			if err != nil {
				t.Fatal(err)
			}
			s.Started, s.Issued, s.Expires = got.Started, got.Issued, got.Expires
			if !reflect.DeepEqual(got, s) {
				t.Errorf("opened to %+v, want %+v", got, s)
			}
			if again := mustSeal(t, c, s, someBinding); again == token {
				t.Error("two seals made one token")
			}
		})
	}
}

// B-34: the token shows nothing of what is in it.
func TestTokenIsNotReadable(t *testing.T) {
	c := newCodec(t, nil, newFakeKey("file:a", 1))
	secrets := []string{"the-journal-of-the-call", "alice@example.com", "delete_files"}
	b := Binding{Principal: Principal("jwt", "", secrets[1], "", ""), Request: Request("tools/call", secrets[2], [32]byte{})}
	s := someState(secrets[0])
	token := mustSeal(t, c, s, b)
	raw := rawToken(t, token)
	for _, secret := range append(secrets, string(s.CallID[:]), string(b.Principal[:]), string(b.Request[:])) {
		if strings.Contains(token, secret) || bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%q is in the token", secret)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Unix(vectorNow, 0).UTC()
	for _, c := range []struct {
		name             string
		ttl              time.Duration
		now, started     time.Time
		started_, expiry time.Time
		want             error
	}{
		{name: "first round", now: now, started_: now, expiry: now.Add(time.Hour)},
		{name: "own TTL", ttl: 5 * time.Minute, now: now, started_: now, expiry: now.Add(5 * time.Minute)},
		{name: "longest TTL", ttl: MaxTTL, now: now, started_: now, expiry: now.Add(MaxTTL)},
		{name: "parts of a second are cut", now: now.Add(999 * time.Millisecond), started_: now, expiry: now.Add(time.Hour)},
		{name: "later round", now: now, started: now.Add(-2 * time.Hour), started_: now.Add(-2 * time.Hour), expiry: now.Add(time.Hour)},
		{name: "the call's end comes first", now: now, started: now.Add(-CallLifetime + 10*time.Minute),
			started_: now.Add(-CallLifetime + 10*time.Minute), expiry: now.Add(10 * time.Minute)},
		{name: "long TTL cannot renew", ttl: MaxTTL, now: now, started: now.Add(-time.Hour), started_: now.Add(-time.Hour), expiry: now.Add(MaxTTL - time.Hour)},
		{name: "the call's last second", now: now, started: now.Add(-CallLifetime + time.Second), started_: now.Add(-CallLifetime + time.Second), expiry: now.Add(time.Second)},
		{name: "the call is over", now: now, started: now.Add(-CallLifetime), want: ErrExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			codec := newCodec(t, &Options{TTL: c.ttl, Now: func() time.Time { return c.now }}, newFakeKey("file:a", 1))
			s := someState("")
			s.Started = c.started
			token, err := codec.Seal(t.Context(), s, someBinding)
			if !errors.Is(err, c.want) || err != nil && token != "" {
				t.Fatalf("sealed %q, %v; want %v", token, err, c.want)
			}
			if c.want != nil {
				return
			}
			got, err := codec.Open(t.Context(), token, someBinding, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got.Started != c.started_ || got.Issued != c.now.Truncate(time.Second) || got.Expires != c.expiry {
				t.Errorf("started %v, issued %v, expires %v", got.Started, got.Issued, got.Expires)
			}
		})
	}
}

func TestSealRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		now  int64
		edit func(s *State)
		want error
		text string
	}{
		{"journal", vectorNow, func(s *State) { s.Journal = make([]byte, MaxJournal+1) }, ErrTooLarge, "24381 bytes, allowed are 24380"},
		{"round", vectorNow, func(s *State) { s.Round = MaxRounds + 1 }, ErrTooLarge, "round 21, allowed are 20"},
		{"no call id", vectorNow, func(s *State) { s.CallID = CallID{} }, nil, "needs a call id"},
		{"started before 1970", 1, func(s *State) { s.Started = time.Unix(-1, 0) }, nil, "from 1970 to 2106"},
		{"starts after its end", vectorNow, func(s *State) { s.Started = time.Unix(vectorNow+7200, 0) }, nil, "start before its end"},
		{"after 2106", 1<<32 - 1800, func(*State) {}, nil, "from 1970 to 2106"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newFakeKey("file:a", 1)
			codec := newCodec(t, &Options{Now: at(c.now, 0)}, k)
			s := someState("secret")
			c.edit(&s)
			token, err := codec.Seal(t.Context(), s, someBinding)
			if token != "" || err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("sealed %q, %v; want an error with %q", token, err, c.text)
			}
			if k.calls.Load() != 0 {
				t.Error("called the key service for it")
			}
		})
	}
}

// A client that sends answers of its choice must learn nothing from a token's length but
// the journal's length to the next 48 bytes.
func TestLengthTellsNothing(t *testing.T) {
	c := newCodec(t, nil, newFakeKey("file:a", 1))
	const secret = `{"token":"hunter2-hunter2-hunter2"}`
	length := func(answer string) int { return len(mustSeal(t, c, someState(secret+answer), someBinding)) }
	for _, guess := range []string{
		secret, // repeats what is there already
		strings.Repeat("a", len(secret)),
		"q8Zr1!kV0w#bN5tY7uE2pX9dL4mS6gH3fJc",
		strings.Repeat("\x00", len(secret)),
	} {
		if got, want := length(guess), length(strings.Repeat("x", len(guess))); got != want {
			t.Errorf("answer %.10q makes %d characters, another of its length %d", guess, got, want)
		}
	}
	byLength := map[int]int{}
	for n := range 480 {
		byLength[length(strings.Repeat("x", n))]++
	}
	if len(byLength) > 480/padTo+1 {
		t.Errorf("%d lengths of token for 480 lengths of answer", len(byLength))
	}
}

func TestCallID(t *testing.T) {
	a, b := NewCallID(), NewCallID()
	if a == b || a == (CallID{}) {
		t.Errorf("ids %x and %x", a[:], b[:])
	}
	a = vectorState.CallID
	derived := map[string]bool{}
	for _, d := range []string{a.LogID(), a.IdempotencyKey(""), a.IdempotencyKey("delete"), a.IdempotencyKey("delete2"),
		b.LogID(), b.IdempotencyKey("delete")} {
		if len(d) != 32 || derived[d] {
			t.Errorf("derived %q", d)
		}
		derived[d] = true
	}
	// What steps were given must not change between versions of this package.
	if got := a.LogID(); got != "0ec9f9ba687624f1ddb4fc891a9a7a0f" {
		t.Errorf("log id %s", got)
	}
	if got := a.IdempotencyKey("delete"); got != "8c9d2e36200fb53faccaf18c4ddeb94e" {
		t.Errorf("idempotency key %s", got)
	}
}

// The id itself must not get into logs, however it is printed.
func TestCallIDPrintsAsLogID(t *testing.T) {
	id := vectorState.CallID
	var text, object strings.Builder
	timeless := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey { // whose digits may be anything
			return slog.Attr{}
		}
		return a
	}}
	slog.New(slog.NewTextHandler(&text, timeless)).Info("m", "call", id)
	slog.New(slog.NewJSONHandler(&object, timeless)).Info("m", "call", id)
	for _, got := range []string{fmt.Sprint(id), fmt.Sprintf("%v %s", id, id), text.String(), object.String()} {
		if !strings.Contains(got, id.LogID()) || strings.Contains(got, "209") || strings.Contains(got, "d1d1") {
			t.Errorf("printed %s", got)
		}
	}
	if !json.Valid([]byte(object.String())) {
		t.Errorf("logged %s", object.String())
	}
}

func TestBindingDiffersByEachField(t *testing.T) {
	seen := map[string]string{}
	add := func(name string, digest []byte) {
		if other, ok := seen[string(digest)]; ok {
			t.Errorf("%s and %s are one", name, other)
		}
		seen[string(digest)] = name
	}
	for _, f := range [][5]string{
		{"jwt", "i", "s", "t", "c"}, {"iam", "i", "s", "t", "c"}, {"jwt", "j", "s", "t", "c"}, {"jwt", "i", "r", "t", "c"},
		{"jwt", "i", "s", "u", "c"}, {"jwt", "i", "s", "t", "d"}, {"jwt", "is", "", "t", "c"}, {"jwti", "", "s", "t", "c"},
		{"none", "", "", "", ""}, {"", "none", "", "", ""},
	} {
		p := Principal(f[0], f[1], f[2], f[3], f[4])
		add(fmt.Sprint("principal ", f), p[:])
	}
	for _, f := range [][2]string{{"tools/call", "a"}, {"tools/call", "b"}, {"prompts/get", "a"}, {"tools/calla", ""}} {
		for _, digest := range [][32]byte{{}, {1}} {
			r := Request(f[0], f[1], digest)
			add(fmt.Sprint("request ", f, digest[0]), r[:])
		}
	}
	for _, url := range []string{"https://a.example/mcp", "https://a.example/mcp/", ""} {
		a := Audience(url)
		add("audience "+url, a[:])
	}
}
