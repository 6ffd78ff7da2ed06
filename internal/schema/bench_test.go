package schema

import (
	"reflect"
	"testing"
)

type searchIn struct {
	Query  string      `json:"query" jsonschema:"what to look for" minLength:"1" maxLength:"200"`
	Limit  int         `json:"limit" jsonschema:"how many results at most" default:"10" minimum:"1" maximum:"50"`
	Tags   []string    `json:"tags,omitempty" maxItems:"10"`
	Filter searchRange `json:"filter" jsonschema:"narrows the search"`
}

type searchRange struct {
	Since string `json:"since,omitempty" format:"date"`
	Kind  string `json:"kind" enum:"page,post,file"`
}

const searchDoc = `{"query":"hello world","limit":10,"tags":["a","b"],"filter":{"since":"2026-07-28","kind":"post"}}`

type searchOut struct {
	Total int         `json:"total"`
	Hits  []searchHit `json:"hits"`
}

type searchHit struct {
	Title string  `json:"title"`
	URL   string  `json:"url"`
	Score float64 `json:"score,omitempty"`
}

func mustOf(tb testing.TB, t reflect.Type, o Options) *Type {
	tb.Helper()
	s, err := Of(t, o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Of runs for every tool at every cold start.
func BenchmarkOf(b *testing.B) {
	in, out := reflect.TypeFor[searchIn](), reflect.TypeFor[searchOut]()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Of(in, Options{}); err != nil {
			b.Fatal(err)
		}
		if _, err := Of(out, Options{Output: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// Compile runs for a hand-written schema at its first use.
func BenchmarkCompile(b *testing.B) {
	text := mustOf(b, reflect.TypeFor[searchIn](), Options{}).AppendJSON(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	s := mustOf(b, reflect.TypeFor[searchIn](), Options{})
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = s.AppendJSON(buf[:0])
	}
}

func BenchmarkValidate(b *testing.B) {
	s := mustOf(b, reflect.TypeFor[searchIn](), Options{})
	compiled, err := Compile(s.AppendJSON(nil))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		v    Validator
		doc  string
	}{
		{"inferred", s.Validator(), searchDoc},
		{"inferred, default filled in", s.Validator(), `{"query":"hello world","tags":["a","b"],"filter":{"kind":"post"}}`},
		{"inferred, refused", s.Validator(), `{"query":"","filter":{"kind":"posts"}}`},
		{"hand-written", compiled, searchDoc},
	} {
		b.Run(c.name, func(b *testing.B) {
			doc := []byte(c.doc)
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				c.v.Validate(doc)
			}
		})
	}
}
