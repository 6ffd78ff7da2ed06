package cases

import (
	"github.com/thaw-mcp/thaw/mcp"
)

// mismatch is how a header that does not agree with the body is refused (M-03).
var mismatch = all(status(400), code(mcp.CodeHeaderMismatch), oneMessage, nothingRan)

var headers = map[string]verdict{
	"B-23": {rules: []rule{
		{
			says:  "first: past the header check (200, or -32602 if the resource does not exist)",
			on:    []string{"wrapped URI"},
			holds: all(status(200), either(complete, code(mcp.CodeInvalidParams))),
		},
		{
			says:  "second: 200",
			on:    []string{"ASCII name wrapped needlessly"},
			holds: all(status(200), complete, text("x"), ran("echo")),
		},
		{
			says: "third to seventh: status 400, code -32020, tool not run",
			on: []string{
				"bad base64", "bad UTF-8 inside", "raw UTF-8 bytes in the header", "upper-case marker is literal text",
				"version and method are never wrapped",
			},
			holds: mismatch,
		},
	}},

	"B-24": {rules: []rule{
		{says: "first two: 200", on: []string{"42.0 v 42"}, holds: all(status(200), complete, structured(`{"region":"us-west1","priority":42}`), ran("route"))},
		{
			says:  "first two: 200",
			on:    []string{"header 42, body 42.0"},
			holds: all(status(200), complete, structured(`{"region":"us-west1","priority":42.0}`), ran("route")),
		},
		{
			says:  "nearly equal, beyond range, hex, string 1.0 v 1: status 400, code -32020",
			on:    []string{"nearly equal", "beyond the safe range", "hex", "number header for a string parameter"},
			holds: mismatch,
		},
	}},
}
