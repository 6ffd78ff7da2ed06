package statecodec

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// FuzzOpen holds that a token has one form: whatever opens is, byte for byte, what its
// parts make again; and that nothing comes beside an error.
func FuzzOpen(f *testing.F) {
	for _, g := range goldenFiles(f) {
		f.Add(g.Token)
	}
	f.Add(vectorToken)
	c := newCodec(f, &Options{Now: at(vectorNow, time.Minute)}, &fakeKey{id: "file:golden", secret: bytes.Repeat([]byte{0x5a}, 32)}, vectorKey)
	g := goldenFiles(f)["empty.json"]
	b := g.binding(f)
	f.Fuzz(func(t *testing.T, token string) {
		c.Describe(token)
		s, err := c.Open(t.Context(), token, b, 0)
		if err != nil {
			if !reflect.DeepEqual(s, State{}) {
				t.Fatalf("state %+v came beside error %v", s, err)
			}
			known := false
			for _, sentinel := range sentinels {
				known = known || errors.Is(err, sentinel)
			}
			if !known {
				t.Fatalf("error %v is none of the sentinels", err)
			}
			return
		}
		h, sealed, err := parseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		if again := encodeToken(append(h.append(nil), sealed...)); again != token {
			t.Fatalf("%q opens and is written %q", token, again)
		}
		resealed := mustSeal(t, c, s, b)
		got, err := c.Open(t.Context(), resealed, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Issued, s.Expires = got.Issued, got.Expires
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("%+v sealed again opens to %+v", s, got)
		}
	})
}

// FuzzParse is FuzzOpen without a key in the way: what parses is written the same again.
func FuzzParse(f *testing.F) {
	for _, g := range goldenFiles(f) {
		f.Add(g.Token)
	}
	f.Add(prefix + strings.Repeat("\n", chunk))
	f.Fuzz(func(t *testing.T, token string) {
		h, sealed, err := parseToken(token)
		if err != nil {
			if sealed != nil || h != (header{}) || !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%v, %x, %v", h, sealed, err)
			}
			return
		}
		if again := encodeToken(append(h.append(nil), sealed...)); again != token {
			t.Fatalf("%q parses and is written %q", token, again)
		}
	})
}

// FuzzDecode holds the same of the plaintext, for whoever has the key.
func FuzzDecode(f *testing.F) {
	for _, g := range goldenFiles(f) {
		if g.State != nil {
			s, b := g.State.state(f), g.binding(f)
			f.Add(s.encode(&b))
		}
	}
	f.Fuzz(func(t *testing.T, plaintext []byte) {
		s, b, ok := decode(plaintext)
		if !ok {
			if !reflect.DeepEqual(s, State{}) || b != (Binding{}) {
				t.Fatalf("%+v, %+v beside a refusal", s, b)
			}
			return
		}
		if again := s.encode(&b); !bytes.Equal(again, plaintext) {
			t.Fatalf("%x decodes and is written %x", plaintext, again)
		}
	})
}

// FuzzOpenRecord: records lie in stores that others can write.
func FuzzOpenRecord(f *testing.F) {
	c := newCodec(f, &Options{Now: at(vectorNow, 0)}, newFakeKey("file:a", 1))
	record, err := c.SealRecord(f.Context(), "response", []byte("call"), []byte("text"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("response", []byte("call"), record)
	f.Add("response", []byte("call"), record[:48])
	f.Fuzz(func(t *testing.T, purpose string, aad, sealed []byte) {
		plaintext, err := c.OpenRecord(t.Context(), purpose, aad, sealed)
		if err != nil && plaintext != nil {
			t.Fatalf("%q came beside error %v", plaintext, err)
		}
		if err == nil && (string(plaintext) != "text" || purpose != "response" || string(aad) != "call") {
			t.Fatalf("a record that nobody sealed opens to %q", plaintext)
		}
	})
}
