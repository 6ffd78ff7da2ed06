package schema

import (
	"slices"
	"strings"
)

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeObject
	typeArray
	typeNumber
	typeString
	typeInteger
)

var typeNames = []struct {
	set        typeSet
	name, want string
}{
	{typeNull, "null", "null"},
	{typeBoolean, "boolean", "a boolean"},
	{typeObject, "object", "an object"},
	{typeArray, "array", "an array"},
	{typeNumber, "number", "a number"},
	{typeString, "string", "a string"},
	{typeInteger, "integer", "an integer"},
}

func (s typeSet) wanted() string {
	want := ""
	for _, t := range typeNames {
		if s&t.set != 0 {
			if want != "" {
				want += " or "
			}
			want += t.want
		}
	}
	return want
}

// at returns the schema of scanned item i, which compile fills in its turn: going on
// from here would recurse along references, of which there may be many.
func (c *compiler) at(i int) *schema {
	if s, done := c.schemas[i]; done {
		return s
	}
	s := &schema{
		res:       c.owner[i],
		minLength: -1, maxLength: -1, minItems: -1, maxItems: -1,
		minProperties: -1, maxProperties: -1, minContains: -1, maxContains: -1,
	}
	c.schemas[i] = s
	if name, ok := c.dynamicAnchors[i]; ok {
		if s.res.dynamic == nil {
			s.res.dynamic = map[string]*schema{}
		}
		s.res.dynamic[name] = s
	}
	return s
}

// compile fills the schema of scanned item i.
func (c *compiler) compile(i int) {
	s := c.at(i)
	switch c.items[i].kind {
	case 't':
		return
	case '{':
	default:
		s.never = true
		return
	}
	if c.dialect == dialect07 {
		if ref := c.member(i, "$ref"); ref >= 0 {
			s.ref = c.resolve(ref, s.res) // what stands beside it does not count
			s.inPlace = true
			return
		}
	}
	for m := range c.children(i) {
		name := string(c.name(m))
		if !c.validation(s, name, m) && !c.applicator(s, name, m) {
			c.annotation(name, m)
		}
	}
	if c.dialect == dialect07 {
		c.legacyItems(s, i)
	}
	if s.cond == nil {
		s.then, s.els = nil, nil
	}
	s.inPlace = s.ref != nil || s.dynamicRef != nil || s.allOf != nil || s.anyOf != nil || s.oneOf != nil || s.not != nil || s.cond != nil
}

// validation handles keywords that judge a value by themselves.
func (c *compiler) validation(s *schema, name string, m int) bool {
	switch name {
	case "type":
		s.types = c.types(m)
	case "enum":
		c.array(m)
		c.allow(s, m, true)
	case "const":
		c.allow(s, m, false)
	case "multipleOf":
		d, ok := divisor{}, false
		if c.items[m].kind == '0' {
			d, ok = newDivisor(parseDecimal(c.raw(m)))
		}
		if !ok {
			c.fail(m, "multipleOf is a number above 0 of at most %d digits", maxDivisorDigits)
		}
		s.multipleOf, s.multipleText = &d, string(c.raw(m))
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if c.items[m].kind != '0' {
			c.fail(m, "%s is a number", name)
			break
		}
		wrong := -1
		if name == "maximum" || name == "exclusiveMaximum" {
			wrong = 1
		}
		s.limits = append(s.limits, bound{
			text: string(c.raw(m)), value: parseDecimal(c.raw(m)),
			wrong: wrong, strict: name[0] == 'e',
		})
	case "minLength":
		s.minLength = c.count(m)
	case "maxLength":
		s.maxLength = c.count(m)
	case "minItems":
		s.minItems = c.count(m)
	case "maxItems":
		s.maxItems = c.count(m)
	case "minProperties":
		s.minProperties = c.count(m)
	case "maxProperties":
		s.maxProperties = c.count(m)
	case "uniqueItems":
		s.uniqueItems = c.boolean(m)
	case "pattern":
		if c.items[m].kind != '"' {
			c.fail(m, "pattern is a string")
			break
		}
		s.pattern = c.regexp(m, c.str(m))
	case "required":
		s.required = c.names(m)
		s.requiredAt = map[string]int{}
		for i, r := range s.required {
			s.requiredAt[r] = i
		}
	case "minContains", "maxContains", "dependentRequired":
		if c.dialect == dialect07 {
			return false
		}
		switch name {
		case "minContains":
			s.minContains = c.count(m)
		case "maxContains":
			s.maxContains = c.count(m)
		default:
			if c.object(m) {
				for d := range c.children(m) {
					s.dependents = append(s.dependents, dependent{property: string(c.name(d)), required: c.names(d)})
				}
			}
		}
	default:
		return false
	}
	return true
}

