package cases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// document is cases.yaml. Its structs name every member there may be: an unknown one is an
// error, or part of a case would go unread.
type document struct {
	About  string     `yaml:"about"`
	Common common     `yaml:"common"`
	Cases  []*failure `yaml:"cases"`
}

type common struct {
	Placeholders   map[string]string `yaml:"placeholders"`
	Meta           yaml.Node         `yaml:"meta"`
	DefaultRequest struct {
		Method  string    `yaml:"method"`
		Path    string    `yaml:"path"`
		Headers yaml.Node `yaml:"headers"`
	} `yaml:"default_request"`
	Tools  map[string]describedTool `yaml:"tools"`
	Shells map[string]yaml.Node     `yaml:"shells"`
}

// describedTool is a tool that the fixture serves, or a remark in its place.
type describedTool struct {
	Input  yaml.Node
	Does   string
	Remark string
}

// failure is one case.
type failure struct {
	ID        string   `yaml:"id"`
	Category  string   `yaml:"category"`
	Source    []string `yaml:"source"`
	Date      string   `yaml:"date"`
	Symptom   string   `yaml:"symptom"`
	Input     input    `yaml:"input"`
	Right     string   `yaml:"right"`
	Level     string   `yaml:"level"`
	Spec      []string `yaml:"spec"`
	Expect    []string `yaml:"expect"`
	Ambiguity string   `yaml:"ambiguity"`
}

// input is what a case tries: requests, or things that a test has to stage.
type input struct {
	call     `yaml:",inline"`
	Requests []call `yaml:"requests"`

	MetaExtraList  []yaml.Node `yaml:"meta_extra_list"`
	HandlerReturns items       `yaml:"handler_returns"`
	Handlers       items       `yaml:"handlers"`
	Sequence       []string    `yaml:"sequence"`
	States         []string    `yaml:"states"`
	HeadersList    []string    `yaml:"headers_list"`
	Tokens         []token     `yaml:"tokens"`

	Setup string `yaml:"setup"`
	Call  string `yaml:"call"`
	Over  string `yaml:"over"`
	Force string `yaml:"force"`
	Also  string `yaml:"also"`
}

// call is one request. An absent member has Kind 0, so null and absent differ.
type call struct {
	Name   string `yaml:"name"`
	Note   string `yaml:"note"`
	Method string `yaml:"method"`
	Path   string `yaml:"path"`

	Headers         yaml.Node `yaml:"headers"`
	Body            yaml.Node `yaml:"body"`
	BodyRaw         yaml.Node `yaml:"body_raw"`
	BodyBase64Of    yaml.Node `yaml:"body_base64_of"`
	BodyHexTemplate string    `yaml:"body_hex_template"`
	Event           yaml.Node `yaml:"event"`
	EventRaw        yaml.Node `yaml:"event_raw"`

	Capabilities yaml.Node `yaml:"capabilities"`
	MetaExtra    yaml.Node `yaml:"meta_extra"`
	As           yaml.Node `yaml:"as"`
}

// isRequest reports whether the call says anything to send.
func (c *call) isRequest() bool {
	for _, n := range []yaml.Node{c.Body, c.BodyRaw, c.BodyBase64Of, c.Event, c.EventRaw} {
		if n.Kind != 0 {
			return true
		}
	}
	return c.BodyHexTemplate != "" || c.Method != ""
}

// token is a bearer token to make.
type token struct {
	Aud        yaml.Node `yaml:"aud"`
	Header     yaml.Node `yaml:"header"`
	SignedWith string    `yaml:"signed_with"`
	Claims     string    `yaml:"claims"`
	Note       string    `yaml:"note"`
}

// items are the names of things to stage: plain texts, or objects with a name and
// perhaps the Go value meant.
type items []item

type item struct{ Name, Go string }

