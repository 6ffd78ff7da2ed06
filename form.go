package thaw

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// form is the form of a Go type: its schema in what clients understand of schemas.
type form struct {
	typ      *schema.Type
	fields   []formField
	required []byte // the JSON array, or nil
	zero     []byte // the type's zero value as JSON
}

type formField struct {
	name    string
	members []byte // of the field's schema but its default: `"type":"string","minLength":1`
	value   []byte // the default of its tag, or nil
}

var forms sync.Map // reflect.Type to func() (*form, error)

func formOf[T any]() (*form, error) {
	t := reflect.TypeFor[T]()
	known, ok := forms.Load(t)
	if !ok {
		known, _ = forms.LoadOrStore(t, sync.OnceValues(func() (*form, error) {
			var zero T
			return makeForm(t, zero)
		}))
	}
	return known.(func() (*form, error))()
}

func makeForm(t reflect.Type, zero any) (*form, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("a form is a struct, not %v", t)
	}
	typ, err := schema.Of(t, schema.Options{EnumOf: enumOf})
	if err != nil {
		return nil, fmt.Errorf("a form of %v: %w", t, err)
	}
	f := &form{typ: typ}
	if f.zero, err = strictjson.Marshal(zero); err != nil {
		return nil, fmt.Errorf("a form of %v: %w", t, err)
	}
	text := typ.AppendJSON(nil)
	f.required = strictjson.Member(text, "required")
	if properties := strictjson.Member(text, "properties"); properties != nil {
		for name, field := range strictjson.Members(properties) {
			f.fields = append(f.fields, fieldOf(string(name), field))
		}
	}
	if err := input.CheckForm(f.schema(nil)); err != nil {
		return nil, fmt.Errorf("a form of %v: %w", t, err)
	}
	return f, nil
}

// fieldOf rewrites what a tool's schema says in another way than a form's does. What a form
// cannot say at all is left for CheckForm to name.
func fieldOf(name string, field []byte) formField {
	f := formField{name: name}
	for member, value := range strictjson.Members(field) {
		text := string(member)
		switch {
		case text == "default":
			f.value = value
			continue
		case text == "type" && strictjson.Kind(value) == '[': // of a pointer: a form has no null
			for kind := range strictjson.Elements(value) {
				value = kind
				break
			}
		case text == "enum":
			value = withoutNull(value)
		case text == "oneOf":
			value = titled(value)
		case text == "items":
			value = choicesOf(value)
		}
		if len(f.members) > 0 {
			f.members = append(f.members, ',')
		}
		f.members = append(append(strictjson.AppendString(f.members, text), ':'), value...)
	}
	return f
}

func withoutNull(array []byte) []byte {
	b := []byte{'['}
	for v := range strictjson.Elements(array) {
		if strictjson.Kind(v) != 'n' {
			b = appendElement(b, v)
		}
	}
	return append(b, ']')
}

// titled gives every choice a title, which a form's choices have.
func titled(oneOf []byte) []byte {
	b := []byte{'['}
	for choice := range strictjson.Elements(oneOf) {
		value := strictjson.Member(choice, "const")
		if value == nil {
			continue // null, of a pointer
		}
		if strictjson.Member(choice, "title") == nil {
			choice = append(append(append(append([]byte(`{"const":`), value...), `,"title":`...), value...), '}')
		}
		b = appendElement(b, choice)
	}
	return append(b, ']')
}

// choicesOf is the schema of a list's items: several choices are anyOf in a form.
func choicesOf(items []byte) []byte {
	oneOf := strictjson.Member(items, "oneOf")
	if oneOf == nil {
		return items
	}
	return append(append([]byte(`{"anyOf":`), titled(oneOf)...), '}')
}

func appendElement(b, v []byte) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	return append(b, v...)
}

// withDefaults is the schema with the non-zero fields of v, a value of the form's type, as
// defaults.
func (f *form) withDefaults(v any) ([]byte, error) {
	values, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the form's defaults: %w", err)
	}
	if string(values) == string(f.zero) {
		values = nil
	}
	return f.schema(values), nil
}

// schema is the form's schema; values is nil or the JSON of a value of its type.
func (f *form) schema(values []byte) []byte {
	b := []byte(`{"type":"object","properties":{`)
	for i := range f.fields {
		field := &f.fields[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, field.name), ":{"...)
		b = append(b, field.members...)
		value := field.value
		if values != nil {
			own := strictjson.Member(values, field.name)
			if own != nil && strictjson.Kind(own) != 'n' && string(own) != string(strictjson.Member(f.zero, field.name)) {
				value = own
			}
		}
		if value != nil {
			b = append(append(b, `,"default":`...), value...)
		}
		b = append(b, '}')
	}
	b = append(b, '}')
	if f.required != nil {
		b = append(append(b, `,"required":`...), f.required...)
	}
	return append(b, '}')
}

// decode reads the content of a form that was filled in. Clients may send members that it
// does not have; an integral number may be written as a fraction.
func (f *form) decode(content []byte, v any) error {
	known := []byte{'{'}
	for name, value := range strictjson.Members(content) {
		for i := range f.fields {
			if f.fields[i].name == string(name) {
				known = append(append(strictjson.AppendString(appendElement(known, nil), name), ':'), value...)
				break
			}
		}
	}
	out, violations := f.typ.Validator().Validate(append(known, '}'))
	if len(violations) > 0 {
		return errors.New(violations[0].String())
	}
	return strictjson.Unmarshal(out, v)
}