// applicator handles keywords that hold schemas. What scan did not take for a schema
// was reported there.
func (c *compiler) applicator(s *schema, name string, m int) bool {
	one := func() *schema {
		if _, ok := c.owner[m]; !ok {
			return nil
		}
		return c.at(m)
	}
	switch name {
	case "properties":
		s.properties = map[string]*schema{}
		c.eachSchema(m, func(property string, _ int, sub *schema) {
			s.properties[property] = sub
			s.propertyNames = append(s.propertyNames, property)
		})
	case "patternProperties":
		c.eachSchema(m, func(pattern string, at int, sub *schema) {
			if re := c.regexp(at, []byte(pattern)); re != nil {
				s.patterns = append(s.patterns, patternSchema{re, sub})
			}
		})
	case "additionalProperties":
		s.additional = one()
	case "propertyNames":
		s.names = one()
	case "contains":
		s.contains = one()
	case "not":
		s.not = one()
	case "if":
		s.cond = one()
	case "then":
		s.then = one()
	case "else":
		s.els = one()
	case "allOf":
		s.allOf = c.list(m)
	case "anyOf":
		s.anyOf = c.list(m)
	case "oneOf":
		s.oneOf = c.list(m)
	case "$ref":
		s.ref = c.resolve(m, s.res)
	default:
		return c.dialectApplicator(s, name, m, one)
	}
	return true
}

func (c *compiler) dialectApplicator(s *schema, name string, m int, one func() *schema) bool {
	if c.dialect == dialect07 {
		if name != "dependencies" {
			return name == "items" || name == "additionalItems" // see legacyItems
		}
		if c.object(m) {
			for d := range c.children(m) {
				dep := dependent{property: string(c.name(d))}
				if c.items[d].kind == '[' {
					dep.required = c.names(d)
				} else if _, ok := c.owner[d]; ok {
					dep.schema = c.at(d)
				}
				s.dependents = append(s.dependents, dep)
			}
		}
		return true
	}
	switch name {
	case "prefixItems":
		s.prefix = c.list(m)
	case "items":
		s.items = one()
	case "unevaluatedItems":
		s.unevaluatedItems = one()
	case "unevaluatedProperties":
		s.unevaluatedProps = one()
	case "dependentSchemas":
		c.eachSchema(m, func(property string, _ int, sub *schema) {
			s.dependents = append(s.dependents, dependent{property: property, schema: sub})
		})
	case "$dynamicRef":
		s.dynamicRef = c.resolve(m, s.res)
		// It is dynamic only if the place it leads to at first is a dynamic anchor.
		_, fragment, _ := strings.Cut(string(c.str(m)), "#")
		if s.dynamicRef != nil && fragment != "" && s.dynamicRef.res.dynamic[fragment] == s.dynamicRef {
			s.dynamicName, c.dynamic = fragment, true
		}
	default:
		return false
	}
	return true
}

// legacyItems reads draft-07's items and additionalItems, which mean together what
// prefixItems and items mean now.
func (c *compiler) legacyItems(s *schema, i int) {
	items := c.member(i, "items")
	if items < 0 {
		return
	}
	if c.items[items].kind != '[' {
		if _, ok := c.owner[items]; ok {
			s.items = c.at(items)
		}
		return
	}
	s.prefix = c.list(items)
	if rest := c.member(i, "additionalItems"); rest >= 0 {
		if _, ok := c.owner[rest]; ok {
			s.items = c.at(rest)
		}
	}
}

