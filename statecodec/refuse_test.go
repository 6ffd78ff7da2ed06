package statecodec

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sentinels in the order Open finds them.
var sentinels = []error{ErrMalformed, ErrTooLarge, ErrUnknownKey, ErrKeyUnavailable, ErrKeyDenied, ErrForged, ErrExpired,
	ErrAudience, ErrPrincipal, ErrRequest, ErrStale, ErrReplayed}

// refused checks that err is the one sentinel and that nothing came beside it.
func refused(t *testing.T, s State, err, want error) {
	t.Helper()
	if !reflect.DeepEqual(s, State{}) {
		t.Errorf("state %+v came beside error %v", s, err)
	}
	for _, sentinel := range sentinels {
		if is := errors.Is(err, sentinel); is != (sentinel == want) {
			t.Errorf("got error %v, want %v; matches %v: %v", err, want, sentinel, is)
		}
	}
}

// TestRefusals is every way in which a state is wrong (R-16 to, B-34, B-36).
func TestRefusals(t *testing.T) {
	oldKey, newKey := newFakeKey("file:old", 1), newFakeKey("file:new", 2)
	now := int64(vectorNow)
	type who struct{ scheme, issuer, subject, tenant, client string }
	alice := who{"jwt", "https://idp.example.com", "alice", "acme", "https://client.example/cimd.json"}
	type call struct {
		audience     string
		who          who
		method, name string
		args         byte
	}
	binding := func(c call) Binding {
		return Binding{Audience(c.audience), Principal(c.who.scheme, c.who.issuer, c.who.subject, c.who.tenant, c.who.client),
			Request(c.method, c.name, [32]byte{c.args})}
	}
	sealedFor := call{"https://mcp.example.com/mcp", alice, "tools/call", "transfer", 1}
	s := someState(`{"a":{"agree":true}}`)
	token := mustSeal(t, newCodec(t, &Options{Now: at(now, 0)}, oldKey), s, binding(sealedFor))
	byOther := mustSeal(t, newCodec(t, &Options{Now: at(now, 0)}, newFakeKey("file:old", 9)), s, binding(sealedFor))

	flip := func(at, bit int) string {
		raw := rawToken(t, token)
		raw[(at+len(raw))%len(raw)] ^= 1 << bit
		return encodeToken(raw)
	}
	character := func(i int) string {
		i = (i + len(token)) % len(token)
		other := byte('A')
		if token[i] == other {
			other = 'B'
		}
		return token[:i] + string(other) + token[i+1:]
	}
	for _, c := range []struct {
		name     string
		token    string
		call     func(c *call)
		after    time.Duration
		revision uint32
		keys     []Key
		want     error
	}{
		{name: "accepted", token: token},
		{name: "accepted at its revision", token: token, revision: s.Revision},
		{name: "accepted in its last moment", token: token, after: time.Hour - time.Nanosecond},
		{name: "accepted by a clock a minute behind", token: token, after: -time.Minute},
		{name: "accepted while its key is listed", token: token, keys: []Key{newKey, oldKey}},

		{name: "empty", token: "", want: ErrMalformed},
		{name: "prefix alone", token: prefix, want: ErrMalformed},
		{name: "other version", token: "t2." + token[3:], want: ErrMalformed},
		{name: "prefix in capitals", token: "T1." + token[3:], want: ErrMalformed},
		{name: "no prefix", token: token[3:], want: ErrMalformed},
		{name: "cut in half", token: token[:len(token)/2], want: ErrMalformed},
		{name: "cut by a character", token: token[:len(token)-1], want: ErrMalformed},
		{name: "cut by a chunk", token: token[:len(token)-chunk], want: ErrForged},
		{name: "longer by a chunk", token: token + token[len(token)-chunk:], want: ErrForged},
		{name: "twice", token: token + token, want: ErrMalformed},
		{name: "trailing =", token: token + "=", want: ErrMalformed},
		{name: "trailing = in place", token: token[:len(token)-1] + "=", want: ErrMalformed},
		{name: "spaces around", token: " " + token + " ", want: ErrMalformed},
		{name: "space after", token: token + " ", want: ErrMalformed},
		{name: "line feed after", token: token + "\n", want: ErrMalformed},
		{name: "CR and LF inside, length kept", token: token[:100] + "\r\n" + token[102:], want: ErrMalformed},
		{name: "64 line feeds more", token: token + strings.Repeat("\n", chunk), want: ErrMalformed},
		{name: "standard alphabet", token: token[:100] + "+/" + token[102:], want: ErrMalformed},
		{name: "NUL inside", token: token[:100] + "\x00" + token[101:], want: ErrMalformed},
		{name: "hand-made JSON", token: base64.RawURLEncoding.EncodeToString([]byte(`{"user":"admin"}`)), want: ErrMalformed},
		{name: "hand-made JSON with prefix", token: prefix + base64.RawURLEncoding.EncodeToString([]byte(`{"user":"admin"}`+strings.Repeat(" ", 128))), want: ErrUnknownKey},
		{name: "200 kB of A", token: strings.Repeat("A", 200_000), want: ErrTooLarge},
		{name: "longest that is read", token: prefix + strings.Repeat("A", MaxToken-len(prefix)-61), want: ErrUnknownKey},
		{name: "a character too long", token: prefix + strings.Repeat("A", MaxToken-len(prefix)+1), want: ErrTooLarge},

		{name: "flipped kid", token: flip(0, 0), want: ErrUnknownKey},
		{name: "flipped epoch, yesterday's", token: flip(7, 0), want: ErrForged},
		{name: "flipped epoch, out of all days", token: flip(4, 7), want: ErrUnknownKey},
		{name: "flipped first half of the nonce", token: flip(8, 3), want: ErrForged},
		{name: "flipped second half of the nonce", token: flip(31, 3), want: ErrForged},
		{name: "flipped ciphertext", token: flip(32, 7), want: ErrForged},
		{name: "flipped padding", token: flip(-tagSize-1, 0), want: ErrForged},
		{name: "flipped tag", token: flip(-1, 0), want: ErrForged},
		{name: "one character in the middle", token: character(len(token) / 2), want: ErrForged},
		{name: "the last character", token: character(-1), want: ErrForged},
		{name: "sealed under another secret of that id", token: byOther, want: ErrForged},
		{name: "key retired", token: token, keys: []Key{newKey}, want: ErrUnknownKey},
		{name: "issued in the future", token: token, after: -time.Minute - time.Second, want: ErrForged},

		{name: "expired", token: token, after: time.Hour, want: ErrExpired},
		{name: "expired days ago", token: token, after: 3*day - 12*time.Hour, want: ErrExpired},
		{name: "expired weeks ago", token: token, after: 14 * day, want: ErrUnknownKey},
		{name: "other audience", token: token, call: func(c *call) { c.audience = "https://other.example.com/mcp" }, want: ErrAudience},
		{name: "other subject", token: token, call: func(c *call) { c.who.subject = "mallory" }, want: ErrPrincipal},
		{name: "other client", token: token, call: func(c *call) { c.who.client = "https://evil.example/cimd.json" }, want: ErrPrincipal},
		{name: "other issuer", token: token, call: func(c *call) { c.who.issuer = "https://idp2.example.com" }, want: ErrPrincipal},
		{name: "other tenant", token: token, call: func(c *call) { c.who.tenant = "umbrella" }, want: ErrPrincipal},
		{name: "other scheme", token: token, call: func(c *call) { c.who.scheme = "apikey" }, want: ErrPrincipal},
		{name: "anonymous", token: token, call: func(c *call) { c.who = who{scheme: "none"} }, want: ErrPrincipal},
		{name: "other tool", token: token, call: func(c *call) { c.name = "delete" }, want: ErrRequest},
		{name: "other method", token: token, call: func(c *call) { c.method = "prompts/get" }, want: ErrRequest},
		{name: "other arguments", token: token, call: func(c *call) { c.args = 2 }, want: ErrRequest},
		{name: "older revision", token: token, revision: s.Revision + 1, want: ErrStale},

		// The first in the order is the one.
		{name: "forged and expired", token: flip(40, 0), after: time.Hour, want: ErrForged},
		{name: "expired and other audience", token: token, after: time.Hour, call: func(c *call) { c.audience = "" }, want: ErrExpired},
		{name: "other audience and principal", token: token, call: func(c *call) { c.audience, c.who = "", who{} }, want: ErrAudience},
		{name: "other principal and tool", token: token, call: func(c *call) { c.who, c.name = who{}, "" }, want: ErrPrincipal},
		{name: "other tool and older revision", token: token, call: func(c *call) { c.name = "" }, revision: s.Revision + 1, want: ErrRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := c.keys
			if keys == nil {
				keys = []Key{oldKey, newKey}
			}
			with := sealedFor
			if c.call != nil {
				c.call(&with)
			}
			codec := newCodec(t, &Options{Now: at(now, c.after)}, keys...)
			got, err := codec.Open(t.Context(), c.token, binding(with), c.revision)
			if c.want == nil {
				if err != nil || got.CallID != s.CallID {
					t.Errorf("opened to %+v, %v", got, err)
				}
				return
			}
			refused(t, got, err, c.want)
			if text := err.Error(); strings.Contains(text, "alice") || len(c.token) > len(prefix) && strings.Contains(text, c.token) {
				t.Errorf("the error says too much: %s", text)
			}
		})
	}
}

