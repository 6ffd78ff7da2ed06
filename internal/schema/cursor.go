package schema

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// These walk JSON text that passed strictjson.Check. They are index based because a
// closure for each object or array would be the largest cost of a validation.

// stringEnd returns the index after the string that starts at b[i], and whether the
// string has escapes.
func stringEnd(b []byte, i int) (end int, escaped bool) {
	i++
	n := bytes.IndexByte(b[i:], '"')
	if bytes.IndexByte(b[i:i+n], '\\') < 0 {
		return i + n + 1, false
	}
	for ; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1, true
}

// scalarEnd returns the index after the number or literal that starts at b[i].
func scalarEnd(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// unquote returns the text of a string; it aliases quoted unless there are escapes.
func unquote(quoted []byte, escaped bool) []byte {
	if !escaped {
		return quoted[1 : len(quoted)-1]
	}
	// Checked text unquotes.
	b, _ := jsontext.AppendUnquote(nil, quoted)
	return b
}

// codePoints counts the Unicode code points of a string's inner text, escapes as what
// they stand for.
func codePoints(inner []byte, escaped bool) int {
	n := 0
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		if c&0xc0 == 0x80 { // continues a code point already counted
			continue
		}
		n++
		if c != '\\' || !escaped {
			continue
		}
		i++
		if inner[i] != 'u' {
			continue
		}
		// A high surrogate goes on with \uXXXX, which Check made sure of.
		if h := inner[i+1] | 0x20; h == 'd' && strings.IndexByte("89abAB", inner[i+2]) >= 0 {
			i += 6
		}
		i += 4
	}
	return n
}

// pointerTo is the JSON Pointer (RFC 6901) of the value that starts at index at.
// Looking it up anew keeps the path off the way of documents without a violation.
func pointerTo(doc []byte, at int) string {
	var path []byte
	for i := strictjson.SkipSpace(doc, 0); i < at; {
		object := doc[i] == '{'
		i = strictjson.SkipSpace(doc, i+1)
		for n := 0; ; n++ {
			name, escaped := doc[:0], false
			if object {
				var end int
				end, escaped = stringEnd(doc, i)
				name = doc[i:end]
				i = strictjson.SkipSpace(doc, strictjson.SkipSpace(doc, end)+1)
			}
			end := strictjson.ValueEnd(doc, i)
			if at < end {
				path = append(path, '/')
				if object {
					path = appendPointerToken(path, clip(unquote(name, escaped)))
				} else {
					path = strconv.AppendInt(path, int64(n), 10)
				}
				break
			}
			i = strictjson.SkipSpace(doc, strictjson.SkipSpace(doc, end)+1)
		}
	}
	return string(path)
}

func appendPointerToken[S ~string | ~[]byte](dst []byte, name S) []byte {
	for i := range len(name) {
		switch c := name[i]; c {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
