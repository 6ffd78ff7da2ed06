package mctp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// embedded is a schema as a component of this name: what it refers to inside itself is below the
// component then. A schema that is a document of its own, by $id or by a dialect, stays as it
// is: its references count from where it begins.
func embedded(schema json.RawMessage, name string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber() // as it was written
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("mctp: schema %s: %w", name, err)
	}
	members, ok := value.(object)
	if !ok {
		return value, nil // true or false
	}
	if members["$schema"] == dialect { // which is that of OpenAPI 3.1
		delete(members, "$schema")
	}
	if members["$schema"] != nil && members["$id"] == nil {
		members["$id"] = "urn:thaw:" + name // a dialect may only be told where a document begins
	}
	move(members, componentsPath+name, "_"+name+".")
	return members, nil
}

// move has the references of a schema to places in its document lead to those below to. Places that
// have names of their own are called prefix and that: two schemas may use one name.
func move(schema any, to, prefix string) {
	members, ok := schema.(object)
	if !ok || members["$id"] != nil {
		return
	}
	for name, value := range members {
		switch name {
		case "$ref", "$dynamicRef":
			ref, ok := value.(string)
			switch {
			case !ok || !strings.HasPrefix(ref, "#"):
			case ref == "#" || ref[1] == '/':
				members[name] = to + ref[1:]
			default:
				members[name] = "#" + prefix + ref[1:]
			}
		case "$anchor", "$dynamicAnchor":
			if anchor, ok := value.(string); ok {
				members[name] = prefix + anchor
			}
		case "const", "enum", "default", "examples":
			// values, whatever they look like
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if schemas, ok := value.(object); ok {
				for _, s := range schemas {
					move(s, to, prefix)
				}
			}
		default:
			if list, ok := value.([]any); ok {
				for _, s := range list {
					move(s, to, prefix)
				}
			} else {
				move(value, to, prefix)
			}
		}
	}
}
