package schema

import (
	"cmp"
	"math/bits"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Validate walks the text once. A document that is accepted as it stands costs no
// allocation.
func (t *Type) Validate(doc []byte) ([]byte, []Violation) {
	v := validation{doc: doc, fill: !t.options.Output}
	v.value(t.root, strictjson.SkipSpace(doc, 0))
	if len(v.list) > 0 {
		return nil, v.list
	}
	return v.result(), nil
}

// validation is one walk over a document.
type validation struct {
	doc  []byte
	fill bool // write defaults and plain integers, for decoding
	report
	out    []byte // what differs from doc so far
	copied int    // doc[:copied] is in out

	patternCost int // so far
}

func (v *validation) fail(at int, message string) {
	v.add(Violation{pointerTo(v.doc, at), message})
}

// replace puts text in place of doc[from:to]; calls go from left to right.
func (v *validation) replace(from, to int, text []byte) {
	v.out = append(append(v.out, v.doc[v.copied:from]...), text...)
	v.copied = to
}

func (v *validation) result() []byte {
	if v.copied == 0 && v.out == nil {
		return v.doc
	}
	return append(v.out, v.doc[v.copied:]...)
}

// value checks the value that starts at doc[i] and returns the index after it.
func (v *validation) value(n *node, i int) int {
	if v.full {
		return len(v.doc)
	}
	first := v.doc[i]
	if first == 'n' && n.null {
		return i + len("null")
	}
	switch n.kind {
	case kindAny:
		return strictjson.ValueEnd(v.doc, i)
	case kindObject:
		if first == '{' {
			return v.object(n, i)
		}
	case kindMap:
		if first == '{' {
			return v.mapping(n, i)
		}
	case kindArray:
		if first == '[' {
			return v.array(n, i)
		}
	case kindString:
		if first == '"' {
			return v.string(n, i)
		}
	case kindInteger, kindNumber:
		if first == '-' || first-'0' <= 9 {
			end := scalarEnd(v.doc, i)
			if n.kind == kindInteger {
				v.integer(n, i, end)
			} else {
				v.number(n, i, end)
			}
			return end
		}
	case kindBool:
		if first == 't' || first == 'f' {
			return scalarEnd(v.doc, i)
		}
	case kindRef:
		return v.value(n.target, i)
	}
	v.fail(i, wrongType(n.wanted(), first))
	return strictjson.ValueEnd(v.doc, i)
}

// wanted names the type that a value has to be of.
func (n *node) wanted() string {
	want := "a boolean"
	switch n.kind {
	case kindObject, kindMap:
		want = "an object"
	case kindArray:
		want = "an array"
	case kindString:
		want = "a string"
	case kindInteger:
		want = "an integer"
	case kindNumber:
		want = "a number"
	}
	if n.null {
		want += " or null"
	}
	return want
}

func (v *validation) object(n *node, start int) int {
	doc := v.doc
	var room [4]uint64
	seen := room[:]
	if len(n.required) > len(room) {
		seen = make([]uint64, len(n.required))
	}
	next, members := 0, 0
	i := strictjson.SkipSpace(doc, start+1)
	for doc[i] != '}' {
		nameEnd, escaped := stringEnd(doc, i)
		name := unquote(doc[i:nameEnd], escaped)
		i = strictjson.SkipSpace(doc, strictjson.SkipSpace(doc, nameEnd)+1)
		members++
		// Most clients keep the order of the schema.
		f := next
		if f >= len(n.fields) || n.fields[f].name != string(name) {
			f = n.find(name)
		}
		if f < 0 {
			v.fail(start, unknownProperty(name, n.names()))
			i = strictjson.ValueEnd(doc, i)
		} else {
			seen[f/64] |= 1 << (f % 64)
			next = f + 1
			i = v.value(&n.fields[f].node, i)
		}
		if v.full {
			return len(doc)
		}
		if i = strictjson.SkipSpace(doc, i); doc[i] == ',' {
			i = strictjson.SkipSpace(doc, i+1)
		}
	}
	for w, required := range n.required {
		for missing := required &^ seen[w]; missing != 0; missing &= missing - 1 {
			v.fail(start, missingProperty(n.fields[w*64+bits.TrailingZeros64(missing)].name))
		}
	}
	if v.fill && n.defaults {
		v.fillDefaults(n, seen, i, members)
	}
	return i + 1
}

// fillDefaults writes the defaults of absent properties before the brace at doc[end].
func (v *validation) fillDefaults(n *node, seen []uint64, end, members int) {
	for f := range n.fields {
		d := &n.fields[f]
		if d.node.value == nil || seen[f/64]&(1<<(f%64)) != 0 {
			continue
		}
		v.replace(end, end, nil)
		if members > 0 {
			v.out = append(v.out, ',')
		}
		v.out = strictjson.AppendString(v.out, d.name)
		v.out = append(v.out, ':')
		v.out = append(v.out, d.node.value...)
		members++
	}
}

func (n *node) find(name []byte) int {
	for i := range n.fields {
		if n.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

func (n *node) names() []string {
	names := make([]string, len(n.fields))
	for i := range n.fields {
		names[i] = n.fields[i].name
	}
	return names
}

func (v *validation) mapping(n *node, start int) int {
	doc := v.doc
	i := strictjson.SkipSpace(doc, start+1)
	for doc[i] != '}' {
		nameStart := i
		nameEnd, escaped := stringEnd(doc, i)
		i = strictjson.SkipSpace(doc, strictjson.SkipSpace(doc, nameEnd)+1)
		if n.keys != nil {
			inner := doc[nameStart+1 : nameEnd-1]
			if message := v.checkString(n.keys, doc[nameStart:nameEnd], inner, escaped); message != "" {
				v.fail(start, "property name "+quoted(unquote(doc[nameStart:nameEnd], escaped))+" "+message)
			}
		}
		i = v.value(n.elem, i)
		if v.full {
			return len(doc)
		}
		if i = strictjson.SkipSpace(doc, i); doc[i] == ',' {
			i = strictjson.SkipSpace(doc, i+1)
		}
	}
	return i + 1
}

func (v *validation) array(n *node, start int) int {
	doc := v.doc
	items := 0
	i := strictjson.SkipSpace(doc, start+1)
	for doc[i] != ']' {
		items++
		i = v.value(n.elem, i)
		if v.full {
			return len(doc)
		}
		if i = strictjson.SkipSpace(doc, i); doc[i] == ',' {
			i = strictjson.SkipSpace(doc, i+1)
		}
	}
	least, most := -1, -1
	if n.fixed > 0 {
		least, most = n.fixed-1, n.fixed-1
	} else if n.rules != nil {
		least, most = n.rules.minItems, n.rules.maxItems
	}
	if items < least {
		v.fail(start, tooFew(least, "item", items))
	}
	if most >= 0 && items > most {
		v.fail(start, tooMany(most, "item", items))
	}
	return i + 1
}

func (v *validation) string(n *node, i int) int {
	end, escaped := stringEnd(v.doc, i)
	if n.form == formAny && n.rules == nil {
		return end
	}
	if message := v.checkString(n, v.doc[i:end], v.doc[i+1:end-1], escaped); message != "" {
		v.fail(i, message)
	}
	return end
}

// checkString returns what is wrong with a string at n, or "".
func (v *validation) checkString(n *node, whole, inner []byte, escaped bool) string {
	r := n.rules
	if r != nil && (r.minLength >= 0 || r.maxLength >= 0) {
		got := codePoints(inner, escaped)
		if got < r.minLength {
			return tooFew(r.minLength, "character", got)
		}
		if r.maxLength >= 0 && got > r.maxLength {
			return tooMany(r.maxLength, "character", got)
		}
	}
	if n.form == formAny && r.enum == nil && r.re == nil {
		return ""
	}
	text := unquote(whole, escaped)
	switch n.form {
	case formAny:
	case formInteger:
		if !isNumber(text) {
			return "must be an integer written as a string, such as \"12\""
		}
		value, form := parseInteger(text)
		if message := n.outside(value); message != "" || form == integerHuge {
			return cmp.Or(message, n.mustFit()) + " as a number"
		}
		if form != integerPlain {
			return "must be an integer written as a string, such as \"12\""
		}
	case formFloat:
		if !isNumber(text) || overflowsFloat(text, int(n.bits)) {
			return wrongForm(n.form)
		}
	default:
		if !n.form.accepts(text) {
			return wrongForm(n.form)
		}
	}
	if r == nil {
		return ""
	}
	if r.enum != nil {
		for _, c := range r.enum {
			if c.Value == string(text) {
				return ""
			}
		}
		return notAmong(n.choices(), whole)
	}
	if r.re != nil {
		return v.match(r.re, text)
	}
	return ""
}

func (v *validation) integer(n *node, i, end int) {
	text := v.doc[i:end]
	value, form := parseInteger(text)
	switch form {
	case integerFraction:
		v.fail(i, "must be an integer, without a fraction")
		return
	case integerHuge:
		// Whatever the type, its nearer limit is the one to name.
		value = integer{text[0] == '-', 1<<64 - 1}
		if message := n.outside(value); message != "" {
			v.fail(i, message)
		} else {
			v.fail(i, n.mustFit())
		}
		return
	}
	if message := n.outside(value); message != "" {
		v.fail(i, message)
		return
	}
	if n.rules != nil && n.rules.enum != nil && !n.rules.allowsInteger(value) {
		v.fail(i, notAmong(n.choices(), text))
		return
	}
	if form == integerRewrite && v.fill {
		v.replace(i, end, value.append(make([]byte, 0, 20)))
	}
}

// choices lists the enum.
func (n *node) choices() string {
	return listed(n.rules.enum, func(c Choice) string {
		if n.kind == kindString {
			return quoted(c.Value)
		}
		return c.Value
	})
}

func (r *rules) allowsInteger(value integer) bool {
	for _, c := range r.enum {
		if allowed, _ := parseIntegerTag(c.Value); allowed == value {
			return true
		}
	}
	return false
}

// outside says what is wrong with an integer beyond the node's limits, or "".
func (n *node) outside(value integer) string {
	switch {
	case value.cmp(n.lo) < 0:
		if !n.publishesLow() {
			return n.mustFit()
		}
		return "must be at least " + n.lo.String()
	case value.cmp(n.hi) > 0:
		if !n.publishesHigh() {
			return n.mustFit()
		}
		return "must be at most " + n.hi.String()
	}
	return ""
}

// publishesLow reports whether n.lo is in the schema: -2^63 says nothing to a reader.
func (n *node) publishesLow() bool {
	return n.bits < 64 || n.unsigned || n.lo != integer{true, 1 << 63}
}

// publishesHigh is publishesLow for n.hi, and 2^63-1 or 2^64-1.
func (n *node) publishesHigh() bool {
	_, hi := integerLimits(64, n.unsigned)
	return n.bits < 64 || n.hi != hi
}

func (n *node) mustFit() string {
	if n.unsigned {
		return "must fit in an unsigned 64-bit integer"
	}
	return "must fit in a 64-bit integer"
}

func (v *validation) number(n *node, i, end int) {
	text := v.doc[i:end]
	if n.bits > 0 && overflowsFloat(text, int(n.bits)) {
		if n.bits == 32 {
			v.fail(i, "must be within the range of a 32-bit float, about ±3.4e38")
		} else {
			v.fail(i, "must be within the range of a 64-bit float, about ±1.8e308")
		}
		return
	}
	r := n.rules
	if r == nil {
		return
	}
	value := parseDecimal(text)
	if r.minimum.text != "" && value.cmp(r.minimum.value) < 0 {
		v.fail(i, "must be at least "+r.minimum.text)
	}
	if r.maximum.text != "" && value.cmp(r.maximum.value) > 0 {
		v.fail(i, "must be at most "+r.maximum.text)
	}
	if r.enum != nil {
		for _, c := range r.enum {
			if parseDecimal([]byte(c.Value)).cmp(value) == 0 {
				return
			}
		}
		v.fail(i, notAmong(n.choices(), text))
	}
}
