package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func mustDigest(t testing.TB, text string) [sha256.Size]byte {
	t.Helper()
	d, err := Digest([]byte(text))
	if err != nil {
		t.Fatalf("Digest(%.80q): %v", text, err)
	}
	return d
}

// The vector of the state format, whose digest independent code made.
func TestVector(t *testing.T) {
	got := mustDigest(t, `{"files":["a.txt","b.txt","c/d.txt"],"dry_run":false,"limit":42,"note":"émile"}`)
	if want := "60f8468d8f072fdd8e033e8d0d861dec65bfa9b4a45cf079fba531b5440a50ac"; hex.EncodeToString(got[:]) != want {
		t.Errorf("digest %x, want %s", got, want)
	}
}

// TestForm holds the canonical form byte for byte: digests lie in tokens that other
// versions made.
func TestForm(t *testing.T) {
	for _, c := range []struct{ text, form string }{
		{``, "{}"},
		{`{}`, "{}"},
		{`null`, "n"},
		{` true `, "t"},
		{`false`, "f"},
		{`""`, "s\x00\x00\x00\x00"},
		{`"\u00e9\n"`, "s\x00\x00\x00\x03é\n"},
		{`[]`, "[]"},
		{`[1,[],"a"]`, "[d+1e\x00\x00\x00\x00\x00\x00\x00\x00[]s\x00\x00\x00\x01a]"},
		{`{"b":null,"a":{"c":[{}]}}`, "{s\x00\x00\x00\x01a{s\x00\x00\x00\x01c[{}]}s\x00\x00\x00\x01bn}"},
		{`0`, "d0e"},
		{`-0.00E-7`, "d0e"},
		{`0e99999999999999999999`, "d0e"},
		{`-120`, "d-12e\x00\x00\x00\x00\x00\x00\x00\x01"},
		{`0.0125`, "d+125e\xff\xff\xff\xff\xff\xff\xff\xfc"},
		{`1e9223372036854775807`, "d+1e\x7f\xff\xff\xff\xff\xff\xff\xff"},
		{`10e9223372036854775806`, "d+1e\x7f\xff\xff\xff\xff\xff\xff\xff"},
		{`10e9223372036854775807`, "dx\x00\x00\x00\x1610e9223372036854775807"},
		{`0.1e-9223372036854775808`, "dx\x00\x00\x00\x180.1e-9223372036854775808"},
		{`1e9223372036854775808`, "dx\x00\x00\x00\x151e9223372036854775808"},
	} {
		if got, want := mustDigest(t, c.text), sha256.Sum256([]byte(c.form)); got != want {
			t.Errorf("%s does not have the form %q", c.text, c.form)
		}
	}
	if d, err := Digest(nil); err != nil || d != mustDigest(t, "{}") {
		t.Errorf("Digest(nil) = %x, %v", d, err)
	}
}

func TestEqualValues(t *testing.T) {
	for _, equal := range [][]string{
		{`{}`, ` { } `, "\n{\t}\r\n", ``},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{ "\u0062" : 2 , "\u0061" : 1 }`},
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `0.001E+3`, `1.000`, `1e-0`, `100e-00002`},
		{`0`, `-0`, `0.0`, `0e5`, `-0e-5`},
		{`-120`, `-1.2e2`, `-12e1`, `-120.0`},
		{`1e400`, `10e399`, `1` + strings.Repeat("0", 400)},
		{`"/"`, `"\/"`, `"\u002f"`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"😀"`, `"\ud83d\ude00"`},
		{`"\u0000\b\f\n\r\t\"\\"`, `"\u0000\u0008\u000c\u000a\u000d\u0009\u0022\u005c"`},
		{`{"x":[{"b":[],"a":{}},"y"]}`, `{"x": [ {"a":{}, "b":[]}, "y" ]}`},
	} {
		for _, text := range equal[1:] {
			if mustDigest(t, text) != mustDigest(t, equal[0]) {
				t.Errorf("%.60q and %.60q differ", equal[0], text)
			}
		}
	}
}

