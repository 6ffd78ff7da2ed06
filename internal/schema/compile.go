package schema

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// maxSchemaDepth bounds how deep a hand-written schema nests.
const maxSchemaDepth = 128

// CheckInputRoot reports an error unless raw is a schema with "type": "object" at its
// root, as every tool's inputSchema has to be (F-06).
func CheckInputRoot(raw []byte) error {
	if err := strictjson.Check(raw, maxSchemaDepth); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	raw = strictjson.Trim(raw)
	if strictjson.Kind(raw) == '{' {
		if kind, ok := strictjson.String(strictjson.Member(raw, "type")); ok && kind == "object" {
			return nil
		}
	}
	return errors.New(`schema: a tool's input schema has "type": "object" at its root (F-06)`)
}

// Compile makes a validator of a hand-written schema, in dialect 2020-12 unless its
// $schema names draft-07; any other is refused (F-22, F-23). Unknown keywords are
// ignored, known ones of the wrong form are errors with their place, the first 20 joined.
//
// Nothing is fetched: a $ref that leads outside the schema, be it to a published
// meta-schema, is an error (F-24, F-25). Work is bounded (F-26): a document has at most
// 500,000 values, and steps are allowed as the document is large. A step is one schema
// looking at one value, or 64 bytes of text; of a pattern, 64 bytes of text times
// instructions of its program. A violation says which it was. A chain of more than 128
// schemas at one value is an error.
func Compile(raw []byte) (Validator, error) {
	if err := strictjson.Check(raw, maxSchemaDepth); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c := compiler{
		tape:      newTape(raw),
		resources: map[string]*resource{},
		owner:     map[int]*resource{},
		schemas:   map[int]*schema{},

		dynamicAnchors: map[int]string{},
	}
	if c.overfull {
		return nil, fmt.Errorf("schema: more than %d values", maxValues)
	}
	if err := c.chooseDialect(); err != nil {
		return nil, err
	}
	base := &url.URL{Scheme: "schema", Path: "/"}
	root := &resource{base: base}
	c.resources[base.String()] = root
	c.scan(0, root)
	for i := 0; i < len(c.scanned); i++ {
		c.compile(c.scanned[i])
	}
	if len(c.errs) == 0 {
		c.refuseLoops()
	}
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return &written{root: c.schemas[0], dynamic: c.dynamic}, nil
}

// dialect is a revision of JSON Schema.
type dialect uint8

const (
	dialect2020 dialect = iota
	dialect07
)

func (c *compiler) chooseDialect() error {
	i := c.member(0, "$schema")
	if i < 0 {
		return nil
	}
	name := string(c.str(i))
	d, ok := dialectNamed(name)
	if !ok {
		return fmt.Errorf("schema: dialect %s is not supported; supported are https://json-schema.org/draft/2020-12/schema (the default) and http://json-schema.org/draft-07/schema", quoted(name))
	}
	c.dialect = d
	return nil
}

func dialectNamed(name string) (dialect, bool) {
	name = strings.TrimSuffix(name, "#")
	_, name, _ = strings.Cut(name, "://")
	switch name {
	case "json-schema.org/draft/2020-12/schema":
		return dialect2020, true
	case "json-schema.org/draft-07/schema":
		return dialect07, true
	}
	return 0, false
}

// resource is a schema with an identifier, within which fragments are resolved.
type resource struct {
	base    *url.URL
	root    int
	anchors map[string]int
	dynamic map[string]*schema // by $dynamicAnchor
}

// schema is a compiled schema. Nil and zero mean the keyword is absent.
type schema struct {
	never bool // the schema false
	res   *resource

	types        typeSet
	enum         *enumeration // also of const
	limits       []bound
	multipleOf   *divisor
	multipleText string

	minLength, maxLength, minItems, maxItems int // -1: none
	minProperties, maxProperties             int
	minContains, maxContains                 int
	pattern                                  *pattern
	uniqueItems                              bool

	properties       map[string]*schema
	propertyNames    []string // in the order of the text
	patterns         []patternSchema
	additional       *schema
	names            *schema
	required         []string
	requiredAt       map[string]int
	dependents       []dependent
	prefix           []*schema
	items            *schema
	contains         *schema
	unevaluatedItems *schema
	unevaluatedProps *schema

	inPlace              bool // one of these is there
	allOf, anyOf, oneOf  []*schema
	not, cond, then, els *schema
	ref, dynamicRef      *schema
	dynamicName          string // with dynamicRef: the anchor to look for in the dynamic scope
}