// Every bit of a token counts.
func TestEveryFlippedBitIsRefused(t *testing.T) {
	c := newCodec(t, &Options{Now: at(vectorNow, 0)}, newFakeKey("file:a", 1))
	token := mustSeal(t, c, someState("journal"), someBinding)
	for i := range rawToken(t, token) {
		for bit := range 8 {
			raw := rawToken(t, token)
			raw[i] ^= 1 << bit
			got, err := c.Open(t.Context(), encodeToken(raw), someBinding, 0)
			want := ErrForged
			if i < len(kid{}) || errors.Is(err, ErrUnknownKey) && i < headerSize {
				want = ErrUnknownKey
			}
			refused(t, got, err, want)
		}
	}
}

// A holder of the key could write what Seal does not; Open still takes one form only.
func TestOpenTakesOneFormOnly(t *testing.T) {
	k := newFakeKey("file:a", 1)
	c := newCodec(t, &Options{Now: at(vectorNow, 0)}, k)
	s := someState("journal")
	if err := s.stamp(time.Unix(vectorNow, 0), DefaultTTL); err != nil {
		t.Fatal(err)
	}
	plain := func() []byte { return s.encode(&someBinding) }
	for _, test := range []struct {
		name      string
		plaintext []byte
		want      error
	}{
		{"as Seal writes it", plain(), nil},
		{"no plaintext", nil, ErrForged},
		{"shorter than its fields", plain()[:96], ErrForged},
		{"padding not zero", func() []byte { p := plain(); p[len(p)-1] = 1; return p }(), ErrForged},
		{"padding longer than needed", append(plain(), make([]byte, padTo)...), ErrForged},
		{"journal longer than the text", func() []byte { p := plain(); p[atLength] = 1; return p }(), ErrForged},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, keys, err := c.minting(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			token, err := sealToken(keys.state, h, test.plaintext)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Open(t.Context(), token, someBinding, 0)
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, got, err, test.want)
		})
	}
}

