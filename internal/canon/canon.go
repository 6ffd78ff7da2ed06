// Package canon makes a digest of JSON that is the same for equal values and for no
// others: the order of members, white space, escapes and the spelling of numbers do not
// count, everything else does. RFC 8785 would not do, because there numbers are float64,
// so that 2^53 and 2^53+1 are one.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"math"
	"slices"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// maxDepth is how many arrays and objects may be inside each other.
const maxDepth = 128

// Digest returns the SHA-256 of text's canonical form:
//
//	null n   true t   false f
//	string   s length[4] UTF-8, as it is, without normalisation
//	number   d sign digits e exponent[8], no zeros at either end of digits; zero is d0e;
//	         one whose exponent does not fit is dx length[4] text
//	array    [ elements ]
//	object   { names, as strings, and values ], members in the order of their names' bytes }
//
// Lengths and exponents are big-endian. Text that is nil or empty, which is how absent
// arguments come, counts as {}; that null does too is the caller's to say. Anything but
// one value of strict JSON is an error: duplicate members, lone surrogates, invalid UTF-8,
// more after the value, more than 128 levels. Errors quote nothing of text.
func Digest(text []byte) ([sha256.Size]byte, error) {
	if len(text) == 0 {
		text = []byte("{}")
	}
	if len(text) > math.MaxInt32 {
		return [sha256.Size]byte{}, errors.New("a JSON text of more than 2 GiB")
	}
	if err := strictjson.Check(text, maxDepth); err != nil {
		return [sha256.Size]byte{}, err
	}
	e := encoder{text: text, containers: findContainers(text), hash: sha256.New()}
	e.value(strictjson.SkipSpace(text, 0), 0)
	e.flush()
	return [sha256.Size]byte(e.hash.Sum(nil)), nil
}

// container is an array or object, in the order in which they open. With it a walk passes
// over one without reading it, which keeps the work linear however deep the text is.
type container struct {
	end  int32 // of the container in the text
	next int32 // the first container that is not inside this one
}

func findContainers(text []byte) []container {
	var all []container
	var open []int32
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = strictjson.ValueEnd(text, i) - 1
		case '{', '[':
			open = append(open, int32(len(all)))
			all = append(all, container{})
		case '}', ']':
			all[open[len(open)-1]] = container{int32(i + 1), int32(len(all))}
			open = open[:len(open)-1]
		}
	}
	return all
}

// encoder writes the canonical form of a text that passed the check into a hash.
type encoder struct {
	text       []byte
	containers []container
	hash       hash.Hash
	pending    []byte // for the hash
	digits     []byte // of the number being written
}

const flushAt = 4096

func (e *encoder) flush() {
	e.hash.Write(e.pending)
	e.pending = e.pending[:0]
}

// value writes the value at text[i], of which next is the container if it is one, and
// returns what comes after both.
func (e *encoder) value(i int, next int32) (end int, after int32) {
	if len(e.pending) > flushAt {
		e.flush()
	}
	switch kind := strictjson.Kind(e.text[i:]); kind {
	case '{':
		e.object(i, next)
	case '[':
		e.array(i, next)
	default:
		end = strictjson.ValueEnd(e.text, i)
		switch kind {
		case '"':
			e.string(unquote(e.text[i:end]))
		case '0':
			e.number(e.text[i:end])
		default: // n, t, f
			e.pending = append(e.pending, kind)
		}
		return end, next
	}
	c := e.containers[next]
	return int(c.end), c.next
}

func (e *encoder) array(i int, at int32) {
	e.pending = append(e.pending, '[')
	next := at + 1
	for i = strictjson.SkipSpace(e.text, i+1); e.text[i] != ']'; i = e.separator(i) {
		i, next = e.value(i, next)
	}
	e.pending = append(e.pending, ']')
}

// member is one of an object, with what value needs to write it.
type member struct {
	name []byte
	at   int
	next int32
}

func (e *encoder) object(i int, at int32) {
	var members []member
	next := at + 1
	for i = strictjson.SkipSpace(e.text, i+1); e.text[i] != '}'; i = e.separator(i) {
		end := strictjson.ValueEnd(e.text, i)
		m := member{name: unquote(e.text[i:end]), next: next}
		m.at = strictjson.SkipSpace(e.text, strictjson.SkipSpace(e.text, end)+1)
		members = append(members, m)
		switch e.text[m.at] {
		case '{', '[':
			c := e.containers[next]
			i, next = int(c.end), c.next
		default:
			i = strictjson.ValueEnd(e.text, m.at)
		}
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	e.pending = append(e.pending, '{')
	for _, m := range members {
		e.string(m.name)
		e.value(m.at, m.next)
	}
	e.pending = append(e.pending, '}')
}

// separator returns the index of what follows a value that ends at i, past a comma.
func (e *encoder) separator(i int) int {
	i = strictjson.SkipSpace(e.text, i)
	if e.text[i] == ',' {
		i = strictjson.SkipSpace(e.text, i+1)
	}
	return i
}

func (e *encoder) string(s []byte) { e.field('s', s) }

// field writes a token of any length.
func (e *encoder) field(token byte, s []byte) {
	e.pending = binary.BigEndian.AppendUint32(append(e.pending, token), uint32(len(s)))
	if len(s) > flushAt {
		e.flush()
		e.hash.Write(s)
		return
	}
	e.pending = append(e.pending, s...)
}

func unquote(quoted []byte) []byte {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	s, _ := strictjson.String(quoted)
	return []byte(s)
}
