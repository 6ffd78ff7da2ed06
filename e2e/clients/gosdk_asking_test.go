//lint:file-ignore SA1019 servers may ask for sampling and roots until the protocol drops them

package clients

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// root is the one that the client has.
const root = "file:///a%20project"

// user is whoever sits before the client, and its model. The client asks several things at
// once if a server does.
type user struct {
	mu       sync.Mutex
	declines bool
	read     []string
}

func (u *user) declining(declines bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.declines = declines
}

func (u *user) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.read = append(u.read, r.Params.Message)
	if u.declines {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	content, ok := map[string]map[string]any{
		"What is your name?":                   {"name": "Zoë"},
		"Step 1: What is your name?":           {"name": "Zoë"},
		"Step 2: What is your favorite color?": {"color": "green"},
		"What context should the prompt use?":  {"context": "日本語"},
	}[r.Params.Message]
	if !ok {
		return nil, fmt.Errorf("the user does not understand %q", r.Params.Message)
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

func (u *user) sample(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(r.Params.Messages) != 1 {
		return nil, fmt.Errorf("%d messages", len(r.Params.Messages))
	}
	question, ok := r.Params.Messages[0].Content.(*mcp.TextContent)
	if !ok {
		return nil, fmt.Errorf("a message of %T", r.Params.Messages[0].Content)
	}
	u.read = append(u.read, question.Text)
	answer, ok := map[string]string{"What is the capital of France?": "Paris", "Generate a greeting": "Good day"}[question.Text]
	if !ok {
		return nil, fmt.Errorf("the model does not understand %q", question.Text)
	}
	return &mcp.CreateMessageResult{Model: "e2e", Role: "assistant", Content: &mcp.TextContent{Text: answer}}, nil
}

// asking makes the calls that ask. The client itself answers and tries again.
func (g *goVisit) asking(r *report, u *user) {
	g.t.Helper()
	ask := func(what string, isError bool) string {
		g.t.Helper()
		return g.text(g.call("test_input_required_result_"+what, nil, isError).Content...)
	}
	r.Greeting = ask("elicitation", false)
	u.declining(true)
	r.Declined = ask("elicitation", true)
	u.declining(false)
	r.Likes = ask("multi_round", false)
	r.Capital = ask("sampling", false)
	r.Roots = ask("list_roots", false)
	r.AtOnce = ask("multiple_inputs", false)
	p, err := g.s.GetPrompt(g.ctx, &mcp.GetPromptParams{Name: "test_input_required_result_prompt"})
	if err != nil {
		g.t.Fatal(err)
	}
	if len(p.Messages) != 1 {
		g.t.Fatalf("%d messages", len(p.Messages))
	}
	r.AskedPrompt = g.text(p.Messages[0].Content)
	u.mu.Lock()
	defer u.mu.Unlock()
	r.Questions = u.read
}
