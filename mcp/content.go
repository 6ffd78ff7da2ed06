package mcp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Content is one block of a result or a message (F-12): *TextContent, *ImageContent,
// *AudioContent, *ResourceLink or *EmbeddedResource.
type Content interface {
	// AppendJSON appends the block as it stands on the wire.
	AppendJSON(dst []byte) ([]byte, error)
	content()
}

// TextContent is plain text.
type TextContent struct {
	Text        string
	Annotations *Annotations
	Meta        map[string]any
}

// ImageContent is an image; Data is the bytes, not their base64.
type ImageContent struct {
	Data        []byte
	MIMEType    string // required
	Annotations *Annotations
	Meta        map[string]any
}

// AudioContent is a sound; Data is the bytes, not their base64.
type AudioContent struct {
	Data        []byte
	MIMEType    string // required
	Annotations *Annotations
	Meta        map[string]any
}

// ResourceLink points to a resource that the client may read. It need not be listed.
type ResourceLink Resource

// EmbeddedResource carries the contents of a resource.
type EmbeddedResource struct {
	Resource    ResourceContents
	Annotations *Annotations
	Meta        map[string]any
}

// ResourceContents is text or a blob, never both (F-36).
type ResourceContents struct {
	URI, MIMEType string
	Text          *string
	Blob          []byte
	Meta          map[string]any
}

// TextResource is text contents at uri.
func TextResource(uri, mimeType, text string) ResourceContents {
	return ResourceContents{URI: uri, MIMEType: mimeType, Text: &text}
}

// BlobResource is binary contents at uri.
func BlobResource(uri, mimeType string, blob []byte) ResourceContents {
	if blob == nil {
		blob = []byte{} // an empty blob is one
	}
	return ResourceContents{URI: uri, MIMEType: mimeType, Blob: blob}
}

// PromptMessage is one message of a prompt; it has exactly one block (F-29).
type PromptMessage struct {
	Role    Role
	Content Content
}

func (*TextContent) content()      {}
func (*ImageContent) content()     {}
func (*AudioContent) content()     {}
func (*ResourceLink) content()     {}
func (*EmbeddedResource) content() {}

// AppendJSON implements Content.
func (c *TextContent) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"text","text":`...)
	dst = strictjson.AppendString(dst, c.Text)
	return appendEnd(dst, c.Annotations, c.Meta)
}

// AppendJSON implements Content.
func (c *ImageContent) AppendJSON(dst []byte) ([]byte, error) {
	return appendMedia(dst, "image", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

// AppendJSON implements Content.
func (c *AudioContent) AppendJSON(dst []byte) ([]byte, error) {
	return appendMedia(dst, "audio", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

// AppendJSON implements Content.
func (c *ResourceLink) AppendJSON(dst []byte) ([]byte, error) {
	if c.URI == "" || c.Name == "" {
		return dst, errors.New("a resource link needs a URI and a name")
	}
	b, err := strictjson.Marshal((*Resource)(c))
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":"resource_link",`...)
	return append(dst, b[1:]...), nil
}

// AppendJSON implements Content.
func (c *EmbeddedResource) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"type":"resource","resource":`...)
	dst, err := c.Resource.AppendJSON(dst)
	if err != nil {
		return dst, err
	}
	return appendEnd(dst, c.Annotations, c.Meta)
}

// AppendJSON appends the contents as they stand on the wire.
func (c *ResourceContents) AppendJSON(dst []byte) ([]byte, error) {
	if c.URI == "" {
		return dst, errors.New("resource contents need a URI")
	}
	if (c.Text != nil) == (c.Blob != nil) {
		return dst, errors.New("resource contents have text or a blob, one of them")
	}
	dst = append(dst, `{"uri":`...)
	dst = strictjson.AppendString(dst, c.URI)
	if c.MIMEType != "" {
		dst = append(dst, `,"mimeType":`...)
		dst = strictjson.AppendString(dst, c.MIMEType)
	}
	if c.Text != nil {
		dst = append(dst, `,"text":`...)
		dst = strictjson.AppendString(dst, *c.Text)
	} else {
		dst = append(dst, `,"blob":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, c.Blob)
		dst = append(dst, '"')
	}
	return appendEnd(dst, nil, c.Meta)
}

// AppendJSON appends the message as it stands on the wire.
func (m *PromptMessage) AppendJSON(dst []byte) ([]byte, error) {
	if m.Role != RoleUser && m.Role != RoleAssistant {
		return dst, fmt.Errorf("role %q of a prompt message is neither %q nor %q", m.Role, RoleUser, RoleAssistant)
	}
	if m.Content == nil {
		return dst, errors.New("a prompt message has no content")
	}
	if r, ok := m.Content.(*EmbeddedResource); ok && !isMediaType(r.Resource.MIMEType) { // F-31
		return dst, fmt.Errorf("a resource in a prompt needs a MIME type, not %q", r.Resource.MIMEType)
	}
	dst = append(dst, `{"role":"`...)
	dst = append(dst, m.Role...)
	dst = append(dst, `","content":`...)
	dst, err := m.Content.AppendJSON(dst)
	return append(dst, '}'), err
}

func appendMedia(dst []byte, kind string, data []byte, mimeType string, a *Annotations, meta map[string]any) ([]byte, error) {
	if !isMediaType(mimeType) {
		return dst, fmt.Errorf("%s content needs a MIME type, not %q", kind, mimeType)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","mimeType":`...)
	dst = strictjson.AppendString(dst, mimeType)
	return appendEnd(dst, a, meta)
}

// isMediaType reports whether a MIME type has the form type/subtype.
func isMediaType(s string) bool {
	_, _, err := mime.ParseMediaType(s)
	return err == nil && strings.Contains(s, "/")
}

// appendEnd closes an object after its optional annotations and _meta.
func appendEnd(dst []byte, a *Annotations, meta map[string]any) ([]byte, error) {
	if a != nil {
		b, err := strictjson.Marshal(a)
		if err != nil {
			return dst, err
		}
		dst = append(dst, `,"annotations":`...)
		dst = append(dst, b...)
	}
	if len(meta) > 0 {
		b, err := strictjson.Marshal(meta)
		if err != nil {
			return dst, err
		}
		dst = append(dst, `,"_meta":`...)
		dst = append(dst, b...)
	}
	return append(dst, '}'), nil
}
