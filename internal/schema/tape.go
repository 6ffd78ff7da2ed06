package schema

import "github.com/thaw-mcp/thaw/internal/strictjson"

// tape is a document as a list of its values in the order of the text, so that a
// schema that looks at a value many times reads the text once.
type tape struct {
	doc      []byte
	items    []item
	overfull bool // there are more values than maxValues, and not all are in items
}

// item is one value. Offsets are 32 bits to keep a document of many small values small;
// maxDocument holds them there.
type item struct {
	start, end         int32 // of the value in doc
	nameStart, nameEnd int32 // of a member's quoted name; both 0 without one
	next               int32 // index of the item after this one and all it holds
	size               int32 // members or elements
	kind               byte  // as strictjson.Kind
	escaped            bool  // a string with escapes
	nameEscaped        bool
}

const maxDocument = 1<<31 - 1

// maxValues bounds the memory: a few bytes of text can make a value.
const maxValues = 500_000

// newTape needs a text that passed strictjson.Check and is no longer than maxDocument.
func newTape(doc []byte) tape {
	t := tape{doc: doc, items: make([]item, 0, min(1+len(doc)/8, 64))}
	t.value(skipSpace(doc, 0), item{})
	return t
}

// value appends the value at doc[i] and all it holds; it carries its name already.
func (t *tape) value(i int, v item) (end int) {
	doc := t.doc
	if len(t.items) == maxValues {
		t.overfull = true
		return valueEnd(doc, i)
	}
	v.start, v.kind = int32(i), strictjson.Kind(doc[i:])
	at := len(t.items)
	t.items = append(t.items, v)
	switch v.kind {
	case '{', '[':
		for i = skipSpace(doc, i+1); doc[i] != '}' && doc[i] != ']'; {
			var child item
			if v.kind == '{' {
				nameEnd, escaped := stringEnd(doc, i)
				child = item{nameStart: int32(i), nameEnd: int32(nameEnd), nameEscaped: escaped}
				i = skipSpace(doc, skipSpace(doc, nameEnd)+1)
			}
			i = skipSpace(doc, t.value(i, child))
			if doc[i] == ',' {
				i = skipSpace(doc, i+1)
			}
			v.size++
		}
		end = i + 1
	case '"':
		end, v.escaped = stringEnd(doc, i)
	default:
		end = scalarEnd(doc, i)
	}
	v.end, v.next = int32(end), int32(len(t.items))
	t.items[at] = v
	return end
}

func (t *tape) raw(i int) []byte { return t.doc[t.items[i].start:t.items[i].end] }

// text is the text of a string.
func (t *tape) text(i int) []byte { return unquote(t.raw(i), t.items[i].escaped) }

// name is the name of a member.
func (t *tape) name(i int) []byte {
	v := &t.items[i]
	return unquote(t.doc[v.nameStart:v.nameEnd], v.nameEscaped)
}

// member returns the index of an object's member, or -1.
func (t *tape) member(object int, name string) int {
	if t.items[object].kind != '{' {
		return -1
	}
	for c := range t.children(object) {
		if string(t.name(c)) == name {
			return c
		}
	}
	return -1
}

// children walks the members or elements of item i.
func (t *tape) children(i int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for c, end := i+1, int(t.items[i].next); c < end; c = int(t.items[c].next) {
			if !yield(c) {
				return
			}
		}
	}
}
