package thaw_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

// What is returned as any is what it is at run time.
func TestResultOfAny(t *testing.T) {
	for name, c := range map[string]struct {
		out        any
		text       string
		structured string
		fails      bool
	}{
		"a result":          {out: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "own"}}}, text: "own"},
		"an error result":   {out: &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "own"}}, IsError: true}, text: "own"},
		"no result":         {out: (*mcp.CallToolResult)(nil), fails: true},
		"JSON":              {out: json.RawMessage(` {"a": [1, 2]} `), text: `{"a":[1,2]}`, structured: `{"a":[1,2]}`},
		"no JSON":           {out: json.RawMessage(`{"a":`), fails: true},
		"JSON of no length": {out: json.RawMessage{}, fails: true},
		"a map":             {out: map[string]int{"n": 1}, text: `{"n":1}`, structured: `{"n":1}`},
		"a string":          {out: "s", text: `"s"`, structured: `"s"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := thawtest.Start(t, thaw.NewTool("t", "", func(context.Context, struct{}) (any, error) { return c.out, nil }, nil), nil, nil)
			if c.fails {
				if !got.IsError() {
					t.Errorf("%q, %v", got.Text(), got.Err())
				}
				return
			}
			if got.Err() != nil && name != "an error result" || got.Text() != c.text || string(got.Result().StructuredContent) != c.structured || got.IsError() != (name == "an error result") {
				t.Errorf("%q, %s, %v", got.Text(), got.Result().StructuredContent, got.Err())
			}
		})
	}
}
