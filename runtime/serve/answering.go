package serve

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// terminal answers what a call asks, for the command call: somebody reads out and types
// into in.
type terminal struct {
	in  *bufio.Reader
	out io.Writer
}

// terminalCapabilities are what a terminal can answer, and so all that it is asked.
const terminalCapabilities = `{"elicitation":{"form":{},"url":{}}}`

// answer is the inputResponses for a map of inputRequests.
func (t *terminal) answer(requests []byte) []byte {
	responses := []byte{'{'}
	for key, request := range strictjson.Members(requests) {
		result := t.elicit(memberOf(request, "params"))
		if len(responses) > 1 {
			responses = append(responses, ',')
		}
		responses = append(strictjson.AppendString(responses, key), ':')
		responses = append(responses, result...)
	}
	return append(responses, '}')
}

const (
	declined  = `{"action":"decline"}`
	dismissed = `{"action":"cancel"}`
)

func (t *terminal) elicit(params []byte) []byte {
	message, _ := strictjson.String(memberOf(params, "message"))
	fmt.Fprintln(t.out, message)
	form := memberOf(params, "requestedSchema")
	if form == nil {
		url, _ := strictjson.String(memberOf(params, "url"))
		fmt.Fprintln(t.out, url)
		return t.confirm("Open this page?")
	}
	fields := 0
	for range strictjson.Members(memberOf(form, "properties")) {
		fields++
	}
	if fields == 0 {
		return t.confirm("Agree?")
	}
	fmt.Fprintln(t.out, "(an empty line takes the default, ! declines)")
	content := []byte(`{"action":"accept","content":{`)
	first := true
	for name, field := range strictjson.Members(memberOf(form, "properties")) {
		value, ok := t.field(string(name), field, required(form, string(name)))
		if !ok {
			return []byte(declined)
		}
		if value == nil {
			continue
		}
		if !first {
			content = append(content, ',')
		}
		first = false
		content = append(append(strictjson.AppendString(content, name), ':'), value...)
	}
	return append(content, "}}"...)
}

func (t *terminal) confirm(question string) []byte {
	fmt.Fprintf(t.out, "%s [y/N] ", question)
	line, err := t.in.ReadString('\n')
	switch {
	case strings.EqualFold(strings.TrimSpace(line), "y") || strings.EqualFold(strings.TrimSpace(line), "yes"):
		return []byte(`{"action":"accept"}`)
	case err != nil:
		return []byte(dismissed)
	}
	return []byte(declined)
}

func required(form []byte, name string) bool {
	names := memberOf(form, "required")
	return strictjson.Kind(names) == '[' && slices.ContainsFunc(slices.Collect(strictjson.Elements(names)), func(v []byte) bool { return strictjson.Is(v, name) })
}

// field asks for one field until there is something to send. Whether it fits is the server's
// to judge, which asks again.
func (t *terminal) field(name string, field []byte, required bool) (value []byte, ok bool) {
	kind, _ := strictjson.String(memberOf(field, "type"))
	byDefault := memberOf(field, "default")
	for {
		fmt.Fprintf(t.out, "%s (%s)", name, describeField(kind, field))
		if byDefault != nil {
			fmt.Fprintf(t.out, " [%s]", byDefault)
		}
		fmt.Fprint(t.out, ": ")
		line, err := t.in.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "!" || line == "" && err != nil:
			return nil, false
		case line == "" && byDefault != nil:
			return byDefault, true
		case line == "" && !required:
			return nil, true
		}
		if value := typed(kind, line); value != nil {
			return value, true
		}
		fmt.Fprintf(t.out, "  no %s\n", kind)
	}
}

func describeField(kind string, field []byte) string {
	text := kind
	if description, ok := strictjson.String(memberOf(field, "description")); ok {
		text += ", " + description
	}
	var choices []string
	for _, list := range [][]byte{memberOf(field, "enum"), memberOf(field, "oneOf"), memberOf(memberOf(field, "items"), "enum"), memberOf(memberOf(field, "items"), "anyOf")} {
		if list == nil {
			continue
		}
		for choice := range strictjson.Elements(list) {
			value, _ := strictjson.String(choice)
			if titled := memberOf(choice, "const"); titled != nil {
				value, _ = strictjson.String(titled)
			}
			choices = append(choices, value)
		}
	}
	if len(choices) > 0 {
		text += ": " + strings.Join(choices, ", ")
	}
	return text
}

// typed is what was typed as a value of its kind, or nil.
func typed(kind, line string) []byte {
	switch kind {
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return []byte("true")
		case "n", "no", "false":
			return []byte("false")
		}
		return nil
	case "integer", "number":
		if _, err := strconv.ParseFloat(line, 64); err != nil || strictjson.Check([]byte(line), 1) != nil {
			return nil
		}
		return []byte(line)
	case "array":
		b := []byte{'['}
		for i, item := range commaList(line) {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, item)
		}
		return append(b, ']')
	}
	return strictjson.AppendString(nil, line)
}
