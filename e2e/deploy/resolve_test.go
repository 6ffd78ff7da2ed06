package deploy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// deployment is the template with values for its parameters. It knows the functions that the
// template uses, and fails at any other.
type deployment struct {
	*template
	t      *testing.T
	values map[string]string
}

// with gives parameters their values, NAME=VALUE each; the others have their defaults.
func (tpl *template) with(t *testing.T, parameters ...string) *deployment {
	t.Helper()
	d := &deployment{tpl, t, map[string]string{
		"AWS::Partition": "aws", "AWS::Region": "eu-central-1", "AWS::AccountId": "123456789012", "AWS::URLSuffix": "amazonaws.com", "AWS::StackName": "thaw",
	}}
	for name, p := range tpl.Parameters {
		switch v := p.Default.(type) {
		case string:
			d.values[name] = v
		case float64:
			d.values[name] = text(v)
		}
	}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		if _, ok := tpl.Parameters[name]; !ok {
			t.Fatalf("there is no parameter %s", name)
		}
		d.values[name] = value
	}
	return d
}

// all are the resources that are made, resolved. What another resource is known by stays as
// ${Name} and ${Name.Attribute}.
func (d *deployment) all() map[string]resource {
	d.t.Helper()
	made := map[string]resource{}
	for name, r := range d.Resources {
		if r.Condition == "" || d.condition(r.Condition) {
			made[name] = resource{Type: r.Type, Properties: d.resolve(r.Properties).(map[string]any)}
		}
	}
	return made
}

// refusals are what the template's rules say against the parameters.
func (d *deployment) refusals() (said []string) {
	d.t.Helper()
	for _, r := range d.Rules {
		if r.RuleCondition == nil || d.resolve(r.RuleCondition).(bool) {
			for _, a := range r.Assertions {
				if !d.resolve(a.Assert).(bool) {
					said = append(said, a.AssertDescription)
				}
			}
		}
	}
	slices.Sort(said)
	return said
}

func (d *deployment) condition(name string) bool {
	d.t.Helper()
	return d.resolve(d.Conditions[name]).(bool)
}

// nothing is what AWS::NoValue leaves.
type nothing struct{}

var variable = regexp.MustCompile(`\$\{([^}]+)\}`)

func (d *deployment) resolve(v any) any {
	d.t.Helper()
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, e := range v {
			if e = d.resolve(e); e != (nothing{}) {
				out = append(out, e)
			}
		}
		return out
	case map[string]any:
		if len(v) == 1 {
			for function, args := range v {
				if function == "Ref" || function == "Condition" && isText(args) || strings.HasPrefix(function, "Fn::") {
					return d.call(function, args)
				}
			}
		}
		out := map[string]any{}
		for name, e := range v {
			if e = d.resolve(e); e != (nothing{}) {
				out[name] = e
			}
		}
		return out
	}
	return v
}

func isText(v any) bool { _, ok := v.(string); return ok }

func (d *deployment) call(function string, args any) any {
	d.t.Helper()
	list, _ := args.([]any)
	switch function {
	case "Ref":
		return d.ref(args.(string))
	case "Condition":
		return d.condition(args.(string))
	case "Fn::GetAtt":
		return "${" + text(list[0]) + "." + text(list[1]) + "}"
	case "Fn::If":
		if d.condition(list[0].(string)) {
			return d.resolve(list[1])
		}
		return d.resolve(list[2])
	case "Fn::Equals":
		return d.resolve(list[0]) == d.resolve(list[1])
	case "Fn::Not":
		return !d.resolve(list[0]).(bool)
	case "Fn::And":
		return !slices.ContainsFunc(list, func(e any) bool { return !d.resolve(e).(bool) })
	case "Fn::Or":
		return slices.ContainsFunc(list, func(e any) bool { return d.resolve(e).(bool) })
	case "Fn::Contains":
		return slices.Contains(d.resolve(list[0]).([]any), d.resolve(list[1]))
	case "Fn::FindInMap":
		return d.Mappings[text(d.resolve(list[0]))][text(d.resolve(list[1]))][text(d.resolve(list[2]))]
	case "Fn::Join":
		var parts []string
		for _, e := range d.resolve(list[1]).([]any) {
			parts = append(parts, text(e))
		}
		return strings.Join(parts, text(list[0]))
	case "Fn::Split":
		var parts []any
		for part := range strings.SplitSeq(text(d.resolve(list[1])), text(list[0])) {
			parts = append(parts, part)
		}
		return parts
	case "Fn::Sub":
		format, own := args, map[string]any{}
		if list != nil {
			format, own = list[0], d.resolve(list[1]).(map[string]any)
		}
		return variable.ReplaceAllStringFunc(format.(string), func(use string) string {
			name := use[2 : len(use)-1]
			if v, ok := own[name]; ok {
				return text(v)
			}
			if resource, _, ok := strings.Cut(name, "."); ok && d.Resources[resource].Type != "" {
				return use
			}
			return text(d.ref(name))
		})
	}
	d.t.Fatalf("%s is not known here", function)
	return nil
}

func (d *deployment) ref(name string) any {
	d.t.Helper()
	if name == "AWS::NoValue" {
		return nothing{}
	}
	if v, ok := d.values[name]; ok {
		return v
	}
	if d.Resources[name].Type == "" {
		d.t.Fatalf("%s is no parameter and no resource; the parameters are %q", name, slices.Sorted(maps.Keys(d.values)))
	}
	return "${" + name + "}"
}

// text is a scalar as CloudFormation writes it into a string.
func text(v any) string {
	if v, ok := v.(string); ok {
		return v
	}
	return fmt.Sprint(v) // numbers are small
}
