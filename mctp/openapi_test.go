package mctp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var api = API{Title: "Tools", Version: "1", Tools: []Tool{
	{Name: "tree", Title: "Trees", Description: "Grows", Scopes: []string{"trees"},
		Input: json.RawMessage(`{"type":"object","properties":{"root":{"$ref":"#/$defs/node"},"$ref":{"type":"string"},"list":{"type":"array","items":{"$ref":"#"},"default":{"$ref":"#/$defs/node"}}},
			"$defs":{"node":{"type":"object","properties":{"value":{"type":"integer","maximum":9007199254740993},"next":{"$ref":"#/$defs/node"}},"required":["value"]}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
	{Name: "a.b", Input: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","allOf":[{"$ref":"#/definitions/x"}],"definitions":{"x":{"required":["x"]}}}`),
		Output: json.RawMessage(`{"type":"array"}`)},
	{Name: "old", Input: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"x":{"$ref":"#/definitions/x"}},"definitions":{"x":{"type":"string"}}}`)},
	{Name: "anchor1", Input: json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#item"}},"$defs":{"i":{"$anchor":"item","type":"string"}}}`)},
	{Name: "anchor2", Input: json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#item"}},"$defs":{"i":{"$anchor":"item","type":"integer"}}}`)},
	{Name: "own", Input: json.RawMessage(`{"$id":"https://x.example/own","type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`)},
}}

// document is the OpenAPI document, and a compiler that finds schemas in it.
func document(t *testing.T, a API) (text []byte, schemaAt func(pointer string) *jsonschema.Schema) {
	t.Helper()
	made, err := a.Document()
	if err != nil {
		t.Fatal(err)
	}
	text = made.At(nil, "https://x.example/base")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc:openapi", doc); err != nil {
		t.Fatal(err)
	}
	return text, func(pointer string) *jsonschema.Schema {
		s, err := c.Compile("doc:openapi#" + pointer)
		if err != nil {
			t.Fatalf("%s: %v", pointer, err)
		}
		return s
	}
}

// A tool's schema judges as it does alone, wherever its references lead.
func TestEmbeddedSchemas(t *testing.T) {
	_, schemaAt := document(t, api)
	for _, c := range []struct {
		component, value string
		valid            bool
	}{
		{"tree.input", `{"root":{"value":1,"next":{"value":2}}}`, true},
		{"tree.input", `{"root":{"value":1,"next":{}}}`, false},
		{"tree.input", `{"root":{"value":9007199254740994}}`, false},
		{"tree.input", `{"$ref":7}`, false},
		{"tree.input", `{"list":[{"root":{"value":1}}]}`, true},
		{"tree.input", `{"list":[{"root":{}}]}`, false},
		{"a.b.input", `{"x":1}`, true},
		{"a.b.input", `{}`, false},
		{"old.input", `{"x":"s"}`, true},
		{"old.input", `{"x":1}`, false},
		{"own.input", `{"x":1}`, false},
		{"anchor1.input", `{"x":"s"}`, true}, // names of places count where they stand
		{"anchor1.input", `{"x":1}`, false},
		{"anchor2.input", `{"x":1}`, true},
		{"anchor2.input", `{"x":"s"}`, false},
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(c.value))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaAt("/components/schemas/" + c.component).Validate(value); (err == nil) != c.valid {
			t.Errorf("%s of %s: %v", c.component, c.value, err)
		}
	}
}

// What the result of a tool without an object looks like is what Result makes of it.
func TestDescribedResults(t *testing.T) {
	_, schemaAt := document(t, api)
	for _, c := range []struct {
		tool, call string
		valid      bool
	}{
		{"tree", `{"content":[],"structuredContent":{"n":1}}`, true},
		{"tree", `{"content":[],"structuredContent":{}}`, false},
		{"a.b", `{"content":[],"structuredContent":[1]}`, true},
		{"a.b", `{"content":[],"structuredContent":"x"}`, false},
		{"old", `{"content":[]}`, true},
	} {
		answer := Task{ID: id, Status: Completed, Created: created}.AppendResult(nil, Result([]byte(c.call)))
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
		if err != nil {
			t.Fatal(err)
		}
		pointer := "/paths/~1" + c.tool + "~1%7Bid%7D~1result/get/responses/200/content/application~1json/schema"
		if err := schemaAt(pointer).Validate(value); (err == nil) != c.valid {
			t.Errorf("%s: %s: %v", c.tool, answer, err)
		}
	}
}

func TestOpenAPI(t *testing.T) {
	first, _ := document(t, api)
	second, _ := document(t, api)
	if !bytes.Equal(first, second) {
		t.Error("two documents differ")
	}
	if bytes.Contains(first, []byte(`"security"`)) {
		t.Error("a server without credentials asks for some")
	}
	api := api
	api.Bearer = true
	text, _ := document(t, api)
	for _, want := range []string{`"openapi":"3.1.0"`, `"servers":[{"url":"https://x.example/base"}]`, `"security":[{"bearer":["trees"]}]`, `"security":[{"bearer":[]}]`,
		`"operationId":"create_tree"`, `"operationId":"head_a.b"`, `"summary":"Trees"`, `"description":"Grows"`, `"Idempotency-Key"`, `"X-Task-Status"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if _, err := (API{Tools: []Tool{{Name: "x", Input: json.RawMessage(`{`)}}}).Document(); err == nil || !strings.Contains(err.Error(), "x.input") {
		t.Errorf("a schema that is no JSON: %v", err)
	}
	always, _ := document(t, API{Tools: []Tool{{Name: "x", Input: json.RawMessage(`true`)}}})
	if !bytes.Contains(always, []byte(`"x.input":true`)) {
		t.Errorf("%s", always)
	}
}