type patternSchema struct {
	*pattern
	schema *schema
}

// dependent is what the presence of a property asks for.
type dependent struct {
	property string
	required []string
	schema   *schema
}

// bound is one of minimum, maximum and their exclusive forms.
type bound struct {
	text   string
	value  decimal
	wrong  int // what a value compared with it must not be: -1 below, 1 above
	strict bool
}

func (b *bound) message() string {
	switch {
	case b.wrong < 0 && b.strict:
		return "must be more than " + clip(b.text)
	case b.wrong < 0:
		return "must be at least " + clip(b.text)
	case b.strict:
		return "must be less than " + clip(b.text)
	}
	return "must be at most " + clip(b.text)
}

type compiler struct {
	tape
	dialect   dialect
	resources map[string]*resource // by absolute URI without fragment
	owner     map[int]*resource    // of scanned schemas
	scanned   []int
	schemas   map[int]*schema

	dynamicAnchors map[int]string
	dynamic        bool // there is a $dynamicRef
	errs           []error
}

// maxCompileErrors bounds an error's length and the search for the places in it.
const maxCompileErrors = 20

// str is the text of item i if it is a string, else empty.
func (c *compiler) str(i int) []byte {
	if c.items[i].kind != '"' {
		return nil
	}
	return c.text(i)
}

func (c *compiler) fail(i int, format string, args ...any) {
	switch n := len(c.errs); {
	case n > maxCompileErrors:
		return
	case n == maxCompileErrors:
		c.errs = append(c.errs, errors.New("schema: and more"))
		return
	}
	c.errs = append(c.errs, fmt.Errorf("schema at %q: %s", pointerTo(c.doc, int(c.items[i].start)), fmt.Sprintf(format, args...)))
}

// scan finds the schemas below item i where the dialect has them, their identifiers
// and anchors.
func (c *compiler) scan(i int, res *resource) {
	if _, done := c.owner[i]; done {
		return
	}
	if k := c.items[i].kind; k != '{' {
		if k != 't' && k != 'f' {
			c.fail(i, "a schema is an object or a boolean, not %s", kindName(k))
			return
		}
		c.owner[i] = res
		c.scanned = append(c.scanned, i)
		return
	}
	onlyRef := c.dialect == dialect07 && c.member(i, "$ref") >= 0
	if id := c.member(i, "$id"); id >= 0 && !onlyRef {
		res = c.identify(i, id, res)
	}
	c.owner[i] = res
	c.scanned = append(c.scanned, i)
	for m := range c.children(i) {
		keyword := string(c.name(m))
		switch keyword {
		case "$anchor", "$dynamicAnchor":
			if c.dialect == dialect07 {
				continue
			}
			c.anchor(m, i, res)
			if keyword == "$dynamicAnchor" {
				c.dynamicAnchors[i] = string(c.str(m))
			}
		case "$schema":
			if d, ok := dialectNamed(string(c.str(m))); !ok || d != c.dialect {
				c.fail(m, "every $schema has to name the dialect of the root")
			}
		default:
			if !onlyRef || keyword == "definitions" {
				c.scanKeyword(m, keyword, res)
			}
		}
	}
}

func (c *compiler) scanKeyword(m int, keyword string, res *resource) {
	place := placeOf(keyword)
	switch keyword {
	case "$defs", "dependentSchemas", "prefixItems", "contentSchema", "unevaluatedItems", "unevaluatedProperties":
		if c.dialect == dialect07 {
			return
		}
	case "additionalItems", "dependencies":
		if c.dialect == dialect2020 {
			return
		}
	case "items":
		if c.dialect == dialect2020 && c.items[m].kind == '[' {
			c.fail(m, "items is one schema; for one schema a position use prefixItems")
			return
		}
	}
	list := place == placeList || place == placeSchemaOrList && c.items[m].kind == '['
	switch {
	case place == placeNone:
	case place == placeMap:
		if c.items[m].kind != '{' {
			c.fail(m, "%s is an object of schemas", keyword)
			return
		}
		for s := range c.children(m) {
			if keyword != "dependencies" || c.items[s].kind != '[' {
				c.scan(s, res)
			}
		}
	case list:
		if c.items[m].kind != '[' || c.items[m].size == 0 {
			c.fail(m, "%s is a list of at least one schema", keyword)
			return
		}
		for s := range c.children(m) {
			c.scan(s, res)
		}
	default:
		c.scan(m, res)
	}
}

