// Package clients lets the official clients of others use the conformance fixture, as a
// local server and as a function on Lambda, and checks what both sides saw.
package clients

import (
	"slices"
	"strings"
	"testing"
)

// report is what a client found. Each client fills it in its own way; what has to be in
// it is the same for all.
type report struct {
	Version string `json:"version"` // negotiated
	Server  string `json:"server"`

	Tools       []string  `json:"tools"`
	Echo        string    `json:"echo"`
	ToolError   string    `json:"toolError"`
	Invalid     string    `json:"invalid"` // text of the result for invalid arguments
	UnknownTool int       `json:"unknownTool"`
	Sum         int       `json:"sum"` // of structured content
	Progress    []float64 `json:"progress"`
	Mirrored    []string  `json:"mirrored"`

	Prompts []string `json:"prompts"`
	Prompt  string   `json:"prompt"`

	Resources []string `json:"resources"`
	Templates []string `json:"templates"`
	Text      string   `json:"text"`
	Blob      string   `json:"blob"` // base64
	Template  string   `json:"template"`
	Missing   int      `json:"missing"` // error code of a resource that does not exist

	Completion []string `json:"completion"`

	// Of calls that ask in their middle.
	Greeting    string   `json:"greeting"`
	Declined    string   `json:"declined"` // text of the result for a user who does not want to say
	Likes       string   `json:"likes"`    // asked one thing after the other
	Capital     string   `json:"capital"`
	Roots       string   `json:"roots"`
	AtOnce      string   `json:"atOnce"` // asked three things at once
	AskedPrompt string   `json:"askedPrompt"`
	Questions   []string `json:"questions"` // that user and model have read, in any order
}

const version = "2026-07-28"

func (r *report) check(t *testing.T, streaming bool) {
	t.Helper()
	equal(t, "negotiated version", r.Version, version)
	equal(t, "server", r.Server, "thaw-conformance")

	for _, name := range []string{"echo", "add", "test_error_handling", "test_tool_with_progress", "test_x_mcp_header"} {
		if !slices.Contains(r.Tools, name) {
			t.Errorf("tool %s is not listed: %q", name, r.Tools)
		}
	}
	equal(t, "echo", r.Echo, "héllo   wörld")
	equal(t, "tool error", r.ToolError, "This tool intentionally returns an error for testing")
	for _, part := range []string{"add", "/a", `"b"`} {
		if !strings.Contains(r.Invalid, part) {
			t.Errorf("invalid arguments: the model reads %q, which does not name %s", r.Invalid, part)
		}
	}
	equal(t, "code of an unknown tool", r.UnknownTool, -32602)
	equal(t, "structured content", r.Sum, 5)
	equal(t, "mirrored parameters", strings.Join(r.Mirrored, "; "), "region: us-west1; region: 日本語; region:  padded ")
	want := []float64(nil)
	if streaming {
		want = []float64{0, 50, 100}
	}
	if !slices.Equal(r.Progress, want) {
		t.Errorf("progress is %v, want %v", r.Progress, want)
	}

	if !slices.Contains(r.Prompts, "test_prompt_with_arguments") {
		t.Errorf("prompts are %q", r.Prompts)
	}
	equal(t, "prompt", r.Prompt, "Prompt with arguments: arg1='a', arg2='b'")

	if !slices.Contains(r.Resources, "test://static-text") || !slices.Contains(r.Resources, "test://static-binary") {
		t.Errorf("resources are %q", r.Resources)
	}
	if !slices.Contains(r.Templates, "test://template/{id}/data") {
		t.Errorf("templates are %q", r.Templates)
	}
	equal(t, "text resource", r.Text, "This is the content of the static text resource.")
	if !strings.HasPrefix(r.Blob, "iVBORw0KGgo") { // a PNG
		t.Errorf("binary resource is %q", r.Blob)
	}
	equal(t, "resource by template", r.Template, `{"id":"4 2","templateTest":true,"data":"Data for ID: 4 2"}`)
	equal(t, "code of a missing resource", r.Missing, -32602)
	if !slices.Equal(r.Completion, []string{"testValue1", "testValue2"}) {
		t.Errorf("completion is %q", r.Completion)
	}

	equal(t, "greeting", r.Greeting, "Hello, Zoë!")
	equal(t, "answer to a user who declines", r.Declined, "the user did not answer")
	equal(t, "result after two rounds", r.Likes, "Zoë likes green")
	equal(t, "answer of the model", r.Capital, "The model says: Paris")
	equal(t, "roots", r.Roots, "Roots: file:///a%20project")
	equal(t, "three answers at once", r.AtOnce, "Good day Zoë, of 1 roots")
	equal(t, "prompt that asks", r.AskedPrompt, "Use this context: 日本語")
	slices.Sort(r.Questions)
	equal(t, "questions", strings.Join(r.Questions, "; "), "Generate a greeting; Step 1: What is your name?; Step 2: What is your favorite color?; "+
		"What context should the prompt use?; What is the capital of France?; What is your name?; What is your name?; What is your name?")
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
