package strictjson

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, text, want string // want "": accepted
	}{
		{"object", `{"a":[1,2.5e3,"x",true,null]}`, ""},
		{"space around", " \n{} \t", ""},
		{"good surrogate pair", `"\ud83d\ude00"`, ""},
		{"NUL escape", `"a\u0000b"`, ""},
		{"empty", "", "incomplete JSON"},
		{"half", `{"a":`, "incomplete JSON"},
		{"half string", `{"a":"b`, "incomplete JSON"},
		{"not JSON", `hello`, "invalid JSON"},
		{"single quotes", `{'a':1}`, "invalid JSON"},
		{"two values", `{}{}`, "after the JSON value"},
		{"trailing garbage", `{} x`, "after the JSON value"},
		{"duplicate", `{"a":1,"a":2}`, "duplicate member name at byte 7"},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, "duplicate member name"},
		{"duplicate deep", `{"x":[{"y":{"a":1,"a":2}}]}`, "duplicate member name"},
		{"bad UTF-8", "\"\xff\"", "UTF-8"},
		{"lone high surrogate", `"\ud83d"`, "surrogate"},
		{"lone low surrogate", `"\udc00"`, "surrogate"},
		{"raw control character", "\"a\nb\"", "invalid JSON"},
		{"leading zero", `01`, "after the JSON value"},
		{"NaN", `NaN`, "invalid JSON"},
		{"BOM", "\ufeff{}", "invalid JSON"},
		{"depth at the limit", deep(8), ""},
		{"depth above the limit", deep(9), "nested too deeply"},
		{"brackets in strings do not nest", `["[[[[[[[[[[[[[[[[\"[[[["]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check([]byte(c.text), 8)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// An error must not carry what the client sent: it may be a secret.
func TestCheckErrorsQuoteNothing(t *testing.T) {
	for _, text := range []string{`{"hunter2":1,"hunter2":2}`, `{"a":hunter2}`, `{"a":"hunter2`, "\"hunter2\xff\""} {
		if err := Check([]byte(text), 8); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Check(%q) = %v", text, err)
		}
	}
}

func TestMembersAndElements(t *testing.T) {
	const text = `{ "a" : 1 , "b\u0062":"x\"}" , "c":{"d":[1,{"e":"]"}]}, "":null , "f": -1.5e3 }`
	if err := Check([]byte(text), 8); err != nil {
		t.Fatal(err)
	}
	var got []string
	for n, v := range Members([]byte(text)) {
		got = append(got, string(n)+"="+string(v))
	}
	want := []string{"a=1", `bb="x\"}"`, `c={"d":[1,{"e":"]"}]}`, "=null", "f=-1.5e3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = nil
	for v := range Elements([]byte(`[ 1 ,"a,b", [2,3] ,{"x":[]},true]`)) {
		got = append(got, string(v))
	}
	if want := []string{"1", `"a,b"`, "[2,3]", `{"x":[]}`, "true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for range Members([]byte("{ }")) {
		t.Error("a member in an empty object")
	}
	for range Elements([]byte("[ ]")) {
		t.Error("an element in an empty array")
	}
}

// Whatever passes Check, the scanner sees as encoding/json does.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `[1,"\\",{"a\"":[]}]`, `{"a":{"b":"}"},"c":"\\\""}`, ` "x" `, `{"\u0061":[ ]}`, `-0.0e+10`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if Check(text, 64) != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("Check accepted what is no JSON: %q", text)
		}
		compare(t, Trim(text))
	})
}

