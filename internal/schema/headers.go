package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Kind is the JSON type of a mirrored parameter.
type Kind string

// The kinds that a mirrored parameter may have (M-16).
const (
	KindString  Kind = "string"
	KindInteger Kind = "integer"
	KindBoolean Kind = "boolean"
)

// Header is a parameter that clients mirror in the header Mcp-Param-Name (M-14).
type Header struct {
	Name string   // as written, without the prefix
	Path []string // property names from the root of the arguments
	Kind Kind
}

// headerUse is a header tag on a node whose place is not yet judged.
type headerUse struct {
	field string
	node  *node
}

// checkHeaders finds the headers that properties alone lead to, and reports the others.
func (w *walk) checkHeaders(root *node) []Header {
	if len(w.headers) == 0 {
		return nil
	}
	var found []Header
	reached := map[*node]bool{}
	var visit func(n *node, path []string)
	visit = func(n *node, path []string) {
		for i := range n.fields {
			child, path := &n.fields[i].node, append(slices.Clip(path), n.fields[i].name)
			if child.header != "" {
				reached[child] = true
				found = append(found, Header{child.header, path, kindOfHeader(child.kind)})
			}
			visit(child, path)
		}
	}
	// A recursive root is reached through $ref as well.
	if root.defName == "" {
		visit(root, nil)
	}
	for _, use := range w.headers {
		if !reached[use.node] {
			w.errs = append(w.errs, fmt.Errorf("%s: tag header is only for parameters that properties alone lead to, not inside slices, maps or recursive types (M-17)", use.field))
		}
	}
	if err := uniqueHeaders(found); err != nil {
		w.fail("tag header: %v", err)
	}
	return found
}

func kindOfHeader(k kind) Kind {
	switch k {
	case kindInteger:
		return KindInteger
	case kindBool:
		return KindBoolean
	}
	return KindString
}

// checkHeaderName checks M-15 but for uniqueness.
func checkHeaderName(name string) error {
	if name == "" {
		return errors.New("the name is empty (M-15)")
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && c-'0' > 9 && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return fmt.Errorf("%q has a character that no header name has; allowed are letters, digits and !#$%%&'*+-.^_`|~ (M-15)", clip(name))
		}
	}
	return nil
}

func uniqueHeaders(list []Header) error {
	for i, h := range list {
		for _, earlier := range list[:i] {
			if strings.EqualFold(h.Name, earlier.Name) {
				return fmt.Errorf("%q is the name at both /%s and /%s; names differ in more than case (M-15)", h.Name, strings.Join(earlier.Path, "/"), strings.Join(h.Path, "/"))
			}
		}
	}
	return nil
}

const headerKeyword = "x-mcp-header"

// HeadersOf are the x-mcp-header annotations of a hand-written schema, in the order of
// its text. The error joins all that break M-15 to M-17, each with its place: a client
// drops a tool with an invalid one without a word (M-18).
func HeadersOf(raw []byte) ([]Header, error) {
	if err := strictjson.Check(raw, maxSchemaDepth); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var s headerSearch
	s.schema(strictjson.Trim(raw), nil, true, "")
	if err := uniqueHeaders(s.found); err != nil {
		s.errs = append(s.errs, fmt.Errorf("%s: %w", headerKeyword, err))
	}
	if len(s.errs) > 0 {
		return nil, errors.Join(s.errs...)
	}
	return s.found, nil
}

type headerSearch struct {
	found []Header
	errs  []error
}

func (s *headerSearch) fail(at, format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("schema at %q: %s: %s", at, headerKeyword, fmt.Sprintf(format, args...)))
}

// schema searches a schema that lies at pointer at. reachable: properties alone lead to
// it, by the names in path.
func (s *headerSearch) schema(raw []byte, path []string, reachable bool, at string) {
	if strictjson.Kind(raw) != '{' {
		return
	}
	for name, value := range strictjson.Members(raw) {
		keyword := string(name)
		if keyword == headerKeyword {
			s.annotation(raw, value, path, reachable, at)
			continue
		}
		below := at + "/" + keyword
		switch placeOf(keyword) {
		case placeSchema:
			s.schema(value, nil, false, below)
		case placeSchemaOrList, placeList:
			s.schema(value, nil, false, below)
			s.list(value, below)
		case placeMap:
			if strictjson.Kind(value) != '{' {
				continue
			}
			for name, value := range strictjson.Members(value) {
				inside := below + "/" + string(appendPointerToken(nil, name))
				if keyword == "properties" && reachable {
					s.schema(value, append(slices.Clip(path), string(name)), true, inside)
				} else {
					s.schema(value, nil, false, inside)
				}
			}
		}
	}
}

func (s *headerSearch) list(raw []byte, at string) {
	if strictjson.Kind(raw) != '[' {
		return
	}
	n := 0
	for value := range strictjson.Elements(raw) {
		s.schema(value, nil, false, fmt.Sprintf("%s/%d", at, n))
		n++
	}
}

func (s *headerSearch) annotation(schema, value []byte, path []string, reachable bool, at string) {
	name, ok := strictjson.String(value)
	if !ok {
		s.fail(at, "must be a string, the name of the header (M-15)")
		return
	}
	if err := checkHeaderName(name); err != nil {
		s.fail(at, "%v", err)
		return
	}
	if !reachable || len(path) == 0 {
		s.fail(at, "only properties that properties keywords alone lead to may have it (M-17)")
		return
	}
	kind, _ := strictjson.String(strictjson.Member(schema, "type"))
	switch Kind(kind) {
	case KindString, KindInteger, KindBoolean:
		s.found = append(s.found, Header{name, path, Kind(kind)})
	default:
		s.fail(at, "the type must be one of string, integer, boolean, and nothing beside it (M-16)")
	}
}

// place says where in a keyword's value schemas lie.
type place uint8

const (
	placeNone place = iota
	placeSchema
	placeSchemaOrList
	placeList
	placeMap
)

// placeOf covers both dialects; a keyword of the other one is no schema, but whoever
// reads the text may still take it for one.
func placeOf(keyword string) place {
	switch keyword {
	case "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties":
		return placeSchema
	case "items":
		return placeSchemaOrList
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return placeList
	case "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties":
		return placeMap
	}
	return placeNone
}
