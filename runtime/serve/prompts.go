package serve

import (
	"context"
	"fmt"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// servePrompt answers prompts/get.
func servePrompt(q *request) {
	p := q.target.(*prompt)
	name := p.Definition.Name
	args, f := promptArguments(p.Definition.Arguments, q.args)
	if f != nil {
		q.fail(f)
		return
	}
	q.handle("prompt", name, 0, func(ctx context.Context, c *running) ([]byte, error) {
		messages, err := p.Get(ctx, args)
		if err != nil {
			return nil, err
		}
		b := c.beginResult(0)
		if p.Definition.Description != "" {
			b = append(b, `"description":`...)
			b = strictjson.AppendString(b, p.Definition.Description)
			b = append(b, ',')
		}
		b = append(b, `"messages":[`...)
		for i := range messages {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = messages[i].AppendJSON(b); err != nil {
				return nil, fmt.Errorf("encode message %d: %w", i, err)
			}
		}
		return c.endResult(append(b, ']'), nil)
	})
}

// promptArguments are the arguments of a prompt: strings, all of them declared, the
// required ones there (F-30).
func promptArguments(declared []mcp.PromptArgument, raw []byte) (map[string]string, *failure) {
	args := map[string]string{}
	for name, value := range strictjson.Members(raw) {
		text, ok := strictjson.String(value)
		if !ok {
			return nil, invalidParams(reasonInvalidArguments, fmt.Sprintf("Invalid params: argument %s must be a string", quoted(name)))
		}
		args[string(name)] = text
	}
	known := 0
	for _, a := range declared {
		_, there := args[a.Name]
		if !there && a.Required {
			return nil, invalidParams(reasonInvalidArguments, fmt.Sprintf("Invalid params: argument %q is required", a.Name))
		}
		if there {
			known++
		}
	}
	if known < len(args) {
		return nil, invalidParams(reasonInvalidArguments, "Invalid params: the prompt has no such argument; its arguments are "+argumentNames(declared))
	}
	return args, nil
}

func argumentNames(declared []mcp.PromptArgument) string {
	if len(declared) == 0 {
		return "none"
	}
	names := ""
	for i, a := range declared {
		if i > 0 {
			names += ", "
		}
		names += a.Name
	}
	return names
}

// quoted shows a name that the client chose, cut to a length that is no burden.
func quoted(name []byte) string {
	if len(name) > 64 {
		return fmt.Sprintf("%q…", name[:64])
	}
	return fmt.Sprintf("%q", name)
}
