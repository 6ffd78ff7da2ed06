package mctp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// embedded is a schema as a component of this name: what it refers to inside itself is below the
// component then. A schema that is a document of its own, by $id or by a dialect, stays as it
// is: its references count from where it begins. One with anchors becomes one: they would meet those of
// others.
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
	if members["$id"] == nil && (members["$schema"] != nil || anchored(members)) {
		members["$id"] = "urn:thaw:" + name // a dialect may only be told where a document begins
	}
	move(members, componentsPath+name)
	return members, nil
}

// anchored reports whether a schema names places in itself.
func anchored(schema any) bool {
	switch v := schema.(type) {
	case object:
		for name, value := range v {
			if _, text := value.(string); text && (name == "$anchor" || name == "$dynamicAnchor") || anchored(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, anchored)
	}
	return false
}

// move has the references of a schema to places in its document lead to those below to.
func move(schema any, to string) {
	members, ok := schema.(object)
	if !ok || members["$id"] != nil {
		return
	}
	for name, value := range members {
		switch name {
		case "$ref", "$dynamicRef":
			if ref, ok := value.(string); ok && (ref == "#" || strings.HasPrefix(ref, "#/")) {
				members[name] = to + ref[1:]
			}
		case "const", "enum", "default", "examples":
			// values, whatever they look like
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			if schemas, ok := value.(object); ok {
				for _, s := range schemas {
					move(s, to)
				}
			}
		default:
			if list, ok := value.([]any); ok {
				for _, s := range list {
					move(s, to)
				}
			} else {
				move(value, to)
			}
		}
	}
}