// identify makes schema i, which has an $id, a resource of its own.
func (c *compiler) identify(i, id int, parent *resource) *resource {
	text := string(c.str(id))
	u, err := parent.base.Parse(text)
	if text == "" || err != nil {
		c.fail(id, "$id is a URI reference")
		return parent
	}
	if c.dialect == dialect07 && strings.HasPrefix(text, "#") {
		c.addAnchor(id, i, parent, text[1:])
		return parent
	}
	if u.Fragment != "" {
		c.fail(id, "$id has no fragment; for that use $anchor")
		return parent
	}
	u.RawFragment = ""
	key := withoutFragment(u)
	if _, taken := c.resources[key]; taken {
		c.fail(id, "the identifier %q is there twice", clip(key))
		return parent
	}
	res := &resource{base: u, root: i}
	c.resources[key] = res
	return res
}

func withoutFragment(u *url.URL) string {
	v := *u
	v.Fragment, v.RawFragment = "", ""
	return strings.TrimSuffix(v.String(), "#")
}

func (c *compiler) anchor(m, schema int, res *resource) {
	name := string(c.str(m))
	if !isAnchor(name) {
		c.fail(m, "an anchor is a letter or _ followed by letters, digits and -_.")
		return
	}
	c.addAnchor(m, schema, res, name)
}

func (c *compiler) addAnchor(m, schema int, res *resource, name string) {
	if other, taken := res.anchors[name]; taken && other != schema {
		c.fail(m, "the anchor %q is there twice", clip(name))
		return
	}
	if res.anchors == nil {
		res.anchors = map[string]int{}
	}
	res.anchors[name] = schema
}

func isAnchor(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !isLetter(c) && c != '_' && (i == 0 || c-'0' > 9 && c != '-' && c != '.') {
			return false
		}
	}
	return name != ""
}

// resolve finds the schema that a reference in res leads to.
func (c *compiler) resolve(at int, res *resource) *schema {
	ref := string(c.str(at))
	u, err := res.base.Parse(ref)
	if err != nil || c.items[at].kind != '"' {
		c.fail(at, "a reference is a URI reference")
		return nil
	}
	if strings.HasPrefix(ref, "#") {
		// Package url resolves these wrongly against a URN.
		same := *res.base
		same.Fragment = u.Fragment
		u = &same
	}
	target, ok := c.resources[withoutFragment(u)]
	if !ok {
		c.fail(at, "%q leads outside this schema; references are never fetched, so put what it means under $defs", clip(ref))
		return nil
	}
	i := target.root
	switch fragment := u.Fragment; {
	case fragment == "":
	case fragment[0] == '/':
		if i, target = c.follow(fragment, target); i < 0 {
			c.fail(at, "%q leads nowhere", clip(ref))
			return nil
		}
	default:
		var found bool
		if i, found = target.anchors[fragment]; !found {
			c.fail(at, "no schema has the anchor of %q", clip(ref))
			return nil
		}
	}
	c.scan(i, target)
	if _, ok := c.owner[i]; !ok {
		return nil
	}
	return c.at(i)
}

// follow walks a JSON Pointer from the root of res.
func (c *compiler) follow(pointer string, res *resource) (int, *resource) {
	i := res.root
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		next := -1
		if c.items[i].kind == '[' {
			if n, ok := arrayIndex(token); ok && n < int(c.items[i].size) {
				for next = i + 1; n > 0; n-- {
					next = int(c.items[next].next)
				}
			}
		} else {
			next = c.member(i, token)
		}
		if next < 0 {
			return -1, nil
		}
		i = next
		if owner, ok := c.owner[i]; ok {
			res = owner
		}
	}
	return i, res
}

// arrayIndex reads a pointer's token: RFC 6901 has neither signs nor leading zeros.
func arrayIndex(token string) (int, bool) {
	n, err := strconv.ParseUint(token, 10, 31)
	return int(n), err == nil && (token == "0" || token[0] != '0')
}

// count reads the value of a keyword that is a non-negative integer.
func (c *compiler) count(m int) int {
	v, form := integer{}, integerFraction
	if c.items[m].kind == '0' {
		v, form = parseInteger(c.raw(m))
	}
	switch {
	case form == integerHuge && c.raw(m)[0] != '-', v.mag > math.MaxInt && !v.neg:
		return math.MaxInt
	case form == integerFraction, form == integerHuge, v.neg:
		c.fail(m, "%s is a non-negative integer", c.name(m))
		return -1
	}
	return int(v.mag)
}
