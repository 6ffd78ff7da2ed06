// Package input knows the three requests that a client may be asked to answer
// which capability each needs, what its answer looks like, and what a form may ask.
package input

import (
	"errors"
	"fmt"

	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Lacks is what a request needs and the client did not declare, as the JSON of
// ClientCapabilities (B-31), or nil. declared is the request's own declaration (B-29).
func Lacks(method string, params, declared []byte) []byte {
	needs := func(capability, part string) []byte {
		c := member(declared, capability)
		if strictjson.Kind(c) != '{' {
			if part == "" {
				return []byte(`{"` + capability + `":{}}`)
			}
			return []byte(`{"` + capability + `":{"` + part + `":{}}}`)
		}
		if part != "" && strictjson.Kind(member(c, part)) != '{' {
			return []byte(`{"` + capability + `":{"` + part + `":{}}}`)
		}
		return nil
	}
	switch method {
	case mcp.MethodElicit:
		if strictjson.Is(member(params, "mode"), "url") {
			return needs("elicitation", "url")
		}
		// An empty object means forms: it is older than the modes.
		if c := member(declared, "elicitation"); strictjson.Kind(c) == '{' && empty(c) {
			return nil
		}
		return needs("elicitation", "form")
	case mcp.MethodSample:
		if member(params, "tools") != nil || member(params, "toolChoice") != nil {
			return needs("sampling", "tools")
		}
		if c := member(params, "includeContext"); c != nil && !strictjson.Is(c, "none") {
			return needs("sampling", "context")
		}
		return needs("sampling", "")
	default:
		return needs("roots", "")
	}
}

// Check judges an answer, one JSON value that passed strictjson.Check. An error says that
// it is no answer to such a request at all; violations, that the user filled the form
// in wrongly.
func Check(method string, params, answer []byte) ([]schema.Violation, error) {
	if err := CheckShape(method, answer); err != nil {
		return nil, err
	}
	form := member(params, "requestedSchema")
	if method != mcp.MethodElicit || form == nil || !strictjson.Is(member(answer, "action"), "accept") {
		return nil, nil
	}
	content := member(answer, "content")
	if content == nil {
		content = []byte("{}")
	}
	v, err := schema.Compile(form)
	if err != nil {
		return nil, fmt.Errorf("the form's schema: %w", err)
	}
	_, violations := v.Validate(content)
	return append(violations, checkFormats(form, content)...), nil
}

// checkFormats holds the formats of a form, which are more than annotations there: the user
// is asked for an address that works.
func checkFormats(form, content []byte) (violations []schema.Violation) {
	for name, field := range strictjson.Members(member(form, "properties")) {
		format, named := strictjson.String(member(field, "format"))
		text, given := strictjson.String(member(content, string(name)))
		if !named || !given {
			continue
		}
		if wrong := schema.CheckFormat(format, text); wrong != "" {
			violations = append(violations, schema.Violation{Path: "/" + string(name), Message: wrong})
		}
	}
	return violations
}

// CheckShape judges an answer as far as that can be done without its question.
func CheckShape(method string, answer []byte) error {
	if strictjson.Kind(answer) != '{' {
		return errors.New("it must be an object")
	}
	switch method {
	case mcp.MethodElicit:
		return checkElicited(answer)
	case mcp.MethodSample:
		return checkSampled(answer)
	default:
		return checkRoots(answer)
	}
}

func checkElicited(answer []byte) error {
	action, ok := strictjson.String(member(answer, "action"))
	if !ok || action != "accept" && action != "decline" && action != "cancel" {
		return errors.New(`action must be "accept", "decline" or "cancel"`)
	}
	if content := member(answer, "content"); content != nil && action == "accept" && strictjson.Kind(content) != '{' {
		return errors.New("content must be an object")
	}
	return nil
}

func checkSampled(answer []byte) error {
	role, _ := strictjson.String(member(answer, "role"))
	content := strictjson.Kind(member(answer, "content"))
	switch {
	case role != "assistant" && role != "user":
		return errors.New(`role must be "assistant" or "user"`)
	case content != '{' && content != '[':
		return errors.New("content must be a content block or an array of them")
	case strictjson.Kind(member(answer, "model")) != '"':
		return errors.New("model must be a string")
	}
	return nil
}

func checkRoots(answer []byte) error {
	roots := member(answer, "roots")
	if strictjson.Kind(roots) != '[' {
		return errors.New("roots must be an array")
	}
	for root := range strictjson.Elements(roots) {
		if strictjson.Kind(root) != '{' || strictjson.Kind(member(root, "uri")) != '"' {
			return errors.New("each of roots must be an object with a uri")
		}
	}
	return nil
}

// member is a member of a value that may be no object; nil if there is none.
func member(value []byte, name string) []byte {
	if strictjson.Kind(value) != '{' {
		return nil
	}
	return strictjson.Member(value, name)
}

func empty(object []byte) bool {
	for range strictjson.Members(object) {
		return false
	}
	return true
}
