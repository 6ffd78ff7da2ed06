package schema

import (
	"strconv"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// AppendJSON appends the schema as compact JSON. The text depends on the type alone:
// members come in a fixed order, properties in field order.
func (t *Type) AppendJSON(dst []byte) []byte {
	t.resolved()
	w := writer{dst: dst, root: t.root}
	w.open('{')
	w.body(t.root)
	if len(t.defs) > 0 {
		w.member("$defs")
		w.open('{')
		for _, d := range t.defs {
			w.member(d.defName)
			w.open('{')
			w.body(d)
			w.close('}')
		}
		w.close('}')
	}
	w.close('}')
	return w.dst
}

// Patterns of numbers written as strings.
const (
	patternInteger  = `^(0|-?[1-9][0-9]*)$`
	patternUnsigned = `^(0|[1-9][0-9]*)$`
	patternFloat    = `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`
)

type writer struct {
	dst   []byte
	root  *node
	first bool // nothing is written in the open bracket yet
}

func (w *writer) open(bracket byte) {
	w.dst = append(w.dst, bracket)
	w.first = true
}

func (w *writer) close(bracket byte) {
	w.dst = append(w.dst, bracket)
	w.first = false
}

func (w *writer) next() {
	if !w.first {
		w.dst = append(w.dst, ',')
	}
	w.first = false
}

func (w *writer) member(name string) {
	w.next()
	w.dst = append(strictjson.AppendString(w.dst, name), ':')
}

func (w *writer) text(name, value string) {
	w.member(name)
	w.dst = strictjson.AppendString(w.dst, value)
}

func (w *writer) raw(name, value string) {
	w.member(name)
	w.dst = append(w.dst, value...)
}

func (w *writer) count(name string, n int) {
	if n >= 0 {
		w.member(name)
		w.dst = strconv.AppendInt(w.dst, int64(n), 10)
	}
}

func (w *writer) schema(name string, n *node) {
	w.member(name)
	w.open('{')
	w.body(n)
	w.close('}')
}

// body writes the members of n's schema.
func (w *writer) body(n *node) {
	switch n.kind {
	case kindObject:
		w.types(n, "object")
		w.describe(n)
		w.object(n)
	case kindMap:
		w.types(n, "object")
		w.describe(n)
		if n.keys != nil {
			w.member("propertyNames")
			w.open('{')
			w.stringForm(n.keys)
			w.enum(n.keys)
			w.close('}')
		}
		w.schema("additionalProperties", n.elem)
	case kindArray:
		w.types(n, "array")
		w.describe(n)
		w.schema("items", n.elem)
		if n.fixed > 0 {
			w.count("minItems", n.fixed-1)
			w.count("maxItems", n.fixed-1)
		}
	case kindString:
		w.types(n, "string")
		w.describe(n)
		w.stringForm(n)
	case kindInteger:
		w.types(n, "integer")
		w.describe(n)
		if n.publishesLow() {
			w.raw("minimum", n.lo.String())
		}
		if n.publishesHigh() {
			w.raw("maximum", n.hi.String())
		}
	case kindNumber:
		w.types(n, "number")
		w.describe(n)
	case kindBool:
		w.types(n, "boolean")
		w.describe(n)
	case kindRef:
		w.reference(n)
		w.describe(n)
	default:
		w.describe(n)
	}
	w.rules(n)
	if n.value != nil {
		w.raw("default", string(n.value))
	}
	if n.header != "" {
		w.text(headerKeyword, n.header)
	}
}

func (w *writer) types(n *node, name string) {
	if n.null {
		w.raw("type", `["`+name+`","null"]`)
	} else {
		w.text("type", name)
	}
}

func (w *writer) describe(n *node) {
	switch {
	case n.description != "":
		w.text("description", n.description)
	case n.duration:
		w.text("description", "duration in nanoseconds")
	}
}

func (w *writer) object(n *node) {
	if len(n.fields) > 0 {
		w.member("properties")
		w.open('{')
		required := false
		for i := range n.fields {
			f := &n.fields[i]
			required = required || !f.optional
			w.schema(f.name, &f.node)
		}
		w.close('}')
		if required {
			w.member("required")
			w.open('[')
			for i := range n.fields {
				if f := &n.fields[i]; !f.optional {
					w.next()
					w.dst = strictjson.AppendString(w.dst, f.name)
				}
			}
			w.close(']')
		}
	}
	w.raw("additionalProperties", "false")
}

func (w *writer) reference(n *node) {
	ref := "#"
	if n.target != w.root {
		ref = "#/$defs/" + n.target.defName
	}
	if !n.null {
		w.text("$ref", ref)
		return
	}
	w.member("anyOf")
	w.open('[')
	w.next()
	w.open('{')
	w.text("$ref", ref)
	w.close('}')
	w.dst = append(w.dst, `,{"type":"null"}`...)
	w.close(']')
}

// stringForm writes what the form of a string implies.
func (w *writer) stringForm(n *node) {
	switch n.form {
	case formBase64:
		w.text("contentEncoding", "base64")
	case formInteger:
		if n.unsigned {
			w.text("pattern", patternUnsigned)
		} else {
			w.text("pattern", patternInteger)
		}
	case formFloat:
		w.text("pattern", patternFloat)
	case formBool:
		if n.null {
			w.raw("enum", `["true","false",null]`)
		} else {
			w.raw("enum", `["true","false"]`)
		}
	case formDateTime:
		if n.rules == nil {
			w.text("format", "date-time")
		}
	}
}

func (w *writer) rules(n *node) {
	r := n.rules
	if r == nil {
		return
	}
	if r.format != "" {
		w.text("format", r.format)
	}
	if r.pattern != "" {
		w.text("pattern", r.pattern)
	}
	w.count("minLength", r.minLength)
	w.count("maxLength", r.maxLength)
	w.count("minItems", r.minItems)
	w.count("maxItems", r.maxItems)
	if r.minimum.text != "" {
		w.raw("minimum", r.minimum.text)
	}
	if r.maximum.text != "" {
		w.raw("maximum", r.maximum.text)
	}
	w.enum(n)
}

func (w *writer) enum(n *node) {
	r := n.rules
	if r == nil || r.enum == nil {
		return
	}
	if !r.titled {
		w.member("enum")
		w.open('[')
		for _, c := range r.enum {
			w.next()
			if n.kind == kindString {
				w.dst = strictjson.AppendString(w.dst, c.Value)
			} else {
				w.dst = append(w.dst, c.Value...)
			}
		}
		if n.null {
			w.dst = append(w.dst, ",null"...)
		}
		w.close(']')
		return
	}
	w.member("oneOf")
	w.open('[')
	for _, c := range r.enum {
		w.next()
		w.open('{')
		w.text("const", c.Value)
		if c.Title != "" {
			w.text("title", c.Title)
		}
		w.close('}')
	}
	if n.null {
		w.dst = append(w.dst, `,{"type":"null"}`...)
	}
	w.close(']')
}
