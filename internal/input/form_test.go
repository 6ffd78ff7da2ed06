package input_test

import (
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

//
func TestCheckForm(t *testing.T) {
	field := func(f string) string { return `{"type":"object","properties":{"f":` + f + `}}` }
	for name, tt := range map[string]struct {
		schema string
		wrong  string // "": nothing
	}{
		"empty":                {`{"type":"object","properties":{}}`, ""},
		"a dialect":            {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{}}`, ""},
		"a string":             {field(`{"type":"string","title":"T","description":"D","minLength":1,"maxLength":2,"format":"email","default":"a"}`), ""},
		"a date":               {field(`{"type":"string","format":"date"}`), ""},
		"a number":             {field(`{"type":"number","minimum":0.5,"maximum":2,"default":1}`), ""},
		"an integer":           {field(`{"type":"integer","minimum":0}`), ""},
		"a boolean":            {field(`{"type":"boolean","default":true}`), ""},
		"a choice":             {field(`{"type":"string","enum":["a","b"]}`), ""},
		"a legacy choice":      {field(`{"type":"string","enum":["a"],"enumNames":["A"]}`), ""},
		"a titled choice":      {field(`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`), ""},
		"choices":              {field(`{"type":"array","items":{"type":"string","enum":["a"]},"minItems":1,"maxItems":2}`), ""},
		"titled choices":       {field(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`), ""},
		"required":             {`{"type":"object","properties":{"f":{"type":"string"}},"required":["f"]}`, ""},
		"no type":              {`{"properties":{}}`, `"type": "object"`},
		"an array":             {`{"type":"array","properties":{}}`, `"type": "object"`},
		"not an object":        {`[]`, `"type": "object"`},
		"no properties":        {`{"type":"object"}`, "has properties"},
		"additionalProperties": {`{"type":"object","properties":{},"additionalProperties":false}`, `no "additionalProperties"`},
		"a reference":          {field(`{"$ref":"#/x"}`), `field "f"`},
		"no field type":        {field(`{}`), "type must be"},
		"a field that is true": {field(`true`), "type must be"},
		"a nested object":      {field(`{"type":"object","properties":{}}`), "type must be"},
		"two types":            {field(`{"type":["string","null"]}`), "type must be"},
		"a pattern":            {field(`{"type":"string","pattern":"x"}`), `"pattern"`},
		"another format":       {field(`{"type":"string","format":"uuid"}`), "format must be one of date, date-time, email, uri"},
		"a number's enum":      {field(`{"type":"integer","enum":[1]}`), `"enum"`},
		"strings":              {field(`{"type":"array","items":{"type":"string"}}`), "items must be choices"},
		"untitled oneOf":       {field(`{"type":"string","oneOf":[{"const":"a"}]}`), "oneOf must be"},
		"oneOf is no array":    {field(`{"type":"string","oneOf":{}}`), "oneOf must be"},
		"required of nothing":  {`{"type":"object","properties":{},"required":["f"]}`, "which is no field"},
		"required, no array":   {`{"type":"object","properties":{},"required":"f"}`, "an array of names"},
	} {
		err := input.CheckForm([]byte(tt.schema))
		if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, tt.wrong)
		}
	}
}

// a number may be a fraction, whatever the generated schema of the protocol says.
func TestCheckAcceptsFractions(t *testing.T) {
	params := []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"number"}}}}`)
	violations, err := input.Check(mcp.MethodElicit, params, []byte(`{"action":"accept","content":{"n":0.5}}`))
	if err != nil || len(violations) > 0 {
		t.Errorf("%v %v", violations, err)
	}
}

func TestCheckFormats(t *testing.T) {
	for format, tt := range map[string]struct{ good, bad string }{
		"email":     {"a@example.com", "nobody"},
		"uri":       {"https://example.com/", "no uri"},
		"date":      {"2026-07-28", "2026-02-30"},
		"date-time": {"2026-07-28T10:00:00Z", "2026-07-28"},
	} {
		params := []byte(`{"requestedSchema":{"type":"object","properties":{"f":{"type":"string","format":"` + format + `"}}}}`)
		for text, want := range map[string]int{tt.good: 0, tt.bad: 1} {
			violations, err := input.Check(mcp.MethodElicit, params, []byte(`{"action":"accept","content":{"f":"`+text+`"}}`))
			if err != nil || len(violations) != want {
				t.Errorf("%s %q: %v %v", format, text, violations, err)
			}
		}
	}
}

// Whatever a client sends as an answer is judged without a panic.
func FuzzCheckShape(f *testing.F) {
	for _, seed := range []string{`{"action":"accept","content":{}}`, `{"roots":[{"uri":"file:///"}]}`, `{"role":"user","content":[],"model":""}`, `1`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if strictjson.Check([]byte(answer), 128) != nil {
			return
		}
		answer = string(strictjson.Trim([]byte(answer)))
		for _, method := range []string{mcp.MethodElicit, mcp.MethodSample, mcp.MethodRoots} {
			if input.CheckShape(method, []byte(answer)) == nil && !strings.HasPrefix(answer, "{") {
				t.Errorf("%s takes %q", method, answer)
			}
		}
	})
}
