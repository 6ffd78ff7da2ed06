package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Validator checks documents against one schema. It is safe for concurrent use.
type Validator interface {
	// Validate checks doc, one JSON value that passed strictjson.Check. It returns doc
	// itself, or, for schemas made by Of for input, a copy in which absent members that
	// have a default are filled in and whole numbers at integer fields are written
	// plainly (3.0 as 3, 1e2 as 100), so that it decodes. With violations out is nil;
	// they come all at once, up to a bound.
	Validate(doc []byte) (out []byte, violations []Violation)
}

// Violation is one rule that a document breaks.
type Violation struct {
	Path    string // JSON Pointer (RFC 6901) of the value; "" is the document
	Message string // the rule and what is allowed, for a model to correct itself by
}

// String is the violation on one line.
func (v Violation) String() string {
	if v.Path == "" {
		return v.Message
	}
	return v.Path + ": " + v.Message
}

// maxViolations bounds an answer: nobody corrects more than that at once.
const maxViolations = 20

// maxAttempts bounds what is looked at to find them: paths and messages are cut to a
// readable length, so a document can be wrong a million times in one same way.
const maxAttempts = 3 * maxViolations

// report collects violations without repeats, up to the bound.
type report struct {
	list     []Violation
	attempts int
	full     bool // no more are wanted
}

func (r *report) add(v Violation) {
	if r.full {
		return
	}
	r.attempts++
	if slices.Contains(r.list, v) && r.attempts < maxAttempts {
		return
	}
	if len(r.list) == maxViolations || r.attempts == maxAttempts {
		v, r.full = Violation{Message: "and more"}, true
	}
	r.list = append(r.list, v)
}

// clip shortens what came from outside, or is long, for a message.
func clip[S ~string | ~[]byte](s S) string { return clipTo(s, 64) }

func clipTo[S ~string | ~[]byte](s S, most int) string {
	if len(s) <= most {
		return string(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return string(s[:cut]) + "…"
}

// quoted is s, clipped, as a JSON string.
func quoted[S ~string | ~[]byte](s S) string {
	return string(strictjson.AppendString(nil, clip(s)))
}

// listed joins up to 20 items.
func listed[T any](items []T, text func(T) string) string {
	const most = 20
	var b strings.Builder
	for i, item := range items {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(items)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text(item))
	}
	return b.String()
}

// kindName names the JSON type of a value by its first byte.
func kindName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func wrongType(want string, first byte) string {
	return "must be " + want + ", not " + kindName(first)
}

func missingProperty(name string) string { return "missing property " + quoted(name) }

// unknownProperty names what is allowed, above all the property that was meant.
func unknownProperty(name []byte, allowed []string) string {
	message := "unknown property " + quoted(name)
	for _, a := range allowed {
		if strings.EqualFold(a, string(name)) {
			return message + "; did you mean " + quoted(a) + "? Names are case-sensitive"
		}
	}
	if len(allowed) == 0 {
		return message + "; none are allowed"
	}
	return message + "; allowed are " + listed(allowed, quoted[string])
}

// notAmong says what is allowed instead of value, in which strings may be secrets.
func notAmong(allowed string, value []byte) string {
	const most = 40
	message := "must be one of " + allowed
	if k := value[0]; len(value) <= most && k != '"' && k != '{' && k != '[' {
		message += ", not " + string(value)
	}
	return message
}

func tooFew(limit int, unit string, got int) string {
	return fmt.Sprintf("must have at least %s, has %d", plural(limit, unit), got)
}

func tooMany(limit int, unit string, got int) string {
	return fmt.Sprintf("must have at most %s, has %d", plural(limit, unit), got)
}

func equalItems(a, b int) string {
	return fmt.Sprintf("must not have equal items, but items %d and %d are", a, b)
}

func plural(n int, unit string) string {
	switch {
	case n == 1:
		return "1 " + unit
	case strings.HasSuffix(unit, "y"):
		return fmt.Sprintf("%d %sies", n, unit[:len(unit)-1])
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
