package cases

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// exchange is one request, ready to be sent.
type exchange struct {
	name   string // as the case calls it
	as     string // who sends it; "": anybody
	nobody bool   // on purpose it says nothing of who sends it
	adds   int64  // what it adds to the counter when all is right

	// A plain request, which every door can take.
	method, path string
	headers      []header
	body         []byte // nil: none

	// An event, in place of all that, and the shell it was made from: "V1"; "" if none.
	event []byte
	shell string
}

// header is one line. Lines keep their order and their spelling.
type header struct{ name, value string }

// id is the id that the answer has to carry, as sent; nil if it has none that can be one.
func (x *exchange) id() jsontext.Value {
	var m struct {
		ID jsontext.Value `json:"id"`
	}
	if !decode(x.body, &m) {
		return nil
	}
	switch m.ID.Kind() {
	case '"':
		return m.ID
	case '0':
		if !strings.ContainsAny(string(m.ID), ".eE") {
			return m.ID
		}
	}
	return nil
}

// expansion turns calls into exchanges.
type expansion struct {
	d *document
	// text stands for what only a run can know: "$JWT", "$TASK".
	text map[string]string
}

// requests are the requests of a case, in its order; staged things are not among them.
func (p *expansion) requests(c *failure) ([]*exchange, error) {
	var all []*exchange
	add := func(name string, r *call) error {
		x, err := p.exchange(r)
		if err != nil {
			return fmt.Errorf("case %s, %s: %w", c.ID, name, err)
		}
		x.name = name
		if r.As.Kind != 0 && !isNull(&r.As) {
			x.as = r.As.Value
		}
		x.nobody = r.As.Kind != 0 && isNull(&r.As)
		all = append(all, x)
		return nil
	}
	if c.Input.isRequest() {
		if err := add(theRequest, &c.Input.call); err != nil {
			return nil, err
		}
	}
	for i := range c.Input.Requests {
		if err := add(c.Input.Requests[i].Name, &c.Input.Requests[i]); err != nil {
			return nil, err
		}
	}
	for i := range c.Input.MetaExtraList {
		r := call{MetaExtra: c.Input.MetaExtraList[i], Body: *harmlessCall()}
		if err := add(metaName(i), &r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// harmlessCall is the body of a call that any server can answer, for cases that vary
// something beside it.
func harmlessCall() *yaml.Node {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(`{jsonrpc: "2.0", id: 1, method: tools/call, params: {_meta: $META, name: echo, arguments: {text: x}}}`), &n); err != nil {
		panic(err)
	}
	return n.Content[0]
}

func (p *expansion) exchange(r *call) (*exchange, error) {
	e := &encoder{text: p.text}
	var err error
	if e.meta, err = p.d.metaOf(e, &r.Capabilities, described(&r.MetaExtra)); err != nil {
		return nil, err
	}
	if r.Event.Kind != 0 || r.EventRaw.Kind != 0 {
		if r.Headers.Kind != 0 || r.Body.Kind != 0 || r.BodyRaw.Kind != 0 || r.Method != "" || r.Path != "" {
			return nil, errors.New("an event holds its own headers, body, method and path")
		}
		if r.EventRaw.Kind != 0 {
			raw, err := e.raw(r.EventRaw.Value)
			return &exchange{event: raw}, err
		}
		return p.event(e, &r.Event)
	}
	body, err := e.bodyOf(r)
	if err != nil {
		return nil, err
	}
	if (r.Capabilities.Kind != 0 || r.MetaExtra.Kind != 0) && !strings.Contains(string(body), string(e.meta)) {
		return nil, errors.New("capabilities or meta_extra are given and the body has no $META for them")
	}
	x := &exchange{method: p.d.Common.DefaultRequest.Method, path: p.d.Common.DefaultRequest.Path, body: body}
	if r.Method != "" {
		x.method = r.Method
	}
	if r.Path != "" {
		x.path = r.Path
	}
	if strings.Contains(x.path, "?") {
		return nil, fmt.Errorf("path %q has a query, which no event is given here", x.path)
	}
	x.headers, err = p.headers(e, &r.Headers, body)
	return x, err
}

// bodyOf is the body of a plain request; nil if it has none.
func (e *encoder) bodyOf(r *call) ([]byte, error) {
	var body []byte
	var err error
	n := 0
	if r.Body.Kind != 0 {
		n++
		body, err = e.value(nil, &r.Body)
	}
	if r.BodyRaw.Kind != 0 {
		n++
		body, err = e.raw(r.BodyRaw.Value)
	}
	if r.BodyBase64Of.Kind != 0 {
		n++
		if body, err = e.value(nil, &r.BodyBase64Of); err == nil {
			body = []byte(base64.StdEncoding.EncodeToString(body))
		}
	}
	if r.BodyHexTemplate != "" {
		n++
		build, known := templates[r.BodyHexTemplate]
		if !known {
			return nil, fmt.Errorf("nobody has said how to build %q", r.BodyHexTemplate)
		}
		body, err = e.raw(build())
	}
	if n > 1 {
		return nil, errors.New("more than one body is given")
	}
	return body, err
}

// templates build the bodies that a case describes in words.
var templates = map[string]func() string{
	"tasks/get with taskId = 'x' x 5000": func() string {
		return `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"_meta":$META,"taskId":"` + strings.Repeat("x", 5000) + `"}}`
	},
}

// described replaces the members that a case describes in words.
func described(extra *yaml.Node) *yaml.Node {
	if b := get(extra, "baggage"); b != nil && b.Value == "9000 bytes" {
		extra = clone(extra)
		set(extra, "baggage", textNode("k="+strings.Repeat("v", 9000-len("k="))))
	}
	return extra
}

// headers are the lines of a plain request: the default ones, those that mirror the body,
// and the case's own upon them. What describes a body is left out where there is none.
func (p *expansion) headers(e *encoder, own *yaml.Node, body []byte) ([]header, error) {
	lines := clone(&p.d.Common.DefaultRequest.Headers)
	for _, name := range mirrorNames {
		remove(lines, name) // the file says in words what they are
	}
	if body == nil {
		remove(lines, "Content-Type")
	}
	switch {
	case own.Kind == 0:
		mirror(lines, body, func(s string) string { return s })
	case isNull(own) || isAbsent(own):
		lines.Content = nil
	default:
		if !names(own) {
			mirror(lines, body, func(s string) string { return s })
		}
		if err := mergeHeaders(lines, own); err != nil {
			return nil, err
		}
	}
	var all []header
	err := eachMember(lines, func(key, value *yaml.Node) error {
		if value.Kind != yaml.ScalarNode {
			return fmt.Errorf("header %s is no text", key.Value)
		}
		text, err := e.replace(value.Value)
		all = append(all, header{key.Value, text})
		return err
	})
	return all, err
}

// mirrorNames are the headers that a client derives from the body.
var mirrorNames = []string{"Mcp-Method", "Mcp-Name"}

// names reports whether a header map names one of the mirrored headers. One that names
// just one of them leaves the other out on purpose.
func names(headers *yaml.Node) bool {
	for _, name := range mirrorNames {
		for i := 0; headers != nil && headers.Kind == yaml.MappingNode && i < len(headers.Content); i += 2 {
			if strings.EqualFold(headers.Content[i].Value, name) {
				return true
			}
		}
	}
	return false
}

// mirror adds the headers that a conforming client derives from body.
func mirror(headers *yaml.Node, body []byte, spell func(string) string) {
	if method, ok := memberText(body, "method"); ok {
		set(headers, spell("Mcp-Method"), textNode(method))
	}
	for _, member := range []string{"name", "uri", "taskId"} {
		if name, ok := memberText(body, "params", member); ok {
			set(headers, spell("Mcp-Name"), textNode(encodeName(name)))
			return
		}
	}
}

// encodeName is the form of a name in a header (M-08, M-12).
func encodeName(name string) string {
	plain := strings.Trim(name, " ") == name && !strings.HasPrefix(name, "=?base64?")
	for i := range len(name) {
		plain = plain && ' ' <= name[i] && name[i] <= '~'
	}
	if plain {
		return name
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
}
