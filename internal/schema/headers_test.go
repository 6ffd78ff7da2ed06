package schema

import (
	"reflect"
	"strings"
	"testing"
)

func TestHeadersOf(t *testing.T) {
	got, err := HeadersOf([]byte(` {"type":"object","x-other":1,"properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"x-mcp-header":{"type":"string","default":{"x-mcp-header":"data"},"enum":[{"x-mcp-header":1}],"const":{"x-mcp-header":2},"examples":[{"x-mcp-header":3}]},
		"a/b":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"!#$%&'*+-.^_` + "`" + `|~09azAZ"},"on":{"type":"boolean","x-mcp-header":"On"}}}
	},"$defs":{"x":{"type":"string"}}} `))
	want := []Header{
		{"Region", []string{"region"}, KindString},
		{"!#$%&'*+-.^_`|~09azAZ", []string{"a/b", "n"}, KindInteger},
		{"On", []string{"a/b", "on"}, KindBoolean},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, none := range []string{`{}`, `true`, `{"type":"object","properties":{"a":true}}`} {
		if got, err := HeadersOf([]byte(none)); got != nil || err != nil {
			t.Errorf("%s: %v, %v", none, got, err)
		}
	}
}

// M-15 to M-17: each case is a schema that a client would drop without a word.
func TestHeadersOfErrors(t *testing.T) {
	property := func(s string) string { return `{"type":"object","properties":{"p":` + s + `}}` }
	const good = `{"type":"string","x-mcp-header":"P"}`
	for _, c := range []struct {
		name, schema, want string
	}{
		{"not JSON", `{`, "incomplete JSON"},
		{"empty (M-15)", property(`{"type":"string","x-mcp-header":""}`), `schema at "/properties/p": x-mcp-header: the name is empty (M-15)`},
		{"space (M-15)", property(`{"type":"string","x-mcp-header":"a b"}`), "(M-15)"},
		{"control character (M-15)", property(`{"type":"string","x-mcp-header":"a\n"}`), "(M-15)"},
		{"colon (M-15)", property(`{"type":"string","x-mcp-header":"a:b"}`), "(M-15)"},
		{"not a string (M-15)", property(`{"type":"string","x-mcp-header":1}`), "must be a string, the name of the header (M-15)"},
		{"twice (M-15)", `{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}`, `"x" is the name at both /a and /b; names differ in more than case (M-15)`},
		{"number (M-16)", property(`{"type":"number","x-mcp-header":"P"}`), "the type must be one of string, integer, boolean, and nothing beside it (M-16)"},
		{"object (M-16)", property(`{"type":"object","x-mcp-header":"P"}`), "(M-16)"},
		{"array (M-16)", property(`{"type":"array","x-mcp-header":"P"}`), "(M-16)"},
		{"null (M-16)", property(`{"type":"null","x-mcp-header":"P"}`), "(M-16)"},
		{"or null (M-16)", property(`{"type":["string","null"],"x-mcp-header":"P"}`), "(M-16)"},
		{"no type (M-16)", property(`{"enum":["a"],"x-mcp-header":"P"}`), "(M-16)"},
		{"root (M-17)", `{"type":"string","x-mcp-header":"P"}`, `schema at "": x-mcp-header: only properties that properties keywords alone lead to may have it (M-17)`},
		{"items (M-17)", property(`{"items":` + good + `}`), `schema at "/properties/p/items": x-mcp-header: only properties`},
		{"properties under items (M-17)", property(`{"items":{"properties":{"q":` + good + `}}}`), "(M-17)"},
		{"items of draft-07 (M-17)", property(`{"items":[` + good + `]}`), `"/properties/p/items/0"`},
		{"prefixItems (M-17)", property(`{"prefixItems":[` + good + `]}`), "(M-17)"},
		{"oneOf (M-17)", property(`{"oneOf":[` + good + `]}`), `"/properties/p/oneOf/0"`},
		{"anyOf (M-17)", `{"anyOf":[` + property(good) + `]}`, "(M-17)"},
		{"allOf (M-17)", `{"allOf":[` + property(good) + `]}`, "(M-17)"},
		{"not (M-17)", `{"not":` + property(good) + `}`, "(M-17)"},
		{"if (M-17)", `{"if":` + property(good) + `}`, "(M-17)"},
		{"then (M-17)", `{"then":` + property(good) + `}`, "(M-17)"},
		{"else (M-17)", `{"else":` + property(good) + `}`, "(M-17)"},
		{"$defs (M-17)", `{"$defs":{"a":` + property(good) + `}}`, `"/$defs/a/properties/p"`},
		{"definitions (M-17)", `{"definitions":{"a":` + good + `}}`, "(M-17)"},
		{"additionalProperties (M-17)", `{"additionalProperties":` + good + `}`, "(M-17)"},
		{"patternProperties (M-17)", `{"patternProperties":{"a":` + good + `}}`, "(M-17)"},
		{"dependentSchemas (M-17)", `{"dependentSchemas":{"a":` + property(good) + `}}`, "(M-17)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := HeadersOf([]byte(c.schema)); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
	_, err := HeadersOf([]byte(`{"properties":{"a":{"type":"number","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":""}}}`))
	if err == nil || !strings.Contains(err.Error(), "/properties/a") || !strings.Contains(err.Error(), "/properties/b") {
		t.Errorf("not all errors are reported: %v", err)
	}
}

func TestCheckInputRoot(t *testing.T) {
	for schema, ok := range map[string]bool{
		`{"type":"object"}`: true, ` {"$schema":"x","type":"object","allOf":[]} `: true,
		`{}`: false, `true`: false, `null`: false, `[]`: false, `{"type":"string"}`: false, `{"type":["object"]}`: false, `{"type":["object","null"]}`: false, `{`: false,
		`{"Type":"object"}`: false, `{"type":"object","type":"object"}`: false,
	} {
		if err := CheckInputRoot([]byte(schema)); (err == nil) != ok {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
