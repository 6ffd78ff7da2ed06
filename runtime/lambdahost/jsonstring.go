package lambdahost

import "unicode/utf8"

// The encoder of this package writes JSON strings itself, because the size of an
// answer must be known exactly before it is built: escapedLen and appendString are
// two halves of one rule, escapes, and are tested against each other.

// escapes maps a byte to what stands for it in a JSON string; empty: itself.
var escapes = func() (t [256]string) {
	const hex = "0123456789abcdef"
	for c := range 0x20 {
		t[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	t['\b'], t['\f'], t['\n'], t['\r'], t['\t'] = `\b`, `\f`, `\n`, `\r`, `\t`
	t['"'], t['\\'] = `\"`, `\\`
	return t
}()

// growth is by how many bytes escaping a byte lengthens a string.
var growth = func() (t [256]uint8) {
	for c, e := range escapes {
		if e != "" {
			t[c] = uint8(len(e) - 1)
		}
	}
	return t
}()

// escapedLen is the length of s in a JSON string, without the quotes. It is exact
// for valid UTF-8.
func escapedLen[T string | []byte](s T) int {
	n := len(s)
	for i := range len(s) {
		n += int(growth[s[i]])
	}
	return n
}

// appendString appends s, which must be valid UTF-8, as a JSON string.
func appendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		if growth[s[i]] != 0 {
			b = append(b, s[start:i]...)
			b = append(b, escapes[s[i]]...)
			start = i + 1
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// appendText appends s as a JSON string with a replacement character for each byte
// that is not valid UTF-8.
func appendText(b []byte, s string) []byte {
	if utf8.ValidString(s) {
		return appendString(b, s)
	}
	return appendString(b, string([]rune(s)))
}
