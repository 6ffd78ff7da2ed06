package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

func TestCodePoints(t *testing.T) {
	for text, want := range map[string]int{
		`""`: 0, `"abc"`: 3, `"é世😀"`: 3, `"\n\"\\\/"`: 4, `"\u00e9"`: 1, `"\ud83d\ude00x"`: 2, `"\uD83D\uDE00"`: 1,
		`"\ud7ff"`: 1, `"\ue000a"`: 2, `"😀\u0041\ud83d\ude00"`: 3,
	} {
		if err := strictjson.Check([]byte(text), 1); err != nil {
			t.Fatal(err)
		}
		end, escaped := stringEnd([]byte(text), 0)
		if got := codePoints([]byte(text[1:end-1]), escaped); got != want {
			t.Errorf("codePoints(%s) = %d, want %d", text, got, want)
		}
	}
}

func FuzzCodePoints(f *testing.F) {
	f.Add(`"\ud83d\ude00é\u0041\\"`)
	f.Fuzz(func(t *testing.T, text string) {
		var want string
		if strictjson.Check([]byte(text), 1) != nil || text[0] != '"' || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		end, escaped := stringEnd([]byte(text), 0)
		if got := codePoints([]byte(text[1:end-1]), escaped); got != utf8.RuneCountInString(want) {
			t.Errorf("codePoints(%s) = %d, want %d", text, got, utf8.RuneCountInString(want))
		}
		if got := string(unquote([]byte(text[:end]), escaped)); got != want {
			t.Errorf("unquote(%s) = %q, want %q", text, got, want)
		}
	})
}

func TestPointerTo(t *testing.T) {
	const doc = ` { "a" : 1, "b/~" : [ {}, [ true, "\"]}" ] ] , "\u0063": { "d": null } } `
	for value, want := range map[string]string{
		"{": "", "1": "/a", "[": "/b~1~0", "{}": "/b~1~0/0", "[ true": "/b~1~0/1", "true": "/b~1~0/1/0", `"\"]}"`: "/b~1~0/1/1", `{ "d"`: "/c", "null": "/c/d",
	} {
		if got := pointerTo([]byte(doc), strings.Index(doc, value)); got != want {
			t.Errorf("pointer to %s is %q, want %q", value, got, want)
		}
	}
	long := `{"` + strings.Repeat("é", 1000) + `":1}`
	if got := pointerTo([]byte(long), len(long)-2); len(got) > 80 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long name makes a pointer of %d bytes", len(got))
	}
}