func compare(t *testing.T, value []byte) {
	t.Helper()
	switch Kind(value) {
	case '{':
		var want map[string]json.RawMessage
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for name, v := range Members(value) {
			n++
			if got := want[string(name)]; string(got) != string(v) {
				t.Fatalf("member %q: %q, want %q", name, v, got)
			}
			compare(t, v)
		}
		if n != len(want) {
			t.Fatalf("%d members, want %d in %q", n, len(want), value)
		}
	case '[':
		var want []json.RawMessage
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatal(err)
		}
		i := 0
		for v := range Elements(value) {
			if string(v) != string(want[i]) {
				t.Fatalf("element %d: %q, want %q", i, v, want[i])
			}
			compare(t, v)
			i++
		}
		if i != len(want) {
			t.Fatalf("%d elements, want %d in %q", i, len(want), value)
		}
	case '"':
		var want string
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := String(value); !ok || got != want {
			t.Fatalf("String(%q) = %q, want %q", value, got, want)
		}
		if !Is(value, want) || Is(value, want+"x") {
			t.Fatalf("Is(%q, %q)", value, want)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	type in struct {
		Text  string
		Named int `json:"named"`
		Any   any `json:"any"`
	}
	var v in
	if err := Unmarshal([]byte(`{"Text":"a","named":3,"NAMED":4,"any":{"n":[12345678901234567890,0.10]}}`), &v); err != nil {
		t.Fatal(err)
	}
	want := in{"a", 3, map[string]any{"n": []any{json.Number("12345678901234567890"), json.Number("0.10")}}}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %#v, want %#v", v, want)
	}
	err := Unmarshal([]byte(`{"named":"hunter2"}`), &v)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "named") {
		t.Errorf("error %v must name the member and not its value", err)
	}
}

func TestMarshal(t *testing.T) {
	type out struct {
		Slice []string       `json:"slice"`
		Map   map[string]int `json:"map"`
		Ptr   *int           `json:"ptr"`
		Empty int            `json:"empty,omitempty"`
		Wait  time.Duration  `json:"wait"`
		Text  string         `json:"text"`
	}
	b, err := Marshal(out{Wait: time.Second, Text: "a<b\u2028\xff"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"slice":[],"map":{},"ptr":null,"wait":1000000000,"text":"a<b\u2028` + "\ufffd" + `"}`; string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	if _, err := Marshal(math.NaN()); err == nil {
		t.Error("NaN was encoded")
	}
	if b, err := Marshal(map[string]any{"b": json.Number("1e400"), "a": json.RawMessage(`[1]`)}); err != nil || string(b) != `{"a":[1],"b":1e400}` {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":               `""`,
		"plain":          `"plain"`,
		"q\"\\\n\x00":    `"q\"\\\n\u0000"`,
		"é世\u2028\u2029": `"é世\u2028\u2029"`,
		"bad\xffutf":     "\"bad\ufffdutf\"",
		"\x7f":           "\"\x7f\"",
	} {
		if got := string(AppendString(nil, in)); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", in, got, want)
		}
	}
}

// Whatever the text, the string is strict JSON and reads back as encoding/json would have it.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "q\"\\\n\x00", "\u2028\xe2\x80\xff", "😀\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		if err := Check(got, 1); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if strings.Contains(string(got), "\u2028") || strings.Contains(string(got), "\u2029") {
			t.Fatalf("%q has a raw separator", got)
		}
		if back, _ := String(got); back != toValid(s) {
			t.Fatalf("%q became %q", s, back)
		}
		if string(AppendString(nil, []byte(s))) != string(got) {
			t.Fatal("string and bytes differ")
		}
	})
}

// toValid replaces each invalid byte by one U+FFFD.
func toValid(s string) string { return string([]rune(s)) }

func TestAppendCompact(t *testing.T) {
	got, err := AppendCompact([]byte("x"), []byte("{ \"n\": 12345678901234567890.10, \"s\":\"\u2028\" }"))
	if err != nil || string(got) != `x{"n":12345678901234567890.10,"s":"\u2028"}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []string{"", "{", "{}{}", `{"a":1,"a":2}`, "\"\xff\"", "NaN"} {
		if _, err := AppendCompact(nil, []byte(bad)); err == nil {
			t.Errorf("AppendCompact accepted %q", bad)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"search","arguments":{"query":"hello world","limit":10,"tags":["a","b"]}}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := Check(text, 128); err != nil {
			b.Fatal(err)
		}
	}
}
