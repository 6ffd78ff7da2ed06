package mcp

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// ClientCapabilities is what one request declared (B-29): an absent member is a lack,
// whatever earlier requests said. Raw is a JSON object or empty.
type ClientCapabilities struct{ Raw json.RawMessage }

// Has reports whether the capability at path is declared, for example
// Has("sampling") or Has("elicitation", "url"). Declared means an object.
func (c ClientCapabilities) Has(path ...string) bool {
	at := []byte(c.Raw)
	for _, name := range path {
		if strictjson.Kind(at) != '{' {
			return false
		}
		at = strictjson.Member(at, name)
	}
	return strictjson.Kind(at) == '{'
}

// MarshalJSON writes Raw, or {} if empty.
func (c ClientCapabilities) MarshalJSON() ([]byte, error) {
	if len(c.Raw) == 0 {
		return []byte("{}"), nil
	}
	return c.Raw, nil
}

// UnmarshalJSON keeps the object as it stands.
func (c *ClientCapabilities) UnmarshalJSON(b []byte) error {
	if strictjson.Kind(strictjson.Trim(b)) != '{' {
		return errors.New("capabilities are no object")
	}
	c.Raw = bytes.Clone(b)
	return nil
}

// ServerCapabilities is what server/discover advertises (V-09, V-10).
type ServerCapabilities struct {
	Tools       *ListCapability            `json:"tools,omitempty"`
	Prompts     *ListCapability            `json:"prompts,omitempty"`
	Resources   *ResourceCapability        `json:"resources,omitempty"`
	Completions *struct{}                  `json:"completions,omitempty"`
	Logging     *struct{}                  `json:"logging,omitempty"`
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`
}

// ListCapability says whether changes of a list are notified.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
}

// ResourceCapability adds whether changes of one resource are.
type ResourceCapability struct {
	ListChanged bool `json:"listChanged,omitempty"`
	Subscribe   bool `json:"subscribe,omitempty"`
}
