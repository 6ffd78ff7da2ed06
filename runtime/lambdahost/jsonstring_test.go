package lambdahost

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

func checkString(t *testing.T, s string) {
	t.Helper()
	b := appendString(nil, s)
	if n := escapedLen(s); n != len(b)-2 {
		t.Fatalf("escapedLen(%q) = %d, but it takes %d", s, n, len(b)-2)
	}
	if n := escapedLen([]byte(s)); n != len(b)-2 {
		t.Fatalf("escapedLen of the bytes of %q = %d, but they take %d", s, n, len(b)-2)
	}
	var back string
	if err := json.Unmarshal(b, &back); err != nil || back != s {
		t.Fatalf("appendString(%q) = %s, which reads as %q, %v", s, b, back, err)
	}
}

func TestStringsAreExact(t *testing.T) {
	for c := range rune(0x300) {
		checkString(t, string(c))
		checkString(t, "a"+string(c)+"b")
	}
	for _, s := range []string{"", `"`, `\`, `\"`, "\u2028\u2029", "\U0001F600", "</script>", strings.Repeat("\x00", 100)} {
		checkString(t, s)
	}
	err := quick.Check(func(s string) bool { checkString(t, s); return true }, &quick.Config{MaxCount: 2000})
	if err != nil {
		t.Error(err)
	}
	// Mostly what needs escapes, which quick seldom draws.
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, r.IntN(50))
		for i := range b {
			b[i] = byte(r.IntN(0x80))
		}
		checkString(t, string(b))
	}
}

func FuzzString(f *testing.F) {
	f.Add("")
	f.Add("\x00\x1f \"\\\u2028\x7f")
	f.Fuzz(func(t *testing.T, s string) {
		if utf8.ValidString(s) {
			checkString(t, s)
		}
		if b := appendText(nil, s); !utf8.Valid(b) || !json.Valid(b) {
			t.Errorf("appendText(%q) = %q", s, b)
		}
	})
}