// What the key service says decides between an outage, a fault of the operator and a key
// that is gone.
func TestKeyServiceErrors(t *testing.T) {
	denied := fmt.Errorf("%w: kms:GenerateMac on the key", ErrKeyDenied)
	unavailable := fmt.Errorf("%w: kms:GenerateMac on the key: timeout", ErrKeyUnavailable)
	for _, c := range []struct {
		name   string
		fail   error
		second bool // in the list
		want   error
	}{
		{"minting key denied", denied, false, ErrKeyDenied},
		{"minting key unavailable", unavailable, false, ErrKeyUnavailable},
		{"minting key fails somehow", errors.New("socket closed"), false, ErrKeyUnavailable},
		{"older key denied", denied, true, ErrUnknownKey},
		{"older key unavailable", unavailable, true, ErrKeyUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			token := mustSeal(t, newCodec(t, nil, newFakeKey("file:a", 1)), someState(""), someBinding)
			broken := newFakeKey("file:a", 1)
			broken.fail = func(context.Context) error { return c.fail }
			keys := []Key{broken}
			if c.second {
				keys = []Key{newFakeKey("file:b", 2), broken}
			}
			logger, logged := logLines()
			codec := newCodec(t, &Options{Logger: logger}, keys...)
			got, err := codec.Open(t.Context(), token, someBinding, 0)
			refused(t, got, err, c.want)
			if lines := logged(); !strings.Contains(lines, c.fail.Error()) || !strings.Contains(lines, "key=file:a") || strings.Contains(lines, token) {
				t.Errorf("logged %s", lines)
			}
			if !c.second {
				_, err := codec.Seal(t.Context(), someState(""), someBinding)
				refused(t, State{}, err, c.want)
				refused(t, State{}, codec.Ready(t.Context()), c.want)
			}
		})
	}
	t.Run("a MAC of another length", func(t *testing.T) {
		codec := newCodec(t, nil, shortKey{})
		refused(t, State{}, codec.Ready(t.Context()), ErrKeyUnavailable)
	})
}

type shortKey struct{}

func (shortKey) ID() string { return "short" }

func (shortKey) MAC(context.Context, []byte) ([]byte, error) { return make([]byte, 20), nil }
