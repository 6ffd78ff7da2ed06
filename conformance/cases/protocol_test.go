package cases

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
)

// is takes a JSON value that is exactly this text.
func is(want string) func(jsontext.Value) bool {
	return func(v jsontext.Value) bool { return string(v) == want }
}

// lists takes an array that has this text.
func lists(want string) func(jsontext.Value) bool {
	return func(v jsontext.Value) bool {
		var texts []string
		return decode(v, &texts) && slices.Contains(texts, want)
	}
}

var protocol = map[string]verdict{
	"B-19": {rules: []rule{
		{
			says:  "first two, number, array: status 400, code -32602",
			on:    []string{"no protocolVersion in _meta", "no clientCapabilities", "version is a number", "capabilities is an array"},
			holds: all(status(400), code(mcp.CodeInvalidParams), oneMessage),
		},
		{says: "no clientInfo: status 200", on: []string{"no clientInfo"}, holds: all(status(200), complete)},
		{
			says: "unknown version: 400, -32022, data.requested == 1900-01-01, data.supported contains 2026-07-28",
			on:   []string{"unknown version, header and body agree"},
			holds: all(status(400), code(mcp.CodeUnsupportedVersion),
				data("requested", is(`"1900-01-01"`)), data("supported", lists("2026-07-28"))),
		},
		{
			says:  "known header, unknown body: 400 with -32020 or -32022",
			on:    []string{"known header, unknown body"},
			holds: all(status(400), code(mcp.CodeHeaderMismatch, mcp.CodeUnsupportedVersion)),
		},
		{says: "no header: 400, -32020", on: []string{"no version header"}, holds: all(status(400), code(mcp.CodeHeaderMismatch))},
	}},

	"B-21": {
		// One of its methods is asked of a server without prompts.
		production: production{server: func(s *thaw.Server) { s.Prompts = nil }},
		rules: []rule{
			{
				says:  "first five: status 404, code -32601, content-type application/json",
				on:    []string{"unknown", "ping", "prompts/list on a server without prompts", "wrong case", "tasks/list"},
				holds: all(status(404), code(mcp.CodeMethodNotFound), hasHeader("Content-Type", "application/json"), nothingRan),
			},
			{says: "unknown tool: code -32602 and no result", on: []string{"unknown tool"}, holds: all(code(mcp.CodeInvalidParams), nothingRan)},
		},
	},
}