// annotation checks the form of keywords that only inform.
func (c *compiler) annotation(name string, m int) {
	want, ok := "", true
	switch name {
	case "title", "description", "$comment", "format", "contentEncoding", "contentMediaType":
		want, ok = "a string", c.items[m].kind == '"'
	case "readOnly", "writeOnly":
		want, ok = "a boolean", c.items[m].kind == 't' || c.items[m].kind == 'f'
	case "deprecated":
		want, ok = "a boolean", c.dialect == dialect07 || c.items[m].kind == 't' || c.items[m].kind == 'f'
	case "examples":
		want, ok = "an array", c.items[m].kind == '['
	}
	if !ok {
		c.fail(m, "%s is %s", name, want)
	}
}

func (c *compiler) types(m int) typeSet {
	one := func(i int) typeSet {
		for _, t := range typeNames {
			if t.name == string(c.str(i)) {
				return t.set
			}
		}
		c.fail(i, "type is one or more of null, boolean, object, array, number, string, integer")
		return 0
	}
	if c.items[m].kind != '[' {
		return one(m)
	}
	var set typeSet
	for i := range c.children(m) {
		t := one(i)
		if set&t != 0 {
			c.fail(i, "this type is there twice")
		}
		set |= t
	}
	if c.items[m].size == 0 {
		c.fail(m, "type names at least one type")
	}
	return set
}

// allow narrows s to the value or values at m. A const beside an enum allows what both
// do.
func (c *compiler) allow(s *schema, m int, many bool) {
	values := []int{m}
	if many {
		values = slices.Collect(c.children(m))
	}
	allowed := &enumeration{values: map[string]bool{}, shapes: map[shape]bool{}}
	var kept []int
	for _, v := range values {
		if key := string(c.appendCanonical(nil, v)); s.enum == nil || s.enum.values[key] {
			allowed.values[key] = true
			allowed.shapes[c.shape(v)] = true
			kept = append(kept, v)
		}
	}
	s.enum = allowed
	allowed.text = listed(kept, func(v int) string { return clip(c.raw(v)) })
}

func (c *compiler) list(m int) []*schema {
	var list []*schema
	if c.items[m].kind == '[' {
		for i := range c.children(m) {
			if _, ok := c.owner[i]; ok {
				list = append(list, c.at(i))
			}
		}
	}
	return list
}

// eachSchema walks an object of schemas.
func (c *compiler) eachSchema(m int, each func(name string, at int, s *schema)) {
	if c.items[m].kind != '{' {
		return
	}
	for i := range c.children(m) {
		if _, ok := c.owner[i]; ok {
			each(string(c.name(i)), i, c.at(i))
		}
	}
}

func (c *compiler) names(m int) []string {
	var names []string
	if c.array(m) {
		taken := make(map[string]bool, c.items[m].size)
		for i := range c.children(m) {
			name := string(c.str(i))
			if c.items[i].kind != '"' || taken[name] {
				c.fail(i, "these are names of properties, each a string and there once")
			}
			taken[name] = true
			names = append(names, name)
		}
	}
	return names
}

func (c *compiler) array(m int) bool {
	if c.items[m].kind == '[' {
		return true
	}
	c.fail(m, "%s is an array", c.name(m))
	return false
}

func (c *compiler) object(m int) bool {
	if c.items[m].kind == '{' {
		return true
	}
	c.fail(m, "%s is an object", c.name(m))
	return false
}

func (c *compiler) boolean(m int) bool {
	if k := c.items[m].kind; k != 't' && k != 'f' {
		c.fail(m, "%s is a boolean", c.name(m))
	}
	return c.items[m].kind == 't'
}

func (c *compiler) regexp(m int, text []byte) *pattern {
	re, err := compilePattern(string(text))
	if err != nil {
		c.fail(m, "not a regular expression in RE2 syntax: %v", err)
		return nil
	}
	return re
}
