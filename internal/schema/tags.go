package schema

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// tags are the struct tags that this package reads, as written.
type tags struct {
	has                                      tagSet
	json, description, enum, value           string
	minimum, maximum                         string
	minLength, maxLength, minItems, maxItems string
	pattern, format, header                  string
}

type tagSet uint16

const (
	hasJSON tagSet = 1 << iota
	hasDescription
	hasEnum
	hasDefault
	hasMinimum
	hasMaximum
	hasMinLength
	hasMaxLength
	hasMinItems
	hasMaxItems
	hasPattern
	hasFormat
	hasHeader

	forNumbers = hasMinimum | hasMaximum
	forStrings = hasMinLength | hasMaxLength | hasPattern | hasFormat
	forItems   = hasMinItems | hasMaxItems
)

// slot is where the value of a tag goes, or nil for a key of other packages.
func (t *tags) slot(key string) (*string, tagSet) {
	switch key {
	case "json":
		return &t.json, hasJSON
	case "jsonschema":
		return &t.description, hasDescription
	case "enum":
		return &t.enum, hasEnum
	case "default":
		return &t.value, hasDefault
	case "minimum":
		return &t.minimum, hasMinimum
	case "maximum":
		return &t.maximum, hasMaximum
	case "minLength":
		return &t.minLength, hasMinLength
	case "maxLength":
		return &t.maxLength, hasMaxLength
	case "minItems":
		return &t.minItems, hasMinItems
	case "maxItems":
		return &t.maxItems, hasMaxItems
	case "pattern":
		return &t.pattern, hasPattern
	case "format":
		return &t.format, hasFormat
	case "header":
		return &t.header, hasHeader
	}
	return nil, 0
}

var tagKeys = []string{"json", "jsonschema", "enum", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format", "header"}

// parseTags reads the whole tag, so that a key in the wrong case and text that Go's
// convention would silently drop are noticed.
func (w *walk) parseTags(tag reflect.StructTag) (t tags) {
	rest := strings.TrimLeft(string(tag), " ")
	for rest != "" {
		colon := 0
		for colon < len(rest) && rest[colon] > ' ' && rest[colon] != ':' && rest[colon] != '"' {
			colon++
		}
		if colon == 0 || colon+1 >= len(rest) || rest[colon] != ':' || rest[colon+1] != '"' {
			w.fail("malformed struct tag at %s; it is made of key:\"value\" pairs", clip(rest))
			return t
		}
		key := rest[:colon]
		end, escaped := colon+2, false
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				escaped = true
				end++
			}
			end++
		}
		if end >= len(rest) {
			w.fail("malformed struct tag: the value of %s has no closing quote", clip(key))
			return t
		}
		slot, bit := t.slot(key)
		if slot == nil {
			for _, known := range tagKeys {
				if strings.EqualFold(known, key) {
					w.fail("unknown tag %s; did you mean %s?", key, known)
				}
			}
		} else {
			value := rest[colon+2 : end]
			if escaped {
				var err error
				if value, err = strconv.Unquote(rest[colon+1 : end+1]); err != nil {
					w.fail("malformed struct tag: the value of %s is not a Go string", key)
					return t
				}
			}
			if t.has&bit != 0 {
				w.fail("tag %s is there twice", key)
			}
			*slot = value
			t.has |= bit
		}
		rest = strings.TrimLeft(rest[end+1:], " ")
	}
	return t
}

// rules are the constraints that a node has from its tags or its type's choices.
type rules struct {
	enum                 []Choice
	titled               bool
	minimum, maximum     limit
	minLength, maxLength int // -1: none
	minItems, maxItems   int
	pattern              string
	re                   *pattern // made by prepare
	format               string
}

// limit is a bound of a number, as written; "" is none.
type limit struct {
	text  string
	value decimal // made by prepare
}

func (w *walk) newRules() *rules {
	r := &w.rulesSlab.take(1)[0]
	*r = rules{minLength: -1, maxLength: -1, minItems: -1, maxItems: -1}
	return r
}

func (w *walk) rulesOf(n *node) *rules {
	if n.rules == nil {
		n.rules = w.newRules()
	}
	return n.rules
}

// apply puts the tags of a field onto its node, reporting those that do not fit.
func (w *walk) apply(t *tags, n *node) {
	if t.has&^hasJSON == 0 {
		return
	}
	if t.has&hasDescription != 0 {
		w.describe(t.description, n)
	}
	if t.has&hasHeader != 0 && !w.Output {
		w.header(t.header, n)
	}
	if t.has&forItems != 0 {
		if n.kind != kindArray || n.fixed > 0 {
			w.fail("tags minItems and maxItems are for slices, not for %s", n.describeKind())
		} else {
			r := w.rulesOf(n)
			w.counts("minItems", t.minItems, &r.minItems, "maxItems", t.maxItems, &r.maxItems)
		}
	}
	inner := n
	for inner.kind == kindArray {
		inner = inner.elem
	}
	if t.has&forNumbers != 0 {
		w.bounds(t, inner)
	}
	if t.has&forStrings != 0 {
		w.stringRules(t, inner)
	}
	if t.has&hasEnum != 0 {
		w.enum(t.enum, inner)
	}
	if t.has&hasDefault != 0 {
		path := w.pathSlab.take(len(w.path))
		copy(path, w.path)
		w.defaults = append(w.defaults, defaultUse{path, t.value, n})
	}
}