func TestDifferentValues(t *testing.T) {
	seen := map[[sha256.Size]byte]string{}
	for _, text := range []string{
		`{}`, `{"a":null}`, `null`, `[]`, `""`, `0`, `false`, `true`, `[null]`, `[[]]`, `[[],[]]`, `[[[]]]`, `[{}]`,
		`1`, `-1`, `10`, `0.1`, `"1"`, `11`, `1e1000`, `1e-1000`,
		`9007199254740992`, `9007199254740993`, `9007199254740993.0000000000000001`, `0.1000000000000000055511151231257827`,
		`1e9223372036854775807`, `1e9223372036854775808`, `1e9223372036854775809`, `-1e9223372036854775808`, `"1e9223372036854775808"`,
		`"a"`, `"A"`, `"a "`, `"\u00e9"`, `"e\u0301"`, // no normalisation
		`{"a":1}`, `{"A":1}`, `{"a":"1"}`, `{"a":[1]}`, `{"a":{"a":1}}`, `{"a":1,"b":1}`, `{"":1}`,
		`["a","b"]`, `["b","a"]`, `["ab"]`, `[["a"],"b"]`, `["a",["b"]]`, `[["a","b"]]`,
		`{"a":{"b":1},"c":2}`, `{"a":{"b":1,"c":2}}`, `{"a":{},"b":1,"c":2}`,
		`[1,2]`, `[12]`, `[2,1]`, `["d+1e"]`,
	} {
		d := mustDigest(t, text)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", text, other)
		}
		seen[d] = text
	}
}

func TestRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2) }
	for _, c := range []struct{ name, text, want string }{
		{"duplicate", `{"a":1,"a":1}`, "duplicate member"},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, "duplicate member"},
		{"duplicate deep", `[[{"x":{"a":1,"a":1}}]]`, "duplicate member"},
		{"lone surrogate", `"\ud83d"`, "lone surrogate"},
		{"lone surrogate in a name", `{"\udc00":1}`, "lone surrogate"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "UTF-8"},
		{"UTF-8 of a surrogate", "\"\xed\xa0\x80\"", "UTF-8"},
		{"overlong UTF-8", "\"\xc0\xaf\"", "UTF-8"},
		{"trailing bytes", `{} x`, "after the JSON value"},
		{"two values", `{}{}`, "after the JSON value"},
		{"NUL after", "{}\x00", "after the JSON value"},
		{"half", `{"a":`, "incomplete"},
		{"only space", ` `, "incomplete"},
		{"not JSON", `{a:1}`, "invalid JSON"},
		{"leading zero", `{"a":01}`, "invalid JSON"},
		{"byte order mark", "\ufeff{}", "invalid JSON"},
		{"too deep", deep(maxDepth + 2), "more than 128 levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Digest([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || d != [sha256.Size]byte{} {
				t.Errorf("Digest = %x, %v; want an error with %q", d, err, c.want)
			}
		})
	}
	mustDigest(t, deep(maxDepth))
}

// BenchmarkDigest has usual arguments, then texts that would cost more than their length
// if a walk read anything twice.
func BenchmarkDigest(b *testing.B) {
	const size = 1 << 20
	var members strings.Builder
	for i := range size / 16 {
		fmt.Fprintf(&members, `,"%08x":0`, size-i)
	}
	for _, c := range []struct{ name, text string }{
		{"small", `{"files":["a.txt","b.txt","c/d.txt"],"dry_run":false,"limit":42,"note":"émile"}`},
		{"4 KB", `{"text":"` + strings.Repeat("x", 4096) + `"}`},
		{"flat", `[` + strings.Repeat(`0,`, size/2) + `0]`},
		{"a long string at the bottom", strings.Repeat(`{"a":`, 127) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat(`}`, 127)},
		{"many values at the bottom", strings.Repeat(`{"b":0,"a":`, 126) + `[` + strings.Repeat(`[],`, size/3) + `0]` + strings.Repeat(`}`, 126)},
		{"many members, in wrong order", `{"a":0` + members.String() + `}`},
		{"a long number", `[1` + strings.Repeat("0", size) + `]`},
		{"a long exponent", `[1e1` + strings.Repeat("0", size) + `]`},
		{"many escapes", `"` + strings.Repeat(`\u00e9`, size/6) + `"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				mustDigest(b, c.text)
			}
		})
	}
}
