package strictjson

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the first byte of a value that passed Check: '{', '[', '"', 't', 'f',
// 'n', or '0' for any number. It is 0 for an empty slice.
func Kind(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	switch c := value[0]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	default:
		return '0'
	}
}

// Trim removes the white space around a value.
func Trim(value []byte) []byte { return bytes.Trim(value, " \t\r\n") }

// Members walks the members of an object that passed Check. Names come unquoted;
// both slices alias object unless a name has escapes. Values have no space around
// them.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		i := SkipSpace(object, 1)
		for i < len(object) && object[i] == '"' {
			end := stringEnd(object, i)
			name := unquoteName(object[i:end])
			i = SkipSpace(object, SkipSpace(object, end)+1)
			end = ValueEnd(object, i)
			if !yield(name, object[i:end]) {
				return
			}
			i = SkipSpace(object, end)
			if i >= len(object) || object[i] != ',' {
				return
			}
			i = SkipSpace(object, i+1)
		}
	}
}

// Elements walks the elements of an array that passed Check.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		i := SkipSpace(array, 1)
		for i < len(array) && array[i] != ']' {
			end := ValueEnd(array, i)
			if !yield(array[i:end]) {
				return
			}
			i = SkipSpace(array, end)
			if i >= len(array) || array[i] != ',' {
				return
			}
			i = SkipSpace(array, i+1)
		}
	}
}

// Member returns the value of the named member of an object that passed Check, or nil.
func Member(object []byte, name string) []byte {
	for n, v := range Members(object) {
		if string(n) == name {
			return v
		}
	}
	return nil
}

// String returns the text of a string value that passed Check; ok is false for any
// other kind of value.
func String(value []byte) (text string, ok bool) {
	if Kind(value) != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err == nil
}

// Is reports whether value, which passed Check, is a string with this text. It does not
// allocate for strings without escapes.
func Is(value []byte, text string) bool {
	if Kind(value) != '"' {
		return false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == text
	}
	s, _ := String(value)
	return s == text
}

func unquoteName(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	// The text passed Check, so its names unquote.
	b, _ := jsontext.AppendUnquote(nil, quoted)
	return b
}

// SkipSpace returns the index of the first byte from b[i] on that is no white space, or
// len(b). Between the tokens of a text that passed Check nothing else is as low as a space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at b[i], or len(b).
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}

// ValueEnd returns the index after the value that starts at b[i], in a text that passed Check.
func ValueEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default: // a number or a literal
			for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}