func (w *walk) describe(text string, n *node) {
	// Other libraries put constraints into this tag; as a description they would be
	// silently without effect.
	if key, _, ok := strings.Cut(text, "="); ok && key != "" && !strings.ContainsAny(key, " \t\n") {
		w.fail("tag jsonschema is the description and cannot begin with %q; constraints have tags of their own: %s", clip(key)+"=", strings.Join(tagKeys[2:], ", "))
		return
	}
	n.description = text
}

// describeKind names what a field is, for a message about a tag that does not fit.
func (n *node) describeKind() string {
	switch n.kind {
	case kindObject:
		return "an object"
	case kindMap:
		return "a map"
	case kindArray:
		if n.fixed > 0 {
			return "an array of fixed length"
		}
		return "a slice"
	case kindString:
		switch {
		case n.form == formBase64:
			return "bytes"
		case n.form == formDateTime:
			return "a time"
		case n.form != formAny:
			return "a number or boolean written as a string"
		case n.rules != nil && n.rules.enum != nil:
			return "a type with choices"
		}
		return "a string"
	case kindInteger:
		return "an integer"
	case kindNumber:
		return "a number"
	case kindBool:
		return "a boolean"
	case kindRef:
		return "a recursive type"
	}
	return "a value of any type"
}

// counts sets a pair of limits on a length.
func (w *walk) counts(minTag, minText string, least *int, maxTag, maxText string, most *int) {
	set := func(tag, text string, to *int) {
		if text == "" {
			return
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			w.fail("tag %s: %q is not a whole number from 0 to %d", tag, clip(text), 1<<31-1)
			return
		}
		*to = int(n)
	}
	set(minTag, minText, least)
	set(maxTag, maxText, most)
	if *most >= 0 && *least > *most {
		w.fail("%s %d is more than %s %d", minTag, *least, maxTag, *most)
	}
}

// bounds sets minimum and maximum.
func (w *walk) bounds(t *tags, n *node) {
	switch n.kind {
	case kindInteger:
		set := func(tag, text string, to *integer) {
			if text == "" {
				return
			}
			v, ok := parseIntegerTag(text)
			switch {
			case !ok:
				w.fail("tag %s: %q is not an integer", tag, clip(text))
			case v.cmp(n.lo) < 0 || v.cmp(n.hi) > 0:
				w.fail("tag %s: %v is outside %v to %v, the range of the field", tag, v, n.lo, n.hi)
			default:
				*to = v
			}
		}
		lo, hi := n.lo, n.hi
		set("minimum", t.minimum, &lo)
		set("maximum", t.maximum, &hi)
		if n.lo, n.hi = lo, hi; lo.cmp(hi) > 0 {
			w.fail("minimum %v is more than maximum %v", lo, hi)
		}
	case kindNumber:
		r := w.rulesOf(n)
		set := func(tag, text string, to *limit) {
			if text != "" && !isNumber([]byte(text)) {
				w.fail("tag %s: %q is not a number", tag, clip(text))
				return
			}
			to.text = text
		}
		set("minimum", t.minimum, &r.minimum)
		set("maximum", t.maximum, &r.maximum)
		if r.minimum.text != "" && r.maximum.text != "" && parseDecimal([]byte(r.minimum.text)).cmp(parseDecimal([]byte(r.maximum.text))) > 0 {
			w.fail("minimum %s is more than maximum %s", r.minimum.text, r.maximum.text)
		}
	default:
		w.fail("tags minimum and maximum are for integers and numbers, not for %s", n.describeKind())
	}
}

// parseIntegerTag reads plain decimal digits with an optional minus.
func parseIntegerTag(text string) (integer, bool) {
	b := []byte(text)
	if !isNumber(b) {
		return integer{}, false
	}
	v, form := parseInteger(b)
	return v, form == integerPlain
}

func (w *walk) stringRules(t *tags, n *node) {
	if n.kind != kindString || n.form != formAny || n.rules != nil && n.rules.enum != nil {
		w.fail("tags minLength, maxLength, pattern and format are for strings, not for %s", n.describeKind())
		return
	}
	r := w.rulesOf(n)
	w.counts("minLength", t.minLength, &r.minLength, "maxLength", t.maxLength, &r.maxLength)
	if t.has&hasPattern != 0 {
		if _, err := syntax.Parse(t.pattern, syntax.Perl); err != nil {
			w.fail("tag pattern: not a regular expression in RE2 syntax: %v", err)
			return
		}
		r.pattern = t.pattern
	}
	if t.has&hasFormat != 0 {
		form, ok := formatNamed(t.format)
		if !ok {
			w.fail("tag format: %q is unknown; allowed are %s", clip(t.format), formatNames())
			return
		}
		r.format, n.form = t.format, form
	}
}