// UnmarshalYAML also takes an object of texts, one item each.
func (l *items) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		return eachMember(n, func(key, value *yaml.Node) error {
			*l = append(*l, item{Name: key.Value, Go: value.Value})
			return nil
		})
	}
	for _, entry := range n.Content {
		if entry.Kind == yaml.ScalarNode {
			*l = append(*l, item{Name: entry.Value})
			continue
		}
		var it item
		err := eachMember(entry, func(key, value *yaml.Node) error {
			switch key.Value {
			case "name":
				it.Name = value.Value
			case "go":
				it.Go = value.Value
			default:
				return fmt.Errorf("line %d: unknown member %q", key.Line, key.Value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		*l = append(*l, it)
	}
	return nil
}

// UnmarshalYAML takes a remark or a tool.
func (d *describedTool) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		d.Remark = n.Value
		return nil
	}
	return eachMember(n, func(key, value *yaml.Node) error {
		switch key.Value {
		case "input":
			d.Input = *value
		case "does":
			d.Does = value.Value
		default:
			return fmt.Errorf("line %d: unknown member %q", key.Line, key.Value)
		}
		return nil
	})
}

// eachMember calls fn for every member of an object, which may name each once.
func eachMember(n *yaml.Node, fn func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want an object", n.Line)
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() != "!!str" {
			return fmt.Errorf("line %d: member name %s is no string", key.Line, key.Value)
		}
		if seen[key.Value] {
			return fmt.Errorf("line %d: member %q is there twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if err := fn(key, value); err != nil {
			return err
		}
	}
	return nil
}

// placeholders are those that expand.go knows. A new one in the file has to be learned.
var placeholders = []string{
	"$META", "$ABSENT", "$JWT", "$TASK", "$NEXT", "$shell", "capabilities", "meta_extra", "body",
	"null as a header value", "method, path in an event", "Mcp-Method and Mcp-Name",
}

// load reads cases strictly.
func load(r io.Reader) (*document, error) {
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	var d document
	if err := dec.Decode(&d); err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document")
	}
	for name := range d.Common.Placeholders {
		if !slices.Contains(placeholders, name) {
			return nil, fmt.Errorf("placeholder %q is not known here", name)
		}
	}
	seen := map[string]bool{}
	for _, c := range d.Cases {
		if c.ID == "" || c.Category == "" || c.Right == "" || len(c.Expect) == 0 {
			return nil, fmt.Errorf("case %q lacks an id, a category, what is right or what to expect", c.ID)
		}
		if seen[c.ID] {
			return nil, fmt.Errorf("case %s is there twice", c.ID)
		}
		seen[c.ID] = true
		if names, err := c.items(); err != nil {
			return nil, fmt.Errorf("case %s: %w", c.ID, err)
		} else if len(names) == 0 {
			return nil, fmt.Errorf("case %s tries nothing", c.ID)
		}
	}
	return &d, nil
}

// theRequest is the name of a case's only request.
const theRequest = "the request"

// metaName is the name of entry i of meta_extra_list.
func metaName(i int) string { return fmt.Sprintf("meta_extra %d", i+1) }

// items are the names of all that a case tries; each needs an assertion.
func (c *failure) items() ([]string, error) {
	var names []string
	if c.Input.isRequest() {
		names = append(names, theRequest)
	}
	for _, r := range c.Input.Requests {
		if !r.isRequest() {
			return nil, fmt.Errorf("request %q sends nothing", r.Name)
		}
		names = append(names, r.Name)
	}
	for i := range c.Input.MetaExtraList {
		names = append(names, metaName(i))
	}
	for _, it := range slices.Concat(c.Input.HandlerReturns, c.Input.Handlers) {
		names = append(names, it.Name)
	}
	for i := range c.Input.Tokens {
		names = append(names, fmt.Sprintf("token %d", i+1))
	}
	names = slices.Concat(names, c.Input.Sequence, c.Input.States, c.Input.HeadersList)
	for _, text := range []string{c.Input.Call, c.Input.Over, c.Input.Force, c.Input.Also} {
		if text != "" {
			names = append(names, text)
		}
	}
	for i, name := range names {
		if name == "" {
			return nil, errors.New("something to try has no name")
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("two things to try are called %q", name)
		}
	}
	return names, nil
}

// loadFile reads the project's cases.
func loadFile(t testing.TB) *document {
	t.Helper()
	b, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := load(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("cases.yaml: %v", err)
	}
	return d
}
