package schema

import "fmt"

// written is the validator of a hand-written schema.
type written struct {
	root    *schema
	dynamic bool // there is a $dynamicRef
}

// A step is one schema looking at one value of a usual size; larger values take more.
// A document may cost stepsForAny, and more for each value and byte in it. Only
// alternatives nested in each other come near.
const (
	stepsForAny   = 200_000
	stepsForValue = 32
	stepsForByte  = 1

	// maxNesting bounds the stack where a $dynamicRef goes round in circles.
	maxNesting = 4_000
)

// Validate returns doc itself if it is valid: hand-written schemas change nothing.
func (w *written) Validate(doc []byte) ([]byte, []Violation) {
	if len(doc) > maxDocument {
		return nil, []Violation{{Message: "must be shorter than 2 GiB"}}
	}
	e := evaluation{tape: newTape(doc), dynamic: w.dynamic, trail: make([]crumb, 0, 16)}
	if e.overfull {
		return nil, []Violation{{Message: fmt.Sprintf("must hold at most %d values in all", maxValues)}}
	}
	allowed := stepsForAny + stepsForValue*len(e.items) + stepsForByte*len(doc)
	e.steps = allowed
	// Why a document is wrong is worked out only of one that is: most are right, and
	// what an alternative that does not match has to say is not wanted then.
	valid := e.check(w.root, 0, nil, nil, nil)
	if valid && e.steps > 0 {
		return doc, nil
	}
	var why findings
	if e.steps > 0 {
		e.steps = allowed
		e.check(w.root, 0, nil, nil, &why)
	}
	if len(why.list) == 0 { // the steps ran out
		return nil, []Violation{{Message: "checking this takes more work than is allowed; make it smaller or less deeply nested"}}
	}
	return nil, why.list
}

// evaluation is one document being checked.
type evaluation struct {
	tape
	dynamic bool
	steps   int // left
	nesting int
	trail   []crumb // from the root to the value looked at
}

// crumb is a member or element, and which one it is.
type crumb struct{ item, ordinal int }

// scope is a resource on the way to where the evaluation stands.
type scope struct {
	res    *resource
	parent *scope
}

// seen marks the members or elements of one value that some schema has judged, for
// the unevaluated keywords.
type seen []bool

// findings are what one schema has against a value.
type findings struct {
	report
	level int  // how deep in the document the value is
	other bool // it cannot have been meant for this schema
}

// mismatch notes that the value at level is of another type than the schema is for, or
// has another value at the property that tells alternatives apart.
func (r *findings) mismatch(level int) {
	if r != nil && level <= r.level {
		r.other = true
	}
}

// fail adds what is wrong with the value looked at to r, if that is wanted.
func (e *evaluation) fail(r *findings, message func() string) bool {
	if r != nil && !r.full && e.steps > 0 {
		r.add(Violation{e.pointer(), message()})
	}
	return false
}

// decided reports whether going on could change neither the verdict nor what is said.
func (e *evaluation) decided(valid bool, r *findings) bool {
	return e.steps <= 0 || !valid && (r == nil || r.full)
}

func (e *evaluation) pointer() string {
	var path []byte
	for _, c := range e.trail {
		path = append(path, '/')
		if v := &e.items[c.item]; v.nameEnd > 0 {
			path = appendPointerToken(path, clip(e.name(c.item)))
		} else {
			path = fmt.Append(path, c.ordinal)
		}
	}
	return string(path)
}

// spend takes the steps of looking through n bytes.
func (e *evaluation) spend(n int) { e.steps -= (n + 63) / 64 }

func (e *evaluation) length(i int) int { return int(e.items[i].end - e.items[i].start) }

// check judges value i by s. It marks in ev, unless nil, what it judged; it adds what
// is wrong to r, unless nil. After a verdict of false ev and, without r, the rest of
// the rules are left alone.
func (e *evaluation) check(s *schema, i int, sc *scope, ev seen, r *findings) bool {
	if e.steps -= 1 + int(e.items[i].size)/8; e.nesting > maxNesting {
		e.steps = 0
	}
	if e.steps <= 0 {
		return false
	}
	e.nesting++
	valid := e.judge(s, i, sc, ev, r)
	e.nesting--
	return valid
}

// below checks a member or element, the n-th of the value looked at.
func (e *evaluation) below(s *schema, i, n int, sc *scope, r *findings) bool {
	e.trail = append(e.trail, crumb{i, n})
	valid := e.check(s, i, sc, nil, r)
	e.trail = e.trail[:len(e.trail)-1]
	return valid
}