func (w *walk) enum(text string, n *node) {
	if n.kind != kindInteger && n.kind != kindNumber && (n.kind != kindString || n.form != formAny || n.rules != nil && n.rules.enum != nil) {
		w.fail("tag enum is for strings, integers and numbers, not for %s", n.describeKind())
		return
	}
	r := w.rulesOf(n)
	r.enum = w.choiceSlab.take(1 + strings.Count(text, ","))[:0]
	for value := range strings.SplitSeq(text, ",") {
		value = strings.TrimSpace(value)
		if value == "" {
			w.fail("tag enum: %q has an empty value; it is a list such as \"a,b\"", clip(text))
			return
		}
		if slices.ContainsFunc(r.enum, func(c Choice) bool { return c.Value == value }) {
			w.fail("tag enum: %q is there twice", clip(value))
		}
		if n.kind == kindInteger {
			if v, ok := parseIntegerTag(value); !ok || v.cmp(n.lo) < 0 || v.cmp(n.hi) > 0 {
				w.fail("tag enum: %q is not an integer from %v to %v", clip(value), n.lo, n.hi)
			}
		} else if n.kind == kindNumber && (!isNumber([]byte(value)) || n.bits > 0 && overflowsFloat([]byte(value), int(n.bits))) {
			w.fail("tag enum: %q is not a number", clip(value))
		}
		r.enum = append(r.enum, Choice{Value: value})
	}
}

// defaultUse is a default to judge when its type is known in full.
type defaultUse struct {
	path []string
	text string
	node *node
}

// checkDefaults sets the defaults that obey their own rules.
func (w *walk) checkDefaults() {
	for _, r := range w.recursive {
		r.node.prepare()
	}
	// Objects in a default get the defaults of their own properties, so these come first.
	holdsObject := func(d defaultUse) bool { return d.node.kind != kindString && strings.Contains(d.text, "{") }
	slices.SortStableFunc(w.defaults, func(a, b defaultUse) int {
		switch at, bt := holdsObject(a), holdsObject(b); {
		case at == bt:
			return 0
		case bt:
			return -1
		}
		return 1
	})
	for _, d := range w.defaults {
		w.path = append(w.path[:0], d.path...)
		w.buffer = append(w.buffer[:0], d.text...)
		var err error
		if d.node.kind == kindString {
			w.buffer = strictjson.AppendString(w.buffer[:0], d.text)
		} else if !isNumber(w.buffer) { // a number needs no parser to be JSON
			err = strictjson.Check(w.buffer, 32)
		}
		if err != nil {
			w.fail("tag default: %s is needed, as JSON, and %q is none: %v", d.node.describeKind(), clip(d.text), err)
			continue
		}
		trimmed := strictjson.Trim(w.buffer)
		value := w.valueSlab.take(len(trimmed))
		copy(value, trimmed)
		d.node.prepare()
		v := validation{doc: value, fill: !w.Output}
		v.value(d.node, 0)
		if len(v.list) > 0 {
			w.fail("tag default: %q breaks the field's own rules: %v", clip(d.text), v.list[0])
			continue
		}
		d.node.value = v.result()
	}
	w.path = w.path[:0]
}

// prepare makes what only validation needs: for n and all below it.
func (n *node) prepare() {
	if r := n.rules; r != nil {
		if r.pattern != "" && r.re == nil {
			// Parsed before; a program that is too large would have been refused there.
			re, err := compilePattern(r.pattern)
			if err != nil {
				panic(err)
			}
			r.re = re
		}
		for _, l := range []*limit{&r.minimum, &r.maximum} {
			if l.text != "" {
				l.value = parseDecimal([]byte(l.text))
			}
		}
	}
	if n.fields != nil && n.required == nil {
		n.required = make([]uint64, (len(n.fields)+63)/64)
		for i := range n.fields {
			if !n.fields[i].optional {
				n.required[i/64] |= 1 << (i % 64)
			}
		}
	}
	for i := range n.fields {
		n.fields[i].node.prepare()
	}
	if n.elem != nil {
		n.elem.prepare()
	}
	if n.keys != nil {
		n.keys.prepare()
	}
}

// header notes the header tag; whether its place allows one shows when the walk is over.
func (w *walk) header(name string, n *node) {
	if err := checkHeaderName(name); err != nil {
		w.fail("tag header: %v", err)
		return
	}
	if n.null || n.kind != kindString && n.kind != kindInteger && n.kind != kindBool {
		what := n.describeKind()
		if n.null {
			what = "a pointer"
		}
		w.fail("tag header is for strings, integers and booleans, not for %s (M-16)", what)
		return
	}
	if n.kind == kindInteger {
		if lo := (integer{true, safeInteger}); n.lo.cmp(lo) < 0 {
			n.lo = lo
		}
		if hi := (integer{false, safeInteger}); n.hi.cmp(hi) > 0 {
			n.hi = hi
		}
	}
	n.header = name
	w.headers = append(w.headers, headerUse{fmt.Sprintf("%v.%s", w.rootType, strings.Join(w.path, ".")), n})
}
