package cases

import (
	"fmt"

	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

var lambdaEvents = map[string]verdict{
	"B-01": {rules: []rule{
		{says: "status 200", holds: status(200)},
		{says: "result.resultType == complete", holds: all(complete, text("hi"), ran("echo"))},
		{says: "no -32020", holds: code(0)},
	}},

	"B-03": {rules: []rule{
		{
			says:  "first three and two-lines: status 200",
			on:    []string{"charset on content-type", "charset and q in accept", "upper case type", "two lines through an ALB"},
			holds: all(status(200), complete, text("a"), ran("echo")),
		},
		{
			says:  "wildcard: status 200 preferred; 406 tolerated if documented",
			on:    []string{"wildcard"},
			holds: all(status(200), complete, text("a"), ran("echo")), // the leniency is documented: H-07
		},
		{
			says:  "wrong type: status 415 or 400, tool not run",
			on:    []string{"wrong type"},
			holds: all(status(415, 400), nothingRan),
		},
	}},

	"B-05": {rules: []rule{
		// That the server goes on is asserted of every answer.
		{says: "every case: the handler returns a well-formed proxy response and the process lives", holds: all(oneMessage, nothingRan)},
		{says: "all maps null: status 400, code -32020", on: []string{"all maps null"}, holds: all(status(400), code(mcp.CodeHeaderMismatch))},
		{
			says:  "body null/missing: status 400, code -32700 or -32600",
			on:    []string{"body null", "body missing on a function URL"},
			holds: all(status(400), code(mcp.CodeParseError, mcp.CodeInvalidRequest)),
		},
		{says: "a clean 4xx/5xx proxy response", on: []string{"empty event object"}, holds: func(a *answer) error {
			if a.status < 400 || a.code() == 0 {
				return fmt.Errorf("status %d and code %d, want an error", a.status, a.code())
			}
			return nil
		}},
	}},

	"B-07": {
		production: production{options: func(o *serve.Options) { o.BasePath = "/agents" }},
		rules: []rule{
			{
				says:  "HTTP API and REST with base path configured: status 200",
				on:    []string{"HTTP API, stage in rawPath", "REST, base-path mapping"},
				holds: all(status(200), complete),
			},
			{says: "percent-encoded: 200 or 404, never 5xx", on: []string{"percent-encoded path"}, holds: status(200, 404)},
			{says: "other path: 404", on: []string{"other path"}, holds: status(404)},
		},
	},
}
