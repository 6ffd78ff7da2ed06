// Package strictjson is how thaw reads and writes JSON: one strict check of
// untrusted bytes, a scanner for bytes that passed it, and a codec that keeps the
// meaning of encoding/json with exact names.
//
// The split is what makes a request cheap: the library judges the whole text once
// (syntax, UTF-8, duplicate members), and every later look at a member is a walk
// over bytes already known to be good.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Check reports whether text is exactly one JSON value: valid UTF-8 without lone
// surrogates, no duplicate member names at any depth, nothing after the value, and
// at most maxDepth arrays and objects inside each other. The error names what is
// wrong and where, never the bytes themselves.
func Check(text []byte, maxDepth int) error {
	// Few brackets cannot nest deeply; counting them is a fraction of the walk.
	if bytes.Count(text, []byte{'{'})+bytes.Count(text, []byte{'['}) > maxDepth && tooDeep(text, maxDepth) {
		return fmt.Errorf("nested too deeply: more than %d levels", maxDepth)
	}
	if jsontext.Value(text).IsValid() {
		return nil
	}
	// Once more, for what is wrong and where.
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := dec.ReadValue(); err != nil {
		return describe(err, dec.InputOffset())
	}
	return fmt.Errorf("unexpected data after the JSON value at byte %d", dec.InputOffset())
}

// tooDeep counts brackets outside strings. The text need not be valid: a wrong
// count for invalid text only changes which error it gets.
func tooDeep(text []byte, maxDepth int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			i = stringEnd(text, i) - 1
		}
	}
	return false
}

// describe keeps the reason of a jsontext error and drops what it quotes from the input.
func describe(err error, offset int64) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return fmt.Errorf("incomplete JSON at byte %d", offset)
	}
	at := syntactic.ByteOffset
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("duplicate member name at byte %d", at)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("incomplete JSON at byte %d", at)
	case strings.Contains(syntactic.Error(), "UTF-8"), strings.Contains(syntactic.Error(), "surrogate"):
		return fmt.Errorf("invalid UTF-8 or a lone surrogate at byte %d", at)
	}
	return fmt.Errorf("invalid JSON at byte %d", at)
}
