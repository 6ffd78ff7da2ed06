package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// maxCompletions is the most values one answer may hold (F-41).
const maxCompletions = 100

func checkCompleteParams(q *request) *failure {
	p := &q.msg.params
	if _, ok := strictjson.String(memberOf(p.ref, "type")); !ok {
		return invalidParams(reasonInvalidParams, "Invalid params: ref must be an object with a type")
	}
	_, name := strictjson.String(memberOf(p.argument, "name"))
	_, value := strictjson.String(memberOf(p.argument, "value"))
	if !name || !value {
		return invalidParams(reasonInvalidParams, "Invalid params: argument must be an object with name and value, both strings")
	}
	if p.context != nil && strictjson.Kind(p.context) != '{' {
		return invalidParams(reasonInvalidParams, "Invalid params: context must be an object")
	}
	return nil
}

// completion is what completion/complete is about.
type completion struct {
	name    string                // of the prompt or template
	suggest declared.CompleteFunc // nil: the author gave nothing
	scopes  []string
}

func (c *completion) needs() []string { return c.scopes }

func lookupCompletion(q *request) *failure {
	p := &q.msg.params
	argument, _ := strictjson.String(memberOf(p.argument, "name"))
	c, f := q.cat.completer(p.ref, argument)
	if f != nil {
		return f
	}
	q.target = c
	return nil
}

// serveComplete answers completion/complete. An argument without suggestions has none; a
// prompt, template or argument that does not exist is an error (F-42).
func serveComplete(q *request) {
	p := &q.msg.params
	prefix, _ := strictjson.String(memberOf(p.argument, "value"))
	about := q.target.(*completion)
	known := map[string]string{}
	if args := memberOf(p.context, "arguments"); args != nil {
		if strictjson.Kind(args) != '{' {
			q.fail(invalidParams(reasonInvalidParams, "Invalid params: context.arguments must be an object of strings"))
			return
		}
		for n, v := range strictjson.Members(args) {
			text, ok := strictjson.String(v)
			if !ok {
				q.fail(invalidParams(reasonInvalidParams, "Invalid params: context.arguments must be an object of strings"))
				return
			}
			known[string(n)] = text
		}
	}
	q.handle("completion", about.name, 0, func(ctx context.Context, c *running) ([]byte, error) {
		var values []string
		if about.suggest != nil {
			var err error
			if values, err = about.suggest(ctx, prefix, known); err != nil {
				return nil, err
			}
		}
		total := len(values)
		more := total > maxCompletions
		if more {
			values = values[:maxCompletions]
		}
		b := append(c.beginResult(0), `"completion":{"values":[`...)
		for i, v := range values {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, v)
		}
		b = append(b, fmt.Sprintf(`],"total":%d,"hasMore":%t}`, total, more)...)
		return c.endResult(b, nil)
	})
}

// completer finds what suggests values for an argument of the prompt or template that ref
// names.
func (c *catalog) completer(ref []byte, argument string) (*completion, *failure) {
	unknown := func(what string) *failure {
		return invalidParams(reasonUnknownReference, "Invalid params: "+what)
	}
	switch kind, _ := strictjson.String(memberOf(ref, "type")); kind {
	case "ref/prompt":
		name, _ := strictjson.String(memberOf(ref, "name"))
		p := c.prompts[name]
		if p == nil {
			return nil, unknown("ref names no prompt of this server")
		}
		for _, a := range p.Definition.Arguments {
			if a.Name == argument {
				return &completion{name, p.Complete[argument], p.Scopes}, nil
			}
		}
		return nil, unknown("the prompt has no such argument; its arguments are " + argumentNames(p.Definition.Arguments))
	case "ref/resource":
		uri, _ := strictjson.String(memberOf(ref, "uri"))
		for _, t := range c.templates {
			if t.template.Definition.URITemplate != uri {
				continue
			}
			if !slices.Contains(t.template.Variables, argument) {
				return nil, unknown("the template has no such variable; its variables are " + strings.Join(t.template.Variables, ", "))
			}
			return &completion{uri, t.template.Complete[argument], t.scopes}, nil
		}
		return nil, unknown("ref names no resource template of this server")
	}
	return nil, unknown(`ref.type must be "ref/prompt" or "ref/resource"`)
}
