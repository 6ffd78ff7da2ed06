package strictjson

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// What authors know from encoding/json stays (omitempty, Duration as nanoseconds,
// sorted maps), but names match exactly, duplicates and bad UTF-8 are refused on the
// way in, nil slices and maps are [] and {} on the way out, and the two line
// separators that break naive event-stream readers are escaped.
var (
	marshalOptions = json.JoinOptions(
		jsonv1.DefaultOptionsV1(),
		json.Deterministic(true),
		json.FormatNilSliceAsNull(false),
		json.FormatNilMapAsNull(false),
		jsontext.EscapeForHTML(false),
		jsontext.EscapeForJS(true),
		jsontext.AllowDuplicateNames(false),
		json.WithMarshalers(json.MarshalToFunc(writeNumber)),
	)
	unmarshalOptions = json.JoinOptions(
		jsonv1.DefaultOptionsV1(),
		json.MatchCaseInsensitiveNames(false),
		jsontext.AllowDuplicateNames(false),
		jsontext.AllowInvalidUTF8(false),
		json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(exactNumber), json.UnmarshalFromFunc(readNumber))),
	)
)

// Marshal encodes v. Invalid UTF-8 in v becomes U+FFFD. A value that JSON cannot hold
// (NaN, a channel, a cycle) is an error; a panic in v's own methods is the caller's to
// contain.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, marshalOptions) }

// Unmarshal decodes text into v. Numbers that land in an interface become
// encoding/json.Number, so no digit is lost. The error names the member at fault and
// not its value.
func Unmarshal(text []byte, v any) error {
	err := json.Unmarshal(text, v, unmarshalOptions)
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return fmt.Errorf("%s does not fit Go type %v", pointerOrRoot(string(semantic.JSONPointer)), semantic.GoType)
	}
	var wrongType *stdjson.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fmt.Errorf("%s does not fit Go type %v", pointerOrRoot(wrongType.Field), wrongType.Type)
	}
	return err
}

func pointerOrRoot(p string) string {
	if p == "" {
		return "the value"
	}
	return p
}

// exactNumber keeps the digits of a number whose Go type says nothing about it.
func exactNumber(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*v = stdjson.Number(raw)
	return nil
}

// The library knows encoding/json.Number only as a kind of string.

func readNumber(dec *jsontext.Decoder, n *stdjson.Number) error {
	switch dec.PeekKind() {
	case '0':
		raw, err := dec.ReadValue()
		*n = stdjson.Number(raw)
		return err
	case 'n':
		return dec.SkipValue()
	}
	return &json.SemanticError{JSONPointer: dec.StackPointer(), GoType: reflect.TypeFor[stdjson.Number]()}
}

func writeNumber(enc *jsontext.Encoder, n stdjson.Number) error {
	if n == "" {
		n = "0" // as encoding/json has it
	}
	if jsontext.Value(n).Kind() != '0' {
		return errors.New("a json.Number holds no number")
	}
	return enc.WriteValue(jsontext.Value(n))
}

// AppendString appends s as a JSON string: invalid UTF-8 becomes U+FFFD, U+2028 and
// U+2029 are escaped. It is most of the work of encoding a result, hence by hand.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	start := 0 // of what is not yet copied
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\t':
				dst = append(dst, '\\', 't')
			case '\r':
				dst = append(dst, '\\', 'r')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + 1
		case r == '\u2028':
			dst = append(append(dst, s[start:i]...), `\u2028`...)
			start = i + size
		case r == '\u2029':
			dst = append(append(dst, s[start:i]...), `\u2029`...)
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

const hexDigits = "0123456789abcdef"

// AppendFloat appends f, which is finite, as the shortest JSON number that reads back equal.
func AppendFloat(dst []byte, f float64) []byte { return jsontext.AppendFloat(dst, f, 64) }

// AppendCompact appends value, which an author supplied, without white space and with
// U+2028 and U+2029 escaped, digits and escapes otherwise as they stand. It reports an
// error for anything but one strict JSON value.
func AppendCompact(dst, value []byte) ([]byte, error) {
	return jsontext.AppendFormat(dst, value,
		jsontext.EscapeForJS(true), jsontext.PreserveRawStrings(false), jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
}
