package schema

import (
	"bytes"
	"slices"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// appendCanonical appends a text that is the same for equal JSON values only: members
// sorted, numbers by value, strings without needless escapes. Every byte is written
// once, however deep its value is.
func (t *tape) appendCanonical(dst []byte, i int) []byte {
	switch t.items[i].kind {
	case '{':
		members := slices.AppendSeq(make([]int, 0, t.items[i].size), t.children(i))
		slices.SortFunc(members, func(a, b int) int { return bytes.Compare(t.name(a), t.name(b)) })
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(strictjson.AppendString(dst, t.name(m)), ':')
			dst = append(t.appendCanonical(dst, m), ',')
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for c := range t.children(i) {
			dst = append(t.appendCanonical(dst, c), ',')
		}
		return append(dst, ']')
	case '"':
		return strictjson.AppendString(dst, t.text(i))
	case '0':
		return parseDecimal(t.raw(i)).appendCanonical(dst)
	}
	return append(dst, t.raw(i)...)
}

// shape is what equal values have in common, and known without looking into them.
type shape struct {
	kind   byte
	size   int32 // members or elements, or bytes of a string's text
	values int32 // it and all it holds
}

func (t *tape) shape(i int) shape {
	v := &t.items[i]
	s := shape{v.kind, v.size, v.next - int32(i)}
	if v.kind == '"' {
		s.size = int32(len(t.text(i)))
	}
	return s
}

// enumeration is the values that enum and const allow.
type enumeration struct {
	values map[string]bool // canonical
	shapes map[shape]bool
	text   string // for messages
}

// canonical returns the canonical text of value i, appended to dst, or false if there is
// no work left for it.
func (e *evaluation) canonical(dst []byte, i int) ([]byte, bool) {
	if e.spend(64*(int(e.items[i].next)-i) + e.length(i)); e.steps <= 0 {
		return nil, false
	}
	return e.appendCanonical(dst, i), true
}

// among reports whether value i is one of those allowed. Most that are not differ in
// shape, and a schema may ask at every level of a deep document.
func (e *evaluation) among(allowed *enumeration, i int) bool {
	if !allowed.shapes[e.shape(i)] {
		return false
	}
	var room [64]byte
	text, ok := e.canonical(room[:0], i)
	return ok && allowed.values[string(text)]
}

// unique checks that no two elements of array i are equal. Only elements of one shape
// can be, and nested arrays hold few of those that are large.
func (e *evaluation) unique(i int, r *findings) bool {
	if e.items[i].size < 2 {
		return true
	}
	if e.spend(64 * int(e.items[i].size)); e.steps <= 0 {
		return false
	}
	alike := make(map[shape]int)
	for m := range e.children(i) {
		alike[e.shape(m)]++
	}
	first := map[string]int{}
	var text []byte
	n := -1
	for m := range e.children(i) {
		if n++; alike[e.shape(m)] < 2 {
			continue
		}
		var ok bool
		if text, ok = e.canonical(text[:0], m); !ok {
			return false
		}
		if at, ok := first[string(text)]; ok {
			return e.fail(r, func() string { return equalItems(at, n) })
		}
		first[string(text)] = n
	}
	return true
}
