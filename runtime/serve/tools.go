package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// serveTool answers tools/call: validate arguments, run, check the output, encode once.
func serveTool(q *request) {
	t := q.target.(*tool)
	fromStart := (t.Tasks == declared.TaskAlways || t.Tasks == declared.TaskRequired) && q.h.engine != nil && q.msg.meta.knowsTasks()
	if t.Tasks == declared.TaskRequired && !fromStart {
		q.fail(q.withoutTasks()) // T-05
		return
	}
	q.handle("tool", t.Name, t.Timeout, func(ctx context.Context, c *running) ([]byte, error) {
		return t.invoke(ctx, c, func() (message []byte, err error) {
			if replay, refusal := c.claim(t); replay != nil {
				return nil, replay
			} else if refusal != nil {
				return nil, refusal
			}
			if fromStart {
				return c.createTask(t, &journal.Journal{})
			}
			return nil, nil
		})
	})
}

// invoke is the tool's own part of a call. before is asked when the arguments are known to
// be good, and may answer in the handler's place.
func (t *tool) invoke(ctx context.Context, c *running, before func() (message []byte, err error)) ([]byte, error) {
	input, err := t.Input()
	if err != nil {
		return nil, c.broken("input schema", err)
	}
	args, violations := input.Validate(c.args)
	if len(violations) > 0 {
		return c.errorResult(violationText(t.Name, violations), reasonInvalidArguments), nil
	}
	if message, err := before(); message != nil || err != nil {
		return message, err
	}
	r, err := t.handler(ctx, args)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("the handler returned neither a result nor an error")
	}
	if err := c.checkOutput(t, r); err != nil {
		return nil, err
	}
	return c.encodeResult(r)
}

// withoutTasks is the answer to a call that has to be a task and cannot: the client does not
// know tasks, or this deployment does not.
func (q *request) withoutTasks() *failure {
	if !q.msg.meta.knowsTasks() {
		return lacksTasks()
	}
	return internal(reasonNoTasks, "This deployment has no tasks")
}

// violationText lists the violations, so that a model can mend all of them at once (F-16).
func violationText(name string, violations []schema.Violation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Invalid arguments for %s:", name)
	for _, v := range violations {
		b.WriteString("\n- ")
		if v.Path != "" {
			b.WriteString(v.Path)
			b.WriteString(": ")
		}
		b.WriteString(v.Message)
	}
	return b.String()
}

// checkOutput holds a result against an output schema that its type does not vouch for
// (F-09). An isError result is exempt.
func (c *running) checkOutput(t *tool, r *mcp.CallToolResult) error {
	output, err := t.Output()
	if err != nil {
		return c.broken("output schema", err)
	}
	if output == nil || r.IsError {
		return nil
	}
	if r.StructuredContent == nil {
		return c.broken("output", errors.New("the tool has an output schema and returned no structured content"))
	}
	if err := strictjson.Check(r.StructuredContent, c.h.limits.depth); err != nil {
		return c.broken("output", err)
	}
	if _, violations := output.Validate(strictjson.Trim(r.StructuredContent)); len(violations) > 0 {
		return c.broken("output", errors.New(violationText(t.Name, violations)))
	}
	return nil
}

// broken is the -32603 for a fault in what the author declared.
func (c *running) broken(what string, err error) *failure {
	c.logError(slog.LevelError, "tool "+what+" is wrong", err)
	return internal(reasonBrokenTool, c.masked("is broken", fmt.Errorf("%s: %w", what, err)))
}

// encodeResult is the message with a tool's result.
func (c *running) encodeResult(r *mcp.CallToolResult) ([]byte, error) {
	n := len(r.StructuredContent)
	for _, block := range r.Content {
		if t, ok := block.(*mcp.TextContent); ok && t != nil {
			n += len(t.Text) + len(t.Text)/4
		}
	}
	b, err := r.AppendMembers(c.beginResult(n))
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return c.endResult(b, r.Meta)
}
