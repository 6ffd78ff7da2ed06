package schema

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// tape is a document as a list of its values in the order of the text, so that a
// schema that looks at a value many times reads the text once.
type tape struct {
	doc      []byte
	items    []item
	overfull bool // there are more values than maxValues, and not all are in items

	// What has escapes is unquoted once, into plain; text n is the one before plainEnds[n].
	plain     []byte
	plainEnds []int32
}

// item is one value. Offsets are 32 bits to keep a document of many small values small;
// maxDocument holds them there.
type item struct {
	start, end         int32 // of the value in doc
	nameStart, nameEnd int32 // of a member's quoted name; both 0 without one
	next               int32 // index of the item after this one and all it holds
	size               int32 // members or elements
	plain, namePlain   int32 // where the text and the name are in plain, if escaped; else 0
	kind               byte  // as strictjson.Kind
}

const maxDocument = 1<<31 - 1

// maxValues bounds the memory: a few bytes of text can make a value.
const maxValues = 500_000

// newTape needs a text that passed strictjson.Check and is no longer than maxDocument.
func newTape(doc []byte) tape {
	t := tape{doc: doc, items: make([]item, 0, min(1+len(doc)/8, 64))}
	t.value(strictjson.SkipSpace(doc, 0), item{})
	return t
}

// value appends the value at doc[i] and all it holds; it carries its name already.
func (t *tape) value(i int, v item) (end int) {
	doc := t.doc
	if len(t.items) == maxValues {
		t.overfull = true
		return strictjson.ValueEnd(doc, i)
	}
	v.start, v.kind = int32(i), strictjson.Kind(doc[i:])
	at := len(t.items)
	t.items = append(t.items, v)
	switch v.kind {
	case '{', '[':
		for i = strictjson.SkipSpace(doc, i+1); doc[i] != '}' && doc[i] != ']'; {
			var child item
			if v.kind == '{' {
				nameEnd, escaped := stringEnd(doc, i)
				child = item{nameStart: int32(i), nameEnd: int32(nameEnd)}
				if escaped {
					child.namePlain = t.unquote(i, nameEnd)
				}
				i = strictjson.SkipSpace(doc, strictjson.SkipSpace(doc, nameEnd)+1)
			}
			i = strictjson.SkipSpace(doc, t.value(i, child))
			if doc[i] == ',' {
				i = strictjson.SkipSpace(doc, i+1)
			}
			v.size++
		}
		end = i + 1
	case '"':
		var escaped bool
		if end, escaped = stringEnd(doc, i); escaped {
			v.plain = t.unquote(i, end)
		}
	default:
		end = scalarEnd(doc, i)
	}
	v.end, v.next = int32(end), int32(len(t.items))
	t.items[at] = v
	return end
}

func (t *tape) raw(i int) []byte { return t.doc[t.items[i].start:t.items[i].end] }

// unquote appends the text of the string doc[start:end] to plain, and says where it is.
func (t *tape) unquote(start, end int) int32 {
	if t.plainEnds == nil {
		t.plainEnds = []int32{0}
	}
	// Checked text unquotes, and no text is longer than its quoted form.
	t.plain, _ = jsontext.AppendUnquote(t.plain, t.doc[start:end])
	t.plainEnds = append(t.plainEnds, int32(len(t.plain)))
	return int32(len(t.plainEnds) - 1)
}

// unquoted is the text of the string doc[start:end], which has escapes if n is not 0.
func (t *tape) unquoted(start, end, n int32) []byte {
	if n > 0 {
		return t.plain[t.plainEnds[n-1]:t.plainEnds[n]]
	}
	return t.doc[start+1 : end-1]
}

// text is the text of a string.
func (t *tape) text(i int) []byte {
	v := &t.items[i]
	return t.unquoted(v.start, v.end, v.plain)
}

// name is the name of a member.
func (t *tape) name(i int) []byte {
	v := &t.items[i]
	return t.unquoted(v.nameStart, v.nameEnd, v.namePlain)
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
