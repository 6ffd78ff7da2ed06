package cases

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// shells are the event shapes, by their names in common.shells.
var shells = []string{"V1", "V2", "FURL", "ALB"}

// event makes the event of a case: its shell with the members given upon it.
func (p *expansion) event(e *encoder, given *yaml.Node) (*exchange, error) {
	shellName := get(given, "$shell")
	if shellName == nil {
		return nil, fmt.Errorf("line %d: an event needs a $shell", given.Line)
	}
	shell, ok := p.d.Common.Shells[shellName.Value]
	if !ok {
		return nil, fmt.Errorf("line %d: there is no shell %q", given.Line, shellName.Value)
	}
	event, over := clone(&shell), clone(given)
	remove(over, "$shell")
	x := &exchange{shell: shellName.Value}
	for _, name := range []string{"method", "path"} {
		if v := get(over, name); v != nil && !(name == "path" && hasPath(x.shell)) {
			remove(over, name)
			setLine(event, x.shell, name, v.Value)
		}
	}

	body, err := e.eventBody(over)
	if err != nil {
		return nil, err
	}
	if body != nil {
		x.body = []byte(body.Value)
	}
	headers, lists := get(over, "headers"), get(over, "multiValueHeaders")
	purposely := headers != nil && headers.Kind != yaml.MappingNode || names(headers) || names(lists)
	if err := merge(event, over); err != nil {
		return nil, err
	}
	if lines := get(event, "headers"); !purposely && body != nil && !isNull(body) {
		mirror(lines, x.body, spelling(x.shell))
	}
	sameAsLists(event)
	x.event, err = e.withBody(event, body)
	return x, err
}

// withBody writes an event. The body has had its placeholders replaced: a $ in it is its own.
func (e *encoder) withBody(event, body *yaml.Node) ([]byte, error) {
	remove(event, "body")
	b, err := e.value(nil, event)
	if body == nil || err != nil {
		return b, err
	}
	b = append(b[:len(b)-1], `,"body":`...)
	if isNull(body) {
		return append(b, "null}"...), nil
	}
	b, err = jsontext.AppendQuote(b, body.Value)
	return append(b, '}'), err
}

// eventBody takes the body out of an event's members: a text, a null, or nil for none.
func (e *encoder) eventBody(over *yaml.Node) (*yaml.Node, error) {
	member := func(name string) yaml.Node {
		n := get(over, name)
		if n == nil {
			return yaml.Node{}
		}
		remove(over, name)
		return *n
	}
	r := call{Body: member("body"), BodyRaw: member("body_raw"), BodyBase64Of: member("body_base64_of")}
	switch {
	case isAbsent(&r.Body):
		return nil, nil
	case r.Body.Kind != 0 && isNull(&r.Body):
		return &r.Body, nil
	}
	body, err := e.bodyOf(&r)
	if body == nil || err != nil {
		return nil, err
	}
	return textNode(string(body)), nil
}

// hasPath reports whether events of a shell say method and path at their top.
func hasPath(shell string) bool { return shell == "V1" || shell == "ALB" }

// setLine sets the method or the path where events of a shell have it.
func setLine(event *yaml.Node, shell, name, value string) {
	text := textNode(value)
	context := get(event, "requestContext")
	switch {
	case name == "method" && hasPath(shell):
		set(event, "httpMethod", text)
		if shell == "V1" {
			set(context, "httpMethod", text)
		}
	case name == "path" && hasPath(shell):
		set(event, "path", text)
		if shell == "V1" {
			set(context, "path", textNode("/"+get(context, "stage").Value+value))
		}
	case name == "method":
		set(get(context, "http"), "method", text)
	default:
		set(event, "rawPath", text)
		set(get(context, "http"), "path", text)
	}
}

// setQuery sets a query of one parameter.
func setQuery(event *yaml.Node, shell, query string) {
	if query == "" {
		return
	}
	if !hasPath(shell) {
		set(event, "rawQueryString", textNode(query))
		return
	}
	name, value, _ := strings.Cut(query, "=")
	parameters := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(parameters, name, textNode(value))
	set(event, "queryStringParameters", parameters)
}

// spelling is how a door writes header names: only a REST API keeps the client's letters.
func spelling(shell string) func(string) string {
	if shell == "V1" {
		return func(s string) string { return s }
	}
	return strings.ToLower
}

// sameAsLists fills in "same values as lists".
func sameAsLists(event *yaml.Node) {
	lists := get(event, "multiValueHeaders")
	if lists == nil || lists.Kind != yaml.ScalarNode || isNull(lists) {
		return
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if headers := get(event, "headers"); headers.Kind == yaml.MappingNode {
		for i := 0; i < len(headers.Content); i += 2 {
			value := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{headers.Content[i+1]}}
			set(all, headers.Content[i].Value, value)
		}
	}
	set(event, "multiValueHeaders", all)
}

// through is the event that a door makes of a plain request. Headers that the shell has
// beside the default ones, such as a load balancer's own, stay.
func (p *expansion) through(shell string, x *exchange) ([]byte, error) {
	base := p.d.Common.Shells[shell]
	event := clone(&base)
	setLine(event, shell, "method", x.method)
	path, query, _ := strings.Cut(x.path, "?")
	setLine(event, shell, "path", path)
	setQuery(event, shell, query)

	lines := get(event, "headers")
	defaults := clone(&p.d.Common.DefaultRequest.Headers)
	for i := 0; i < len(defaults.Content); i += 2 {
		defaults.Content[i+1] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	if err := mergeHeaders(lines, defaults); err != nil {
		return nil, err
	}
	own := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	lists := map[string]*yaml.Node{} // of names that are there more than once
	for _, h := range x.headers {
		name, value := spelling(shell)(h.name), textNode(h.value)
		if before := get(own, name); before != nil {
			if lists[name] == nil {
				lists[name] = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{before}}
			}
			lists[name].Content = append(lists[name].Content, value)
			if !hasPath(shell) {
				value = textNode(before.Value + "," + value.Value)
			}
		}
		set(own, name, value)
	}
	if err := mergeHeaders(lines, own); err != nil {
		return nil, err
	}
	if len(lists) > 0 && shell == "ALB" { // which says it with lists switched on
		set(event, "multiValueHeaders", textNode("same values as lists"))
	}
	sameAsLists(event)
	if hasPath(shell) {
		for name, list := range lists {
			set(get(event, "multiValueHeaders"), name, list)
		}
	}
	if len(lists) > 0 && shell == "ALB" {
		remove(event, "headers")
	}
	var body *yaml.Node
	if x.body != nil {
		body = textNode(string(x.body))
	}
	return new(encoder).withBody(event, body)
}
