package cases

import (
	"slices"
	"strings"
	"testing"

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

	"B-26": {
		production: production{tasks: true, declares: canDoTasks},
		rules: []rule{
			{says: "match: 200", on: []string{"match"}, holds: all(showsTask, member(`"input_required"`, "status"))},
			{says: "differs: 400, -32020, task not cancelled", on: []string{"differs"}, holds: mismatch},
			{says: "missing: 400/-32020 preferred, 200 tolerated", on: []string{"missing"}, holds: mismatch},
		},
		scenes: []scene{{says: []string{"differs: 400, -32020, task not cancelled"}, play: mismatchedTask}},
	},
}

// mismatchedTask tries every method about a task under the name of another one, and looks
// whether anything has become of it.
func mismatchedTask(t *testing.T, s *stage) {
	for _, d := range s.doors(s.call("echo", `{}`, "")) {
		t.Run(d.name(), func(t *testing.T) {
			id, other := s.waitingTask(t, d), s.waitingTask(t, d)
			before := s.until(t, d, id, "input_required")
			for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
				x := s.about(method, id, `{"confirm":{"action":"accept","content":{"confirm":true}}}`)
				for _, name := range []string{other, "some-other-task", strings.ToUpper(id), ""} {
					s.expectAt(t, d, x.naming(name), mismatch)
				}
			}
			s.expectAt(t, d, s.about(mcp.MethodGetTask, id, ""), sameAs(before))
		})
	}
}

// naming is x with another Mcp-Name.
func (x *exchange) naming(name string) *exchange {
	y := *x
	y.headers = slices.Clone(x.headers)
	for i := range y.headers {
		if y.headers[i].name == mcp.HeaderName {
			y.headers[i].value = name
		}
	}
	return &y
}