func (e *evaluation) judge(s *schema, i int, sc *scope, ev seen, r *findings) bool {
	if s.never {
		return e.fail(r, func() string { return "is not allowed" })
	}
	if e.dynamic && (sc == nil || sc.res != s.res) {
		sc = &scope{s.res, sc}
	}
	kind := e.items[i].kind
	if s.types != 0 && !e.isOneOf(s.types, i) {
		r.mismatch(len(e.trail))
		return e.fail(r, func() string {
			if kind == '0' && s.types&typeInteger != 0 {
				return "must be " + s.types.wanted() + ", without a fraction"
			}
			return wrongType(s.types.wanted(), kind)
		})
	}
	if s.enum != nil && !e.among(s.enum, i) {
		if len(s.enum.values) == 1 {
			r.mismatch(len(e.trail) - 1)
		}
		return e.fail(r, func() string { return notAmong(s.enum.text, e.raw(i)) })
	}
	var own seen
	if ev != nil || s.unevaluatedProps != nil || s.unevaluatedItems != nil {
		own = make(seen, e.items[i].size)
	}
	valid := true
	switch kind {
	case '{':
		valid = e.object(s, i, sc, own, r)
	case '[':
		valid = e.array(s, i, sc, own, r)
	case '"':
		valid = e.string(s, i, r)
	case '0':
		valid = e.number(s, i, r)
	}
	if s.inPlace && !e.decided(valid, r) {
		valid = e.inPlace(s, i, sc, own, r) && valid
	}
	if own != nil && !e.decided(valid, r) {
		valid = e.unevaluated(s, i, sc, own, r) && valid
	}
	if valid && ev != nil {
		for m, judged := range own {
			ev[m] = ev[m] || judged
		}
	}
	return valid
}

func (e *evaluation) isOneOf(types typeSet, i int) bool {
	switch e.items[i].kind {
	case '{':
		return types&typeObject != 0
	case '[':
		return types&typeArray != 0
	case '"':
		return types&typeString != 0
	case 't', 'f':
		return types&typeBoolean != 0
	case 'n':
		return types&typeNull != 0
	}
	if types&typeNumber != 0 || types&typeInteger == 0 {
		return types&typeNumber != 0
	}
	e.spend(e.length(i))
	return parseDecimal(e.raw(i)).isWhole()
}

func (e *evaluation) object(s *schema, i int, sc *scope, own seen, r *findings) bool {
	valid := e.sizes(i, s.minProperties, s.maxProperties, "property", r)
	var room [32]bool
	have := room[:0]
	if len(s.required) <= len(room) {
		have = room[:len(s.required)]
	} else {
		have = make([]bool, len(s.required))
	}
	n := -1
	for m := range e.children(i) {
		n++
		name := e.name(m)
		e.spend(len(name))
		if at, ok := s.requiredAt[string(name)]; ok {
			have[at] = true
		}
		judged := false
		if sub, ok := s.properties[string(name)]; ok {
			judged = true
			valid = e.below(sub, m, n, sc, r) && valid
		}
		for _, p := range s.patterns {
			if e.match(p.pattern, name) {
				judged = true
				valid = e.below(p.schema, m, n, sc, r) && valid
			}
		}
		if !judged && s.additional != nil {
			judged = true
			if s.additional.never {
				valid = e.fail(r, func() string { e.spend(64 * len(s.properties)); return s.unknown(name) })
			} else {
				valid = e.below(s.additional, m, n, sc, r) && valid
			}
		}
		if own != nil && judged {
			own[n] = true
		}
		if s.names != nil {
			valid = e.propertyName(s.names, m, sc, r) && valid
		}
		if e.decided(valid, r) {
			return false
		}
	}
	for at, ok := range have {
		if !ok {
			valid = e.fail(r, func() string { return missingProperty(s.required[at]) })
		}
	}
	if len(s.dependents) > 0 {
		valid = e.dependents(s, i, sc, own, r) && valid
	}
	return valid
}

// unknown says which names s allows.
func (s *schema) unknown(name []byte) string {
	if len(s.patterns) == 0 {
		return unknownProperty(name, s.propertyNames)
	}
	matching := "those that match " + listed(s.patterns, func(p patternSchema) string { return clip(p.pattern.String()) })
	if len(s.propertyNames) > 0 {
		matching = listed(s.propertyNames, quoted[string]) + ", and " + matching
	}
	return "unknown property " + quoted(name) + "; allowed are " + matching
}

