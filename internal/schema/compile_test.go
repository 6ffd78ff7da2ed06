package schema

import (
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
			`{"a":1,"c":2}`:      {`unknown property "c"; allowed are "a", "b"`},
			`{"a":1.5,"b":null}`: {"/a: must be an integer, without a fraction", `missing property "c"`},
			`{"A":1,"b":true}`:   {`unknown property "A"; did you mean "a"? Names are case-sensitive`, "/b: must be null or a string, not a boolean", `missing property "a"`, `missing property "c"`},
			`[]`:                 {"must be an object, not an array"},
		}},
		{`{"items":{"type":"integer"}}`, map[string][]string{`[1,2.0,1e2]`: nil, `[1,"a",null]`: {"/1: must be an integer, not a string", "/2: must be an integer, not null"}}},
		{`{"minLength":2,"maxLength":3,"pattern":"^é"}`, map[string][]string{`"é😀"`: nil, `"é"`: {"must have at least 2 characters, has 1"}, `"abcd"`: {"must have at most 3 characters, has 4"}, `1`: nil}},
		// Numbers are exact (B-29).
		{`{"minimum":9007199254740993,"maximum":9007199254740993}`, map[string][]string{`9007199254740993`: nil, `9007199254740992`: {"must be at least 9007199254740993"}, `9007199254740994.0`: {"must be at most 9007199254740993"}}},
		{`{"const":9007199254740993}`, map[string][]string{`9007199254740993.0`: nil, `9007199254740992`: {"must be one of 9007199254740993, not 9007199254740992"}}},
		{`{"multipleOf":0.01}`, map[string][]string{`4.35`: nil, `1e2`: nil, `0.015`: {"must be a multiple of 0.01"}}},
		{`{"exclusiveMinimum":0.1,"exclusiveMaximum":1}`, map[string][]string{`0.5`: nil, `0.1`: {"must be more than 0.1"}, `1.0`: {"must be less than 1"}}},
		{`{"enum":["a",1,null,{"b":[1.0]}]}`, map[string][]string{`"a"`: nil, `{"b":[1]}`: nil, `"c"`: {`must be one of "a", 1, null, {"b":[1.0]}`}, `"` + strings.Repeat("x", 50) + `"`: {`must be one of "a", 1, null, {"b":[1.0]}`}}},
		{`{"minItems":1,"maxItems":2,"uniqueItems":true}`, map[string][]string{`[1]`: nil, `[]`: {"must have at least 1 item, has 0"}, `[1,1.0,2]`: {"must have at most 2 items, has 3", "must not have equal items, but items 0 and 1 are"}}},
		{`{"minProperties":1,"maxProperties":1}`, map[string][]string{`{}`: {"must have at least 1 property, has 0"}, `{"a":1,"b":2}`: {"must have at most 1 property, has 2"}}},
		{`{"properties":{"a":{"propertyNames":{"pattern":"^x","maxLength":2}}}}`, map[string][]string{`{"a":{"x":1}}`: nil, `{"a":{"y":1},"b":2}`: {`/a: property name "y" must match the pattern ^x`}}},
		{`{"contains":{"type":"string"}}`, map[string][]string{`[1,"a"]`: nil, `[1]`: {"must have at least 1 item of the kind that contains describes, has 0"}}},
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
			`{"x":{"k":"c","n":[]}}`:  {`/x: must match one of the 2 alternatives of oneOf: (1) /k: must be one of "a" (2) /k: must be one of "b"`},
		}},
		{`{"oneOf":[{"minimum":1},{"maximum":5}]}`, map[string][]string{`7`: nil, `3`: {"must match exactly one of the alternatives of oneOf, but matches alternatives 1 and 2"}}},
		{`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"$anchor":"x","type":"array","items":{"$ref":"#x"}}}}`, map[string][]string{`[[],[[]]]`: nil, `[[],[1]]`: {"/1/0: must be an array, not a number"}}},
		{`{"$id":"https://example.com/root","$ref":"item","$defs":{"i":{"$id":"item","type":"integer"}}}`, map[string][]string{`1`: nil, `"a"`: {"must be an integer, not a string"}}},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, map[string][]string{`["a"]`: nil, `["a",1,2]`: {"must have at most 1 item, has 3"}}},
		{`{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, map[string][]string{`{"a":1}`: nil, `{"b":1}`: {`unknown property "b"`}}},
		{`{"prefixItems":[true],"unevaluatedItems":false}`, map[string][]string{`[1]`: nil, `[1,2]`: {"item 1 is one too many: no rule allows it"}}},
		{`{"patternProperties":{"^x-":true},"properties":{"a":true},"additionalProperties":false}`, map[string][]string{`{"x-1":1,"a":2}`: nil, `{"b":1}`: {`unknown property "b"; allowed are "a", and those that match ^x-`}}},
		{`{"additionalProperties":false,"patternProperties":{"^x-":{"type":"null"}}}`, map[string][]string{`{"b":1,"x-":0}`: {`unknown property "b"; allowed are those that match ^x-`, "/x-: must be null, not a number"}}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false,"dependencies":{"a":["b"]}}`, map[string][]string{`["a"]`: nil, `["a",1]`: {"must have at most 1 item, has 2"}, `{"a":1}`: {`with property "a" there must be "b"`}}},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, map[string][]string{`{"a":1}`: {`missing property "b"`}, `{}`: nil}},
		// Formats are annotations, also in draft-07.
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, map[string][]string{`"x"`: nil}},
		{`{"format":"ipv4","contentEncoding":"base64"}`, map[string][]string{`"%"`: nil}},
		// Where a schema has data, it is left alone.
		{`{"properties":{"format":{"type":"integer"}},"const":{"format":1},"default":{},"examples":[{}]}`, map[string][]string{`{"format":1}`: nil, `{"format":2}`: {`must be one of {"format":1}`}}},
		{`{"properties":{"properties":{"enum":[{},{"format":"x"}]}}}`, map[string][]string{`{"properties":{}}`: nil, `{"properties":{"format":"x"}}`: nil, `{"properties":{"format":"y"}}`: {`/properties: must be one of {}, {"format":"x"}`}}},
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
		{"no schema", `1`, `schema at "": a schema is an object or a boolean, not a number`},
		{"no schema inside", `{"items":{"not":[]}}`, `schema at "/items/not": a schema is an object or a boolean, not an array`},
		{"wrong type (F-23)", `{"properties":{"a":{"type":"strin"}}}`, `schema at "/properties/a/type": type is one or more of null, boolean, object, array, number, string, integer`},
		{"a type twice", `{"type":["null","null"]}`, `schema at "/type/1": this type is there twice`},
		{"no types", `{"type":[]}`, "type names at least one type"},
		{"negative count", `{"minLength":-1}`, `schema at "/minLength": minLength is a non-negative integer`},
		{"fractional count", `{"maxItems":1.5}`, `schema at "/maxItems": maxItems is a non-negative integer`},
		{"negative huge count", `{"maxItems":-1e30}`, `schema at "/maxItems": maxItems is a non-negative integer`},
		{"limit is no number", `{"minimum":"1"}`, `schema at "/minimum": minimum is a number`},
		{"zero divisor", `{"multipleOf":0}`, "multipleOf is a number above 0 of at most 19 digits"},
		{"long divisor", `{"multipleOf":1.0000000000000000001}`, "multipleOf is a number above 0 of at most 19 digits"},
		{"endless divisor", `{"multipleOf":1e1000000000000}`, "multipleOf is a number above 0 of at most 19 digits"},
		{"wrong format", `{"format":1}`, `schema at "/format": format is a string`},
		{"wrong pattern", `{"pattern":"(?=a)"}`, `schema at "/pattern": not a regular expression in RE2 syntax`},
		{"wrong property pattern", `{"patternProperties":{"(":{}}}`, `schema at "/patternProperties/(": not a regular expression in RE2 syntax`},
		{"required twice", `{"required":["a","a"]}`, `schema at "/required/1": these are names of properties`},
		{"properties is no object", `{"properties":[]}`, `schema at "/properties": properties is an object of schemas`},
		{"enum is no array", `{"enum":{}}`, `schema at "/enum": enum is an array`},
		{"no alternatives", `{"anyOf":[]}`, `schema at "/anyOf": anyOf is a list of at least one schema`},
		{"old items", `{"items":[{}]}`, `schema at "/items": items is one schema; for one schema a position use prefixItems`},
		{"all that is wrong", `{"minLength":"1","maxLength":[]}`, "schema at \"/minLength\": minLength is a non-negative integer\nschema at \"/maxLength\": maxLength is a non-negative integer"},
		{"unknown dialect (F-23)", `{"$schema":"https://example.com/dialect"}`, `schema: dialect "https://example.com/dialect" is not supported; supported are https://json-schema.org/draft/2020-12/schema (the default) and http://json-schema.org/draft-07/schema`},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema"}`, `dialect "https://json-schema.org/draft/2019-09/schema" is not supported`},
		{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#"}`, "is not supported"},
		{"dialect is no string", `{"$schema":1}`, "is not supported"},
		{"another dialect inside", `{"$defs":{"a":{"$id":"https://example.com/a","$schema":"http://json-schema.org/draft-07/schema#"}}}`, `schema at "/$defs/a/$schema": every $schema has to name the dialect of the root`},
		{"remote reference (F-24)", `{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`, `schema at "/properties/a/$ref": "https://example.com/a.json" leads outside this schema; references are never fetched, so put what it means under $defs`},
		{"relative reference (F-25)", `{"$ref":"other.json#/a"}`, `"other.json#/a" leads outside this schema`},
		{"file reference", `{"$ref":"file:///etc/passwd"}`, "leads outside this schema"},
		{"reference to the meta-schema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "leads outside this schema"},
		{"reference to nowhere", `{"$ref":"#/$defs/a"}`, `schema at "/$ref": "#/$defs/a" leads nowhere`},
		{"reference into a scalar", `{"title":"x","$ref":"#/title/0"}`, "leads nowhere"},
		{"reference to no schema", `{"title":"x","$ref":"#/title"}`, `schema at "/title": a schema is an object or a boolean, not a string`},
		{"reference is no string", `{"$ref":1}`, `schema at "/$ref": a reference is a URI reference`},
		{"unknown anchor", `{"$ref":"#a"}`, `schema at "/$ref": no schema has the anchor of "#a"`},
		{"anchor twice", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, `the anchor "x" is there twice`},
		{"identifier twice", `{"$defs":{"a":{"$id":"https://example.com/x"},"b":{"$id":"https://example.com/x"}}}`, `the identifier "https://example.com/x" is there twice`},
		{"loop", `{"$ref":"#"}`, "the schema refers to itself without going down to a property or item"},
		{"loop of two", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"if":{"not":{"$ref":"#"}}}}}`, "the schema refers to itself without going down to a property or item"},
		{"too deep", strings.Repeat(`{"not":`, 200) + "true" + strings.Repeat("}", 200), "deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := Compile([]byte(c.schema))
			if v != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "schema:/") {
				t.Errorf("the error shows the made-up address: %v", err)
			}
		})
	}
}
