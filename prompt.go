package thaw

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/mcp"
)

// Prompt is a registered prompt; make one with NewPrompt.
type Prompt struct{ declared declared.Prompt }

// CompleteFunc suggests values for one argument, best first (F-42). prefix is what the
// user has typed; args are the other arguments known so far. At most 100 values are
// sent (F-41).
type CompleteFunc func(ctx context.Context, prefix string, args map[string]string) ([]string, error)

// PromptOptions: each zero value is the protocol's default.
type PromptOptions struct {
	Title    string
	Icons    []mcp.Icon
	Complete map[string]CompleteFunc // by argument name
	Scopes   []string                // what a caller needs, all of them, as with a tool's; for completion too
	Meta     map[string]any          // _meta of the prompt's definition
}

// NewPrompt makes a prompt. In is a struct of strings: its json names are the
// arguments, the fields without omitempty or omitzero are required, a jsonschema tag
// describes one. NewPrompt panics, naming the prompt, on a bad name, a nil function,
// any other In, or completion for an argument that In lacks. opts may be nil.
func NewPrompt[In any](name, description string, fn func(context.Context, In) ([]mcp.PromptMessage, error), opts *PromptOptions) *Prompt {
	fail := func(format string, args ...any) {
		panic(fmt.Sprintf("thaw: prompt %q: %s", name, fmt.Sprintf(format, args...)))
	}
	if err := checkName(name); err != nil {
		fail("%v", err)
	}
	if fn == nil {
		fail("the function is nil")
	}
	fields, err := stringFields(reflect.TypeFor[In]())
	if err != nil {
		fail("%v", err)
	}
	var o PromptOptions
	if opts != nil {
		o = *opts
	}
	if err := checkIcons(o.Icons); err != nil {
		fail("%v", err)
	}
	if err := declared.CheckScopes(o.Scopes); err != nil {
		fail("Scopes: %v", err)
	}
	complete, err := completions(o.Complete, fields)
	if err != nil {
		fail("%v", err)
	}
	d := declared.Prompt{
		Definition: mcp.Prompt{Name: name, Title: o.Title, Description: description, Icons: slices.Clone(o.Icons), Meta: maps.Clone(o.Meta)},
		Get: func(ctx context.Context, args map[string]string) ([]mcp.PromptMessage, error) {
			return fn(ctx, fillStrings[In](fields, args))
		},
		Complete: complete,
		Scopes:   slices.Clone(o.Scopes),
	}
	for _, f := range fields {
		d.Definition.Arguments = append(d.Definition.Arguments, mcp.PromptArgument{Name: f.name, Description: f.description, Required: f.required})
	}
	return &Prompt{d}
}

// Definition is the prompt as prompts/list gives it.
func (p *Prompt) Definition() mcp.Prompt { return p.declared.Definition }

// Declared is for runtime/serve; its type cannot be named outside this module.
func (p *Prompt) Declared() *declared.Prompt { return &p.declared }

// stringField is one argument of a prompt or one variable of a template.
type stringField struct {
	name, description string
	required          bool
	index             []int
}

// stringFields are the fields of a struct of strings, in order.
func stringFields(t reflect.Type) ([]stringField, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("its argument is %v, want a struct of strings", t)
	}
	var fields []stringField
	for _, f := range reflect.VisibleFields(t) {
		tag, _ := f.Tag.Lookup("json")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			continue // its own fields are visible too
		}
		if f.Anonymous && f.Type.Kind() == reflect.Pointer {
			return nil, fmt.Errorf("field %s is an embedded pointer, want an embedded struct", f.Name)
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if f.Type.Kind() != reflect.String {
			return nil, fmt.Errorf("field %s is %v, want a string", f.Name, f.Type)
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		if slices.ContainsFunc(fields, func(other stringField) bool { return other.name == name }) {
			return nil, fmt.Errorf("two fields have the name %q", name)
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		fields = append(fields, stringField{name, f.Tag.Get("jsonschema"), !optional, f.Index})
	}
	return fields, nil
}

// fillStrings makes an In of the values that are there.
func fillStrings[In any](fields []stringField, values map[string]string) In {
	var in In
	v := reflect.ValueOf(&in).Elem()
	for _, f := range fields {
		if s, ok := values[f.name]; ok {
			v.FieldByIndex(f.index).SetString(s)
		}
	}
	return in
}

func completions(complete map[string]CompleteFunc, fields []stringField) (map[string]declared.CompleteFunc, error) {
	known := map[string]bool{}
	for _, f := range fields {
		known[f.name] = true
	}
	m := map[string]declared.CompleteFunc{}
	for name, fn := range complete {
		if !known[name] {
			return nil, fmt.Errorf("completion for %q, which is none of its arguments", name)
		}
		if fn == nil {
			return nil, fmt.Errorf("completion for %q is nil", name)
		}
		m[name] = declared.CompleteFunc(fn)
	}
	return m, nil
}
