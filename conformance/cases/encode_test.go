package cases

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// encoder writes YAML nodes as JSON: members in their order, number tokens as they stand,
// placeholders replaced.
type encoder struct {
	meta []byte            // stands for $META
	text map[string]string // stand for placeholders inside strings: "$JWT"
}

// absent is the text that leaves a member out.
const absent = "$ABSENT"

func isAbsent(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Value == absent }

func isNull(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// value appends n.
func (e *encoder) value(b []byte, n *yaml.Node) ([]byte, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return e.scalar(b, n)
	case yaml.SequenceNode:
		b = append(b, '[')
		var err error
		for i, item := range n.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = e.value(b, item); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case yaml.MappingNode:
		b = append(b, '{')
		first := true
		err := eachMember(n, func(key, value *yaml.Node) (err error) {
			if isAbsent(value) {
				return nil
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			if b, err = jsontext.AppendQuote(b, key.Value); err != nil {
				return err
			}
			b, err = e.value(append(b, ':'), value)
			return err
		})
		return append(b, '}'), err
	}
	return nil, fmt.Errorf("line %d: no JSON can stand for this", n.Line)
}

func (e *encoder) scalar(b []byte, n *yaml.Node) ([]byte, error) {
	switch n.ShortTag() {
	case "!!null":
		return append(b, "null"...), nil
	case "!!str":
		if n.Value == "$META" {
			if e.meta == nil {
				return nil, fmt.Errorf("line %d: $META has no meaning here", n.Line)
			}
			return append(b, e.meta...), nil
		}
		s, err := e.replace(n.Value)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, err)
		}
		return jsontext.AppendQuote(b, s)
	case "!!int", "!!float", "!!bool":
		if !jsontext.Value(n.Value).IsValid() {
			return nil, fmt.Errorf("line %d: %s is no JSON", n.Line, n.Value)
		}
		return append(b, n.Value...), nil
	}
	return nil, fmt.Errorf("line %d: no JSON can stand for %s %s", n.Line, n.ShortTag(), n.Value)
}

// replace puts in the placeholders within a text. One that nothing stands for is an error.
func (e *encoder) replace(s string) (string, error) {
	for name, value := range e.text {
		s = strings.ReplaceAll(s, name, value)
	}
	if i := strings.IndexByte(s, '$'); i >= 0 && i+1 < len(s) && 'A' <= s[i+1] && s[i+1] <= 'Z' {
		return "", fmt.Errorf("%q has a placeholder that nothing stands for", s)
	}
	return s, nil
}

// raw is a text that is sent as it stands, but for placeholders.
func (e *encoder) raw(s string) ([]byte, error) {
	parts := strings.Split(s, "$META")
	if len(parts) > 1 && e.meta == nil {
		return nil, errors.New("$META has no meaning here")
	}
	for i := range parts {
		var err error
		if parts[i], err = e.replace(parts[i]); err != nil {
			return nil, err
		}
	}
	return []byte(strings.Join(parts, string(e.meta))), nil
}

// metaOf is common.meta with a call's own capabilities and extra members.
func (d *document) metaOf(e *encoder, capabilities, extra *yaml.Node) ([]byte, error) {
	meta := clone(&d.Common.Meta)
	if capabilities.Kind != 0 {
		set(meta, "io.modelcontextprotocol/clientCapabilities", capabilities)
	}
	if extra.Kind != 0 {
		err := eachMember(extra, func(key, value *yaml.Node) error {
			set(meta, key.Value, value)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return e.value(nil, meta)
}

// clone copies a tree.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, clone(child))
	}
	return &c
}

// get is a member of an object, or nil.
func get(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// set gives an object a member, in its place if it is there already.
func set(n *yaml.Node, name string, value *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, textNode(name), value)
}

func remove(n *yaml.Node, name string) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			n.Content = append(n.Content[:i], n.Content[i+2:]...)
			return
		}
	}
}

func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// merge lays the members of over upon base: objects are merged, everything else replaced.
// Header maps do not tell upper from lower case.
func merge(base, over *yaml.Node) error {
	return eachMember(over, func(key, value *yaml.Node) error {
		old := get(base, key.Value)
		switch {
		case isAbsent(value):
			remove(base, key.Value)
		case old != nil && old.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			if strings.EqualFold(key.Value, "headers") {
				return mergeHeaders(old, value)
			}
			return merge(old, value)
		default:
			set(base, key.Value, value)
		}
		return nil
	})
}

// mergeHeaders lays header lines upon others; a null leaves the line out.
func mergeHeaders(base, over *yaml.Node) error {
	return eachMember(over, func(key, value *yaml.Node) error {
		for i := 0; i < len(base.Content); i += 2 {
			if strings.EqualFold(base.Content[i].Value, key.Value) {
				remove(base, base.Content[i].Value)
				break
			}
		}
		if !isAbsent(value) && !isNull(value) {
			set(base, key.Value, value)
		}
		return nil
	})
}

// memberText is the text of a string member of a JSON object at a path, in its exact
// spelling. Bodies that are no object have none.
func memberText(body []byte, path ...string) (string, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return "", false
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", false
		}
		found := name.String() == path[0]
		value, err := dec.ReadValue()
		if err != nil {
			return "", false
		}
		switch {
		case !found:
		case len(path) > 1:
			return memberText(value.Clone(), path[1:]...)
		case value.Kind() == '"':
			text, err := jsontext.AppendUnquote(nil, value)
			return string(text), err == nil
		default:
			return "", false
		}
	}
	return "", false
}
