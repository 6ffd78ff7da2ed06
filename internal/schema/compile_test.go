package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func mustCompile(tb testing.TB, raw string) Validator {
	tb.Helper()
	v, err := Compile([]byte(raw))
	if err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestCompiledValidate(t *testing.T) {
	for _, c := range []struct {
		schema string
		docs   map[string][]string // violations by document; none: accepted
	}{
		{`true`, map[string][]string{`1`: nil, `{"a":[null]}`: nil}},
		{`false`, map[string][]string{`1`: {"is not allowed"}}},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]}},"required":["a","c"],"additionalProperties":false}`, map[string][]string{
			`{"a":1,"c":2}`:      {`unknown property "c"`},
			`{"a":1.5,"b":null}`: {`missing property "c"`, "/a: must be an integer, not a number"},
			`{"A":1,"b":true}`:   {`missing property "a"`, `missing property "c"`, `unknown property "A"`, "/b: must be null or a string, not a boolean"},
			`[]`:                 {"must be an object, not an array"},
		}},
		{`{"items":{"type":"integer"}}`, map[string][]string{`[1,2.0,1e2]`: nil, `[1,"a",null]`: {"/1: must be an integer, not a string", "/2: must be an integer, not null"}}},
		{`{"minLength":2,"maxLength":3,"pattern":"^é"}`, map[string][]string{`"é😀"`: nil, `"é"`: {"must have at least 2 characters, has 1"}, `"abcd"`: {"must have at most 3 characters, has 4", "must match the pattern ^é"}, `1`: nil}},
		// Numbers are exact (B-29).
		{`{"minimum":9007199254740993,"maximum":9007199254740993}`, map[string][]string{`9007199254740993`: nil, `9007199254740992`: {"must be at least 9007199254740993"}, `9007199254740994.0`: {"must be at most 9007199254740993"}}},
		{`{"const":9007199254740993}`, map[string][]string{`9007199254740993.0`: nil, `9007199254740992`: {"must be one of 9007199254740993, not 9007199254740992"}}},
		{`{"multipleOf":0.01}`, map[string][]string{`4.35`: nil, `1e2`: nil, `0.015`: {"must be a multiple of 0.01"}}},
		{`{"exclusiveMinimum":0.1,"exclusiveMaximum":1}`, map[string][]string{`0.5`: nil, `0.1`: {"must be more than 0.1"}, `1.0`: {"must be less than 1"}}},
		{`{"enum":["a",1,null,{"b":[1.0]}]}`, map[string][]string{`"a"`: nil, `{"b":[1]}`: nil, `"c"`: {`must be one of "a", 1, null, {"b":[1.0]}, not "c"`}, `"` + strings.Repeat("x", 50) + `"`: {`must be one of "a", 1, null, {"b":[1.0]}`}}},
		{`{"minItems":1,"maxItems":2,"uniqueItems":true}`, map[string][]string{`[1]`: nil, `[]`: {"must have at least 1 item, has 0"}, `[1,1.0,2]`: {"must have at most 2 items, has 3", "must not have equal items, but items 0 and 1 are"}}},
		{`{"minProperties":1,"maxProperties":1}`, map[string][]string{`{}`: {"must have at least 1 property, has 0"}, `{"a":1,"b":2}`: {"must have at most 1 property, has 2"}}},
		{`{"properties":{"a":{"propertyNames":{"pattern":"^x","maxLength":2}}}}`, map[string][]string{`{"a":{"x":1}}`: nil, `{"a":{"y":1},"b":2}`: {`property name "y" must match the pattern ^x`}}},
		{`{"contains":{"type":"string"}}`, map[string][]string{`[1,"a"]`: nil, `[1]`: {"must have an item of the kind that contains describes"}}},
		{`{"contains":{"type":"string"},"minContains":2,"maxContains":2}`, map[string][]string{`["a","b"]`: nil, `["a"]`: {"must have at least 2 items of the kind that contains describes, has 1"}, `["a","b","c"]`: {"must have at most 2 items of the kind that contains describes, has 3"}}},
		{`{"dependentRequired":{"a":["b","c"]}}`, map[string][]string{`{"a":1,"b":2}`: {`with property "a" there must be "c"`}}},
		{`{"not":{"type":"string"}}`, map[string][]string{`1`: nil, `"a"`: {"must not match the schema under not"}}},
		{`{"properties":{"no":false}}`, map[string][]string{`{"no":1}`: {"/no: is not allowed"}}},
		{`{"allOf":[{"required":["a"]},{"properties":{"a":{"minimum":3}}}]}`, map[string][]string{`{"a":1}`: {"/a: must be at least 3"}, `{}`: {`missing property "a"`}}},
		{`{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, map[string][]string{`{"a":1}`: {`missing property "b"`}, `{"a":2}`: {`missing property "c"`}}},
		// An alternative that is meant explains itself; otherwise each says one thing.
		{`{"anyOf":[{"type":"string","minLength":3},{"type":"object","required":["a"]}]}`, map[string][]string{`"ab"`: {"must have at least 3 characters, has 2"}, `{}`: {`missing property "a"`}, `1`: {"must match one of the 2 alternatives of anyOf: (1) must be a string, not a number (2) must be an object, not a number"}}},
		{`{"properties":{"x":{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"k":{"const":"b"},"n":{"type":"string"}}}]}}}`, map[string][]string{
			`{"x":{"k":"a","n":"1"}}`: {"/x/n: must be an integer, not a string"},
			`{"x":{"k":"c","n":[]}}`:  {`/x: must match one of the 2 alternatives of oneOf: (1) /k: must be one of "a", not "c" (2) /k: must be one of "b", not "c"`},
		}},
		{`{"oneOf":[{"minimum":1},{"maximum":5}]}`, map[string][]string{`7`: nil, `3`: {"must match exactly one of the alternatives of oneOf, but matches alternatives 1 and 2"}}},
		{`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$anchor":"x","type":"array","items":{"$ref":"#x"}}}}`, map[string][]string{`[[],[[]]]`: nil, `[[],[1]]`: {"/1/0: must be an array, not a number"}}},
		{`{"$id":"https://example.com/root","$ref":"item","$defs":{"i":{"$id":"item","type":"integer"}}}`, map[string][]string{`1`: nil, `"a"`: {"must be an integer, not a string"}}},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, map[string][]string{`["a"]`: nil, `["a",1]`: {"/1: is not allowed"}}},
		{`{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, map[string][]string{`{"a":1}`: nil, `{"b":1}`: {"/b: is not allowed"}}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false,"dependencies":{"a":["b"]}}`, map[string][]string{`["a"]`: nil, `["a",1]`: {"has 1 item too many"}, `{"a":1}`: {`with property "a" there must be "b"`}}},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}],"dependentSchemas":{"a":{"required":["b"]}}}`, map[string][]string{`[1]`: {"/0: must be a string, not a number"}, `{"a":1}`: {`missing property "b"`}}},
		// Formats are annotations, also in draft-07.
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, map[string][]string{`"x"`: nil}},
		{`{"format":"ipv4","contentEncoding":"base64"}`, map[string][]string{`"%"`: nil}},
		// Where a schema has data, it is left alone.
		{`{"properties":{"format":{"type":"integer"}},"const":{"format":1},"default":{},"examples":[{}]}`, map[string][]string{`{"format":1}`: nil, `{"format":2}`: {`must be one of {"format":1}, not {"format":2}`}}},
		{`{"properties":{"properties":{"enum":[{},{"format":"x"}]}}}`, map[string][]string{`{"properties":{}}`: nil, `{"properties":{"format":"x"}}`: nil, `{"properties":{"format":"y"}}`: {`/properties: must be one of {}, {"format":"x"}, not {"format":"y"}`}}},
	} {
		v := mustCompile(t, c.schema)
		for doc, want := range c.docs {
			out, violations := v.Validate(check(t, doc))
			if got := texts(violations); !slices.Equal(got, want) {
				t.Errorf("%s\n%s\ngot  %q\nwant %q", c.schema, doc, got, want)
			}
			if (want == nil) != (string(out) == doc) {
				t.Errorf("%s: out is %q", doc, out)
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		name, schema, want string
	}{
		{"not JSON", `{"a":`, "schema: incomplete JSON"},
		{"duplicate member", `{"type":"object","type":"object"}`, "duplicate member"},
		{"no schema", `1`, "not valid against metaschema"},
		{"wrong type (F-23)", `{"properties":{"a":{"type":"strin"}}}`, "/properties/a/type"},
		{"wrong keyword value", `{"minLength":-1}`, "/minLength"},
		{"wrong format", `{"format":1}`, "/format"},
		{"wrong pattern", `{"pattern":"(?=a)"}`, "/pattern"},
		{"unknown dialect (F-23)", `{"$schema":"https://example.com/dialect"}`, `dialect "https://example.com/dialect" is not supported; supported are https://json-schema.org/draft/2020-12/schema (the default)`},
		{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#"}`, "is not supported"},
		{"dialect is no string", `{"$schema":1}`, "is not supported"},
		{"unknown dialect inside", `{"$defs":{"a":{"$id":"https://example.com/a","$schema":"https://example.com/dialect"}}}`, "nothing is fetched"},
		{"remote reference (F-24)", `{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, `"https://example.com/a.json": a reference must stay inside the schema; nothing is fetched`},
		{"relative reference (F-25)", `{"$ref":"other.json#/a"}`, `"other.json": a reference must stay inside the schema`},
		{"file reference", `{"$ref":"file:///etc/passwd"}`, "nothing is fetched"},
		{"reference to nowhere", `{"$ref":"#/$defs/a"}`, `"#/$defs/a" not found`},
		{"unknown anchor", `{"$ref":"#a"}`, "#a"},
		{"endless number", `{"properties":{"a":{"minimum":1e999999999}}}`, `schema at "/properties/a/minimum": must be a number of at most 400 digits`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := Compile([]byte(c.schema))
			if v != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "invalid/") {
				t.Errorf("the error shows the made-up address: %v", err)
			}
		})
	}
}

// F-26: what would take for ever is refused, and the validator is as good as before.
func TestCompiledWorkIsBounded(t *testing.T) {
	expression := mustCompile(t, `{"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[
		{"properties":{"op":{"const":"and"},"args":{"items":{"$ref":"#/$defs/e"}}},"required":["op","args"]},
		{"properties":{"op":{"const":"or"},"args":{"items":{"$ref":"#/$defs/e"}}},"required":["op","args"]},
		{"type":"string"}]}}}`)
	nested := func(depth int, leaf string) []byte {
		return check(t, strings.Repeat(`{"op":"and","args":[`, depth)+leaf+strings.Repeat(`]}`, depth))
	}
	const refusal = "checking this takes more work than is allowed; make it smaller or less deeply nested"
	if _, got := expression.Validate(nested(60, "{}")); !slices.Equal(texts(got), []string{refusal}) {
		t.Errorf("deep and wrong: %q", got)
	}
	if _, got := expression.Validate(nested(3, `"x"`)); got != nil {
		t.Errorf("shallow and right: %q", got)
	}
	// The same where a wrong document makes the schema right.
	hidden := mustCompile(t, `{"not":{"$ref":"#/$defs/e"},"$defs":{"e":{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#/$defs/e"}}},{"type":"object","properties":{"a":{"$ref":"#/$defs/e"}}}]}}}`)
	if _, got := hidden.Validate(check(t, strings.Repeat(`{"a":`, 60)+"1"+strings.Repeat("}", 60))); !slices.Equal(texts(got), []string{refusal}) {
		t.Errorf("under not: %q", got)
	}
	// And where the schema lies at a place that is none of the dialect's.
	odd := mustCompile(t, `{"$ref":"#/odd/e","odd":{"e":{"anyOf":[{"properties":{"a":{"$ref":"#/odd/e"}},"required":["b"]},{"properties":{"a":{"$ref":"#/odd/e"}},"required":["b"]}]}}}`)
	if _, got := odd.Validate(check(t, strings.Repeat(`{"a":`, 60)+"{}"+strings.Repeat("}", 60))); !slices.Equal(texts(got), []string{refusal}) {
		t.Errorf("at an unknown keyword: %q", got)
	}

	numbers := mustCompile(t, `{"items":{"minimum":1}}`)
	for _, n := range []string{"1e401", "1e-402", "1e999999999999", "1e-999999999999", strings.Repeat("7", 401), "0." + strings.Repeat("0", 500) + "1"} {
		if _, got := numbers.Validate(check(t, "[1,"+n+"]")); !slices.Equal(texts(got), []string{"/1: " + numberTooLong}) {
			t.Errorf("%.20s: %q", n, got)
		}
	}
	if _, got := numbers.Validate(check(t, "[1e300,"+strings.Repeat("7", 400)+"]")); got != nil {
		t.Errorf("numbers within the bound: %q", got)
	}
	if _, got := numbers.Validate(check(t, "["+strings.Repeat("1,", maxValues)+"1]")); len(got) != 1 || got[0].Message != "must hold at most 200000 values in all" {
		t.Errorf("too many values: %q", got)
	}
	if _, got := numbers.Validate(check(t, "["+strings.Repeat("1,", maxValues/2)+"1]")); got != nil {
		t.Errorf("many values: %q", got)
	}
	if _, got := numbers.Validate(check(t, "["+strings.Repeat("0,", 1000)+"1]")); len(got) != maxViolations+1 {
		t.Errorf("%d violations", len(got))
	}
	for _, v := range mustViolate(t, `{"additionalProperties":{"type":"string"}}`, fmt.Sprintf(`{%q:1}`, strings.Repeat("x", 5000))) {
		if len(v.String()) > 200 {
			t.Errorf("a violation of %d bytes", len(v.String()))
		}
	}
}

func mustViolate(tb testing.TB, schema, doc string) []Violation {
	tb.Helper()
	_, violations := mustCompile(tb, schema).Validate(check(tb, doc))
	if len(violations) == 0 {
		tb.Fatalf("%s accepts %s", schema, doc)
	}
	return violations
}

// The library walks maps; what a model reads must not change from call to call.
func TestCompiledOrder(t *testing.T) {
	schema := `{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"anyOf":[{"required":["x"],"properties":{"y":{"type":"integer"}}},{"required":["z"]}]},"c":{"minimum":5}}}`
	doc := `{"a":1,"b":{"y":"s"},"c":1,"d":1,"e":2,"f":3}`
	first := texts(mustViolate(t, schema, doc))
	for range 30 {
		if again := texts(mustViolate(t, schema, doc)); !slices.Equal(again, first) {
			t.Fatalf("%q\n%q", first, again)
		}
	}
}
