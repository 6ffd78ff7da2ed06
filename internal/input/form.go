package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// CheckForm reports everything in a form's schema that a client need not understand
// it takes flat objects of strings, numbers, booleans and choices. schema passed
// strictjson.Check.
func CheckForm(schema []byte) error {
	if strictjson.Kind(schema) != '{' || !strictjson.Is(member(schema, "type"), "object") {
		return errors.New(`a form's schema has "type": "object" at its root`)
	}
	properties := member(schema, "properties")
	if strictjson.Kind(properties) != '{' {
		return errors.New("a form's schema has properties, an object")
	}
	var errs []error
	for name := range strictjson.Members(schema) {
		if !slices.Contains(formMembers, string(name)) {
			errs = append(errs, fmt.Errorf("a form has no %q; it has %s", name, strings.Join(formMembers, ", ")))
		}
	}
	for name, field := range strictjson.Members(properties) {
		if err := checkField(field); err != nil {
			errs = append(errs, fmt.Errorf("field %q: %w", name, err))
		}
	}
	if required := member(schema, "required"); required != nil {
		errs = append(errs, checkRequired(required, properties))
	}
	return errors.Join(errs...)
}

var formMembers = []string{"$schema", "type", "properties", "required"}

// What a field of each type may say beside type, title, description and default.
var fieldMembers = map[string][]string{
	"string":  {"minLength", "maxLength", "format", "enum", "oneOf", "enumNames"},
	"number":  {"minimum", "maximum"},
	"integer": {"minimum", "maximum"},
	"boolean": nil,
	"array":   {"items", "minItems", "maxItems"},
}

var formFormats = []string{"date", "date-time", "email", "uri"}

func checkField(field []byte) error {
	kind, _ := strictjson.String(member(field, "type"))
	allowed, ok := fieldMembers[kind]
	if !ok {
		return errors.New(`type must be "string", "number", "integer", "boolean", or "array" of choices`)
	}
	for name := range strictjson.Members(field) {
		switch n := string(name); n {
		case "type", "title", "description", "default":
		default:
			if !slices.Contains(allowed, n) {
				return fmt.Errorf("%q is not for a form's %s; allowed are title, description, default%s", name, kind, strings.Join(append([]string{""}, allowed...), ", "))
			}
		}
	}
	if format := member(field, "format"); format != nil {
		if f, _ := strictjson.String(format); !slices.Contains(formFormats, f) {
			return fmt.Errorf("format must be one of %s", strings.Join(formFormats, ", "))
		}
	}
	if oneOf := member(field, "oneOf"); oneOf != nil {
		return checkTitled(oneOf, "oneOf")
	}
	if kind != "array" {
		return nil
	}
	items := member(field, "items")
	if anyOf := member(items, "anyOf"); anyOf != nil {
		return checkTitled(anyOf, "items.anyOf")
	}
	if strictjson.Kind(member(items, "enum")) != '[' || !strictjson.Is(member(items, "type"), "string") {
		return errors.New(`items must be choices: {"type": "string", "enum": […]} or {"anyOf": [{"const", "title"}, …]}`)
	}
	return nil
}

func checkTitled(choices []byte, where string) error {
	if strictjson.Kind(choices) == '[' {
		whole := true
		for c := range strictjson.Elements(choices) {
			whole = whole && strictjson.Kind(member(c, "const")) == '"' && strictjson.Kind(member(c, "title")) == '"'
		}
		if whole {
			return nil
		}
	}
	return fmt.Errorf(`%s must be an array of {"const": string, "title": string}`, where)
}

func checkRequired(required, properties []byte) error {
	if strictjson.Kind(required) != '[' {
		return errors.New("required must be an array of names")
	}
	for name := range strictjson.Elements(required) {
		if text, ok := strictjson.String(name); !ok || strictjson.Member(properties, text) == nil {
			return fmt.Errorf("required names %s, which is no field", name)
		}
	}
	return nil
}
