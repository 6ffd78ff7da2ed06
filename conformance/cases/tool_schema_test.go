package cases

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var toolSchema = map[string]verdict{
	"B-29": {rules: []rule{
		{
			says:  "first: 9007199254740993 in structuredContent and text",
			on:    []string{"typed int64 argument"},
			holds: all(status(200), complete, structured(`{"id":9007199254740993}`), ran("echo_id")),
		},
		{
			says:  "second: 1234567890123456789 unchanged",
			on:    []string{"untyped value"},
			holds: all(status(200), complete, structured(`{"n":1234567890123456789,"d":0.1,"e":1e2}`), ran("anyjson")),
		},
		{says: "third: isError true, handler not run", on: []string{"too big for int64"}, holds: all(status(200), toolError("id"), nothingRan)},
	}},

	"B-30": {scenes: []scene{{
		says: []string{"structuredContent validates against tools/list outputSchema in all four", "required null never appears"},
		items: []string{
			"nil slice in a struct", "nil slice as the whole result", "nil map field", "typed nil pointer",
			"tools/call of a tool whose output schema is inferred from the type",
		},
		play: emptyResults,
	}}},

	"B-31": {rules: []rule{
		{says: allButIntegralFloat, on: []string{"missing"}, holds: refusedArgument("b")},
		{
			says:  allButIntegralFloat,
			on:    []string{"wrong type", "numeric string", "plus sign string", "fraction", "null for a required value"},
			holds: refusedArgument("a"),
		},
		{says: allButIntegralFloat, on: []string{"extra property, additionalProperties false"}, holds: refusedArgument("c")},
		{says: allButIntegralFloat, on: []string{"enum in another case"}, holds: refusedArgument("colour")},
		{
			says:  "integral float: sum 5",
			on:    []string{"integral float is an integer"},
			holds: all(status(200), complete, structured(`{"sum":5}`), ran("add")),
		},
	}},
}

const allButIntegralFloat = "all but integral float: result.isError true, resultType complete, text mentions the property"

// refusedArgument is how a bad argument is refused: with a result whose text names the
// property, as a word of its own that is no article, so that a model can mend it (F-16).
func refusedArgument(property string) check {
	named := regexp.MustCompile(`(?m)^- /?` + property + `\b|["'` + "`]" + property + `["'` + "`]")
	return all(status(200), toolError(), nothingRan, func(a *answer) error {
		if text := strings.Join(a.texts(), "\n"); !named.MatchString(text) {
			return fmt.Errorf("the text %q does not name %s", text, property)
		}
		return nil
	})
}

// emptyResults calls tools that return Go's empty values and holds what they send against
// the schema that they publish, with a validator of another make than the server's own.
func emptyResults(t *testing.T, s *stage) {
	for _, test := range []struct{ name, tool, structured string }{
		{"nil slice in a struct", "empty_slice_field", `{"items":[]}`},
		{"nil slice as the whole result", "empty_slice", `[]`},
		{"nil map field", "empty_map_field", `{"m":{}}`},
		{"typed nil pointer", "empty_pointer", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			call := s.call(test.tool, `{}`, "")
			for _, d := range s.doors(call) {
				schema := outputSchema(t, s, d, test.tool)
				a := s.play(t, d, call)
				if err := all(status(200), complete, ran(test.tool))(a); err != nil {
					t.Errorf("%v\n%s: %s", err, d.name(), a)
				}
				content := a.result("structuredContent")
				if test.structured != "" && string(content) != test.structured {
					t.Errorf("%s: structuredContent is %q, want %s", d.name(), content, test.structured)
				}
				if err := validate(schema, content); err != nil {
					t.Errorf("%s: structuredContent %s breaks the schema %s: %v", d.name(), content, schema, err)
				}
			}
		})
	}
}

// outputSchema is what tools/list says of a tool's results.
func outputSchema(t *testing.T, s *stage, d door, tool string) jsontext.Value {
	t.Helper()
	for _, entry := range listedTools(t, s, d) {
		if string(at(entry, "name")) == `"`+tool+`"` {
			schema := at(entry, "outputSchema")
			if schema == nil {
				t.Fatalf("tool %s has no outputSchema", tool)
			}
			return schema
		}
	}
	t.Fatalf("tools/list has no %s", tool)
	return nil
}

// listedTools are the entries of tools/list.
func listedTools(t *testing.T, s *stage, d door) []jsontext.Value {
	t.Helper()
	a := s.play(t, d, s.request("tools/list", "", ""))
	var entries []jsontext.Value
	if !decode(a.result("tools"), &entries) || a.result("nextCursor") != nil {
		t.Fatalf("tools/list gave no whole list: %s", a)
	}
	return entries
}

// validate holds a value against a schema.
func validate(schema, value jsontext.Value) error {
	if value == nil {
		return errors.New("there is no value")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("output.json", doc); err != nil {
		return err
	}
	compiled, err := c.Compile("output.json")
	if err != nil {
		return err
	}
	return compiled.Validate(instance)
}