// propertyName checks the name of member m by s.
func (e *evaluation) propertyName(s *schema, m int, sc *scope, r *findings) bool {
	v := &e.items[m]
	name := evaluation{tape: e.tape, dynamic: e.dynamic, steps: e.steps, nesting: e.nesting}
	name.items = []item{{start: v.nameStart, end: v.nameEnd, next: 1, kind: '"', plain: v.namePlain}}
	var why *findings
	if r != nil && !r.full {
		why = &findings{}
	}
	valid := name.check(s, 0, sc, nil, why)
	e.steps = name.steps
	if !valid {
		e.fail(r, func() string {
			message := "is not allowed"
			if len(why.list) > 0 {
				message = why.list[0].Message
			}
			return "property name " + quoted(e.name(m)) + " " + message
		})
	}
	return valid
}

func (e *evaluation) dependents(s *schema, i int, sc *scope, own seen, r *findings) bool {
	valid := true
	has := func(name string) bool {
		e.steps -= int(e.items[i].size) / 8
		return e.member(i, name) >= 0
	}
	for _, d := range s.dependents {
		if !has(d.property) {
			continue
		}
		for _, name := range d.required {
			if !has(name) {
				valid = e.fail(r, func() string { return "with property " + quoted(d.property) + " there must be " + quoted(name) })
			}
		}
		if d.schema != nil {
			valid = e.check(d.schema, i, sc, own, r) && valid
		}
		if e.decided(valid, r) {
			return false
		}
	}
	return valid
}

func (e *evaluation) array(s *schema, i int, sc *scope, own seen, r *findings) bool {
	valid := e.sizes(i, s.minItems, s.maxItems, "item", r)
	n, matches := -1, 0
	for m := range e.children(i) {
		n++
		judged := true
		switch {
		case n < len(s.prefix):
			valid = e.below(s.prefix[n], m, n, sc, r) && valid
		case s.items != nil && s.items.never:
			valid = e.fail(r, func() string { return tooMany(len(s.prefix), "item", int(e.items[i].size)) })
		case s.items != nil:
			valid = e.below(s.items, m, n, sc, r) && valid
		default:
			judged = false
		}
		if s.contains != nil && e.below(s.contains, m, n, sc, nil) {
			matches++
			judged = true
		}
		if own != nil && judged {
			own[n] = true
		}
		if e.decided(valid, r) {
			return false
		}
	}
	if s.contains != nil {
		valid = e.counted(s, matches, r) && valid
	}
	if s.uniqueItems && !e.decided(valid, r) {
		valid = e.unique(i, r) && valid
	}
	return valid
}

// counted checks how many items matched contains.
func (e *evaluation) counted(s *schema, matches int, r *findings) bool {
	least := s.minContains
	if least < 0 {
		least = 1
	}
	say := func(how string, limit int) bool {
		return e.fail(r, func() string {
			return fmt.Sprintf("must have at %s %s of the kind that contains describes, has %d", how, plural(limit, "item"), matches)
		})
	}
	switch {
	case matches < least:
		return say("least", least)
	case s.maxContains >= 0 && matches > s.maxContains:
		return say("most", s.maxContains)
	}
	return true
}

func (e *evaluation) sizes(i, least, most int, unit string, r *findings) bool {
	switch size := int(e.items[i].size); {
	case size < least:
		return e.fail(r, func() string { return tooFew(least, unit, size) })
	case most >= 0 && size > most:
		return e.fail(r, func() string { return tooMany(most, unit, size) })
	}
	return true
}

func (e *evaluation) string(s *schema, i int, r *findings) bool {
	if s.minLength >= 0 || s.maxLength >= 0 {
		e.spend(e.length(i))
		switch got := codePoints(e.text(i), false); {
		case got < s.minLength:
			return e.fail(r, func() string { return tooFew(s.minLength, "character", got) })
		case s.maxLength >= 0 && got > s.maxLength:
			return e.fail(r, func() string { return tooMany(s.maxLength, "character", got) })
		}
	}
	if s.pattern != nil && !e.match(s.pattern, e.text(i)) {
		return e.fail(r, func() string { return "must match the pattern " + clip(s.pattern.String()) })
	}
	return true
}

func (e *evaluation) number(s *schema, i int, r *findings) bool {
	if s.limits == nil && s.multipleOf == nil {
		return true
	}
	e.spend(e.length(i))
	valid, value := true, parseDecimal(e.raw(i))
	for _, b := range s.limits {
		e.spend(e.length(i))
		if c := value.cmp(b.value); c == b.wrong || c == 0 && b.strict {
			valid = e.fail(r, func() string { return b.message() })
		}
	}
	if s.multipleOf != nil && !s.multipleOf.divides(value) {
		valid = e.fail(r, func() string { return "must be a multiple of " + s.multipleText })
	}
	return valid
}
