package cases

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestToolsAreAsDescribed holds the fixture's tools against the schemas that the cases
// count on. What says nothing may be there or not.
func TestToolsAreAsDescribed(t *testing.T) {
	d := loadFile(t)
	s := newStage(t, &expansion{d: d}, production{})
	served := map[string]jsontext.Value{}
	for _, entry := range listedTools(t, s, s.http) {
		served[unquoted(at(entry, "name"))] = at(entry, "inputSchema")
	}
	for name, tool := range d.Common.Tools {
		if tool.Remark != "" {
			continue
		}
		described, err := new(encoder).value(nil, &tool.Input)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := plainSchema(t, described), plainSchema(t, served[name]); !reflect.DeepEqual(got, want) {
			t.Errorf("tool %s has the schema %s, want %s", name, served[name], described)
		}
	}
}

// plainSchema is a schema without the members that say nothing.
func plainSchema(t *testing.T, schema jsontext.Value) map[string]any {
	t.Helper()
	if schema == nil {
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(schema, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "$schema")
	if properties, ok := m["properties"].(map[string]any); ok && len(properties) == 0 {
		delete(m, "properties")
	}
	return m
}
