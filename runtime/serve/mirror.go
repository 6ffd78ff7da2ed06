package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Header mirroring, spec group M: a value in a header and the same value in the body
// must agree, or a gateway and this server would act on different requests.

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// plainHeader returns the one value of a header that has no encoded form (M-11).
// Repeated lines are refused: readers on the way may pick different ones (M-24).
func plainHeader(h http.Header, canonical string) (value string, f *failure) {
	lines := h[canonical]
	switch len(lines) {
	case 0:
		return "", headerMismatch("header %s is missing", canonical)
	case 1:
		return lines[0], nil
	}
	return "", headerMismatch("header %s is there more than once", canonical)
}

// decodeMirrored returns the text of a mirrored value: decoded if it has the Base64
// form, as it stands otherwise (M-08 to M-11). ok is false for a broken form, for bytes
// that a header may not hold, and for a decoded text that is not UTF-8.
func decodeMirrored(value string) (text string, ok bool) {
	if len(value) >= len(encodedPrefix)+len(encodedSuffix) &&
		strings.HasPrefix(value, encodedPrefix) && strings.HasSuffix(value, encodedSuffix) {
		payload := value[len(encodedPrefix) : len(value)-len(encodedSuffix)]
		// The decoder itself passes over line ends, which no header can hold honestly.
		if strings.ContainsAny(payload, "\r\n") {
			return "", false
		}
		b, err := base64.StdEncoding.Strict().DecodeString(payload)
		if err != nil || !utf8.Valid(b) {
			return "", false
		}
		return string(b), true
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}

// checkName compares Mcp-Name with the member of the body that it mirrors (M-02).
func checkName(h http.Header, body []byte, member string) *failure {
	value, f := plainHeader(h, mcp.HeaderName)
	if f != nil {
		return f
	}
	text, ok := decodeMirrored(value)
	if !ok {
		return headerMismatch("header %s is malformed", mcp.HeaderName)
	}
	if !strictjson.Is(body, text) {
		return headerMismatch("header %s differs from params.%s", mcp.HeaderName, member)
	}
	return nil
}

// checkMirrored compares the Mcp-Param-* headers with the arguments they mirror (M-19 to
// M-24). Headers of no annotated parameter are ignored (M-23). arguments is an object.
func checkMirrored(h http.Header, bindings []binding, arguments []byte) *failure {
	for i := range bindings {
		if f := bindings[i].check(h, arguments); f != nil {
			return f
		}
	}
	return nil
}

// binding is an annotated parameter, ready for look-up.
type binding struct {
	header string // canonical, with the prefix
	path   []string
}

func bindingsOf(headers []schema.Header) []binding {
	var bs []binding
	for _, h := range headers {
		bs = append(bs, binding{http.CanonicalHeaderKey(mcp.HeaderParamPrefix + h.Name), h.Path})
	}
	return bs
}

// value is the argument that the header mirrors; nil if it is absent.
func (b *binding) value(arguments []byte) []byte {
	value := arguments
	for _, name := range b.path {
		value = memberOf(value, name)
	}
	return value
}

func (b *binding) check(h http.Header, arguments []byte) *failure {
	value := b.value(arguments)
	lines, there := h[b.header]
	if value == nil || strictjson.Kind(value) == 'n' {
		if there {
			return headerMismatch("header %s is there, argument %s is not", b.header, strings.Join(b.path, "."))
		}
		return nil
	}
	if len(lines) > 1 {
		return headerMismatch("header %s is there more than once", b.header)
	}
	if len(lines) == 0 {
		return headerMismatch("header %s is missing for argument %s", b.header, strings.Join(b.path, "."))
	}
	text, ok := decodeMirrored(lines[0])
	if !ok {
		return headerMismatch("header %s is malformed", b.header)
	}
	if strictjson.Kind(value) == '0' && text == string(value) && !safeInteger(text) {
		if fractional(text) {
			return nil // they agree; that it is no integer is for the schema to say
		}
		return headerMismatch("argument %s is beyond what a header mirrors exactly, 2^53-1", strings.Join(b.path, "."))
	}
	if !b.agrees(text, value) {
		return headerMismatch("header %s differs from argument %s", b.header, strings.Join(b.path, "."))
	}
	return nil
}

// agrees compares by the body value's own kind: one that the schema will refuse anyway
// must not be let through here by another kind's rule.
func (b *binding) agrees(text string, value []byte) bool {
	switch strictjson.Kind(value) {
	case '"':
		return strictjson.Is(value, text)
	case 't', 'f':
		return text == string(value)
	case '0':
		return sameInteger(text, string(value))
	}
	return false // an object or an array has no text form
}

// maxSafeInteger is the largest integer that every reader of a header keeps exact (M-16).
var maxSafeInteger = big.NewInt(1<<53 - 1)

// sameInteger compares two decimal texts as integers, exactly (M-20): 42.0 is 42, and
// neither may lie outside the safe range. Equal texts of plain small integers, the usual
// case, need no arithmetic.
func sameInteger(header, body string) bool {
	if header == body && len(body) <= 15 && !strings.ContainsAny(body, ".eE") {
		return decimal(body)
	}
	a, ok := integerOf(header)
	if !ok {
		return false
	}
	b, ok := integerOf(body)
	return ok && a.Cmp(b) == 0 && a.CmpAbs(maxSafeInteger) <= 0
}

// fractional reports whether a JSON number, short enough to tell, has a fraction.
func fractional(text string) bool {
	if len(text) > 40 || strings.ContainsAny(text, "eE") {
		return false
	}
	r, ok := new(big.Rat).SetString(text)
	return ok && !r.IsInt()
}

func safeInteger(text string) bool { return sameInteger(text, text) }

// integerOf reads a JSON number whose value is an integer.
func integerOf(text string) (*big.Int, bool) {
	// A number this long is none that agrees with a safe integer, and its exponent could
	// make the arithmetic huge.
	if len(text) > 40 || !decimal(text) {
		return nil, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 4 {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() {
		return nil, false
	}
	return r.Num(), true
}

// decimal reports whether text is a JSON number.
func decimal(text string) bool {
	b := []byte(text)
	return len(b) > 0 && strictjson.Kind(b) == '0' && strictjson.Check(b, 1) == nil && !bytes.ContainsAny(b, " \t\r\n")
}

// encodeMirrored is the header form of a text: plain where a header can hold it and it
// does not look encoded, Base64 otherwise (M-12).
func encodeMirrored(text string) string {
	plain, ok := decodeMirrored(text)
	if ok && plain == text && strings.Trim(text, " \t") == text && !strings.HasPrefix(text, encodedPrefix) {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// setMirrored sets the headers that a client owes for arguments.
func setMirrored(h http.Header, bindings []binding, arguments []byte) {
	for _, b := range bindings {
		value := b.value(arguments)
		if text, ok := strictjson.String(value); ok {
			h[b.header] = []string{encodeMirrored(text)}
		} else if k := strictjson.Kind(value); k == 't' || k == 'f' || k == '0' {
			h[b.header] = []string{string(value)}
		}
	}
}

// MirrorArguments sets on h the Mcp-Param-* headers that a client owes for these arguments
// of tool (M-19). It is for clients and tests.
func MirrorArguments(h http.Header, tool *thaw.Tool, arguments json.RawMessage) {
	setMirrored(h, bindingsOf(tool.Declared().Headers), arguments)
}
