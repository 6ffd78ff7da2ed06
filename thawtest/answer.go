package thawtest

import (
	"encoding/json"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Answers are what a user says, by key:
//
//   - an Action, or a bool for Accept and Decline;
//   - for a form its content: a struct or a map, or the bare value of a form with one field,
//     which is what Choose asks with;
//   - for sampling a string, the text of the model's message, or the whole result;
//   - for roots a []string of URIs, or the whole result;
//   - a json.RawMessage: the client's result as it stands, whatever was asked.
type Answers map[string]any

// Action is what a user does with a question.
type Action string

// What a user can do.
const (
	Accept  Action = "accept"
	Decline Action = "decline"
	Dismiss Action = "cancel"
)

type question struct {
	key, method string
	params      json.RawMessage
}

// Asked are the keys of what the call asks now, in the order of asking.
func (c *Call) Asked() []string {
	keys := []string{}
	for _, q := range c.asked {
		keys = append(keys, q.key)
	}
	return keys
}

// Message is what the user reads at the question key, "" if that is not asked.
func (c *Call) Message(key string) string {
	for _, q := range c.asked {
		if q.key == key {
			text, _ := strictjson.String(strictjson.Member(q.params, "message"))
			return text
		}
	}
	return ""
}

// Params are the parameters of the question key as the client got them, nil if that is not
// asked.
func (c *Call) Params(key string) json.RawMessage {
	for _, q := range c.asked {
		if q.key == key {
			return q.params
		}
	}
	return nil
}

// Rounds counts the requests of the call so far: the first and those that bring answers, those
// after a Crash not included.
func (c *Call) Rounds() int { return c.rounds }

// Answer brings the call what its user says, and runs it on, on another instance. What is
// asked and not in a stays unanswered; a key that is not asked fails the test.
func (c *Call) Answer(a Answers) *Call {
	c.tb.Helper()
	if c.Done() {
		c.tb.Fatalf("thawtest: the call has ended and asks nothing")
	}
	if len(c.asked) == 0 {
		c.tb.Fatalf("thawtest: the task asks nothing now; it waits for its time: see Advance")
	}
	for key := range a {
		if c.Params(key) == nil {
			c.tb.Fatalf("thawtest: nothing is asked as %q; asked is %s", key, strings.Join(c.Asked(), ", "))
		}
	}
	results := map[string]json.RawMessage{}
	for _, q := range c.asked {
		if answer, ok := a[q.key]; ok {
			results[q.key] = c.resultFor(q, answer)
		}
	}
	raw, err := strictjson.Marshal(results)
	if err != nil {
		c.tb.Fatalf("thawtest: %v", err)
	}
	if c.IsTask() {
		c.update(raw)
	} else {
		c.send(raw)
	}
	return c
}

// resultFor is the client's result for one question.
func (c *Call) resultFor(q question, answer any) json.RawMessage {
	c.tb.Helper()
	encode := func(v any) json.RawMessage {
		raw, err := strictjson.Marshal(v)
		if err != nil {
			c.tb.Fatalf("thawtest: encode the answer to %q: %v", q.key, err)
		}
		return raw
	}
	switch a := answer.(type) {
	case json.RawMessage:
		return a
	case Action:
		return encode(map[string]any{"action": a})
	case bool:
		if properties := formOf(q); len(properties) == 0 {
			if a {
				return encode(map[string]any{"action": Accept})
			}
			return encode(map[string]any{"action": Decline})
		}
	case string:
		if q.method == mcp.MethodSample {
			return encode(map[string]any{"role": "assistant", "model": "thawtest", "stopReason": "endTurn",
				"content": map[string]any{"type": "text", "text": a}})
		}
	case []string:
		if q.method == mcp.MethodRoots {
			roots := []map[string]string{}
			for _, uri := range a {
				roots = append(roots, map[string]string{"uri": uri})
			}
			return encode(map[string]any{"roots": roots})
		}
	}
	raw := encode(answer)
	if q.method != mcp.MethodElicit {
		return raw
	}
	if strictjson.Kind(raw) != '{' {
		fields := formOf(q)
		if len(fields) != 1 {
			c.tb.Fatalf("thawtest: the form %q has the fields %s; answer it with a struct or a map", q.key, strings.Join(fields, ", "))
		}
		raw = encode(map[string]json.RawMessage{fields[0]: raw})
	}
	return encode(map[string]any{"action": Accept, "content": withoutNulls(raw)})
}

// withoutNulls leaves out what a struct writes for a nil pointer: a form has no null.
func withoutNulls(object json.RawMessage) map[string]json.RawMessage {
	content := map[string]json.RawMessage{}
	for name, value := range strictjson.Members(object) {
		if strictjson.Kind(value) != 'n' {
			content[string(name)] = value
		}
	}
	return content
}

// formOf are the fields that a question asks for.
func formOf(q question) (fields []string) {
	schema := strictjson.Member(q.params, "requestedSchema")
	if schema == nil {
		return nil
	}
	for name := range strictjson.Members(strictjson.Member(schema, "properties")) {
		fields = append(fields, string(name))
	}
	return fields
}
