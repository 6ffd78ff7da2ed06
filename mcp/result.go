package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// CallToolResult is what tools/call answers.
type CallToolResult struct {
	// Content may be empty; on the wire it is then [].
	Content []Content
	// StructuredContent is any JSON value. Nil is absent; "null" is a value (F-10).
	StructuredContent json.RawMessage
	// IsError marks a failure that the model should read (F-16).
	IsError bool
	Meta    map[string]any

	// encoded is the StructuredContent that StructuredResult made, which needs no second
	// check while it is still the one that is sent.
	encoded json.RawMessage
}

// StructuredResult is a result of v as structured content and, for clients that read only
// text, the same JSON as a block (F-11). Nil slices and maps are [] and {}. The error says
// that JSON cannot hold v.
func StructuredResult(v any) (*CallToolResult, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return &CallToolResult{Content: []Content{&TextContent{Text: string(b)}}, StructuredContent: b, encoded: b}, nil
}

// AppendMembers appends the members of the result without braces, resultType and
// _meta, which belong to whoever sends it.
func (r *CallToolResult) AppendMembers(dst []byte) ([]byte, error) {
	dst = append(dst, `"content":[`...)
	for i, c := range r.Content {
		if c == nil {
			return dst, errors.New("a content block is nil")
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = c.AppendJSON(dst); err != nil {
			return dst, fmt.Errorf("content block %d: %w", i, err)
		}
	}
	dst = append(dst, ']')
	if r.StructuredContent != nil {
		dst = append(dst, `,"structuredContent":`...)
		var err error
		if len(r.encoded) > 0 && len(r.encoded) == len(r.StructuredContent) && &r.encoded[0] == &r.StructuredContent[0] {
			dst = append(dst, r.encoded...)
		} else if dst, err = strictjson.AppendCompact(dst, r.StructuredContent); err != nil {
			return dst, fmt.Errorf("structured content is not valid JSON: %w", err)
		}
	}
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return dst, nil
}

// MarshalJSON writes a complete result.
func (r CallToolResult) MarshalJSON() ([]byte, error) {
	dst, err := r.AppendMembers([]byte(`{"resultType":"complete",`))
	if err != nil {
		return nil, err
	}
	return appendEnd(dst, nil, r.Meta)
}

// UnmarshalJSON reads a complete result.
func (r *CallToolResult) UnmarshalJSON(b []byte) error {
	var wire struct {
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		IsError           bool              `json:"isError"`
		Meta              map[string]any    `json:"_meta"`
	}
	if err := strictjson.Unmarshal(b, &wire); err != nil {
		return err
	}
	*r = CallToolResult{StructuredContent: wire.StructuredContent, IsError: wire.IsError, Meta: wire.Meta}
	for i, raw := range wire.Content {
		c, err := UnmarshalContent(raw)
		if err != nil {
			return fmt.Errorf("content block %d: %w", i, err)
		}
		r.Content = append(r.Content, c)
	}
	return nil
}

// UnmarshalContent reads one content block.
func UnmarshalContent(b []byte) (Content, error) {
	var wire struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Data        string          `json:"data"`
		MIMEType    string          `json:"mimeType"`
		Resource    json.RawMessage `json:"resource"`
		Annotations *Annotations    `json:"annotations"`
		Meta        map[string]any  `json:"_meta"`
	}
	if err := strictjson.Unmarshal(b, &wire); err != nil {
		return nil, err
	}
	switch wire.Type {
	case "text":
		return &TextContent{wire.Text, wire.Annotations, wire.Meta}, nil
	case "image", "audio":
		data, err := base64.StdEncoding.Strict().DecodeString(wire.Data)
		if err != nil {
			return nil, fmt.Errorf("data of %s content is not base64", wire.Type)
		}
		if wire.Type == "image" {
			return &ImageContent{data, wire.MIMEType, wire.Annotations, wire.Meta}, nil
		}
		return &AudioContent{data, wire.MIMEType, wire.Annotations, wire.Meta}, nil
	case "resource_link":
		link := new(ResourceLink)
		return link, strictjson.Unmarshal(b, (*Resource)(link))
	case "resource":
		c := &EmbeddedResource{Annotations: wire.Annotations, Meta: wire.Meta}
		return c, c.Resource.UnmarshalJSON(wire.Resource)
	}
	return nil, fmt.Errorf("content type %q is none of text, image, audio, resource_link, resource", wire.Type)
}

// MarshalJSON writes the contents.
func (c ResourceContents) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil) }

// UnmarshalJSON reads the contents.
func (c *ResourceContents) UnmarshalJSON(b []byte) error {
	var wire struct {
		URI      string         `json:"uri"`
		MIMEType string         `json:"mimeType"`
		Text     *string        `json:"text"`
		Blob     *string        `json:"blob"`
		Meta     map[string]any `json:"_meta"`
	}
	if err := strictjson.Unmarshal(b, &wire); err != nil {
		return err
	}
	*c = ResourceContents{URI: wire.URI, MIMEType: wire.MIMEType, Text: wire.Text, Meta: wire.Meta}
	if wire.Blob == nil {
		return nil
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(*wire.Blob)
	if err != nil {
		return errors.New("the blob of resource contents is not base64")
	}
	c.Blob = blob
	return nil
}

// MarshalJSON writes the message.
func (m PromptMessage) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// UnmarshalJSON reads the message.
func (m *PromptMessage) UnmarshalJSON(b []byte) error {
	var wire struct {
		Role    Role            `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := strictjson.Unmarshal(b, &wire); err != nil {
		return err
	}
	c, err := UnmarshalContent(wire.Content)
	if err != nil {
		return err
	}
	m.Role, m.Content = wire.Role, c
	return nil
}
