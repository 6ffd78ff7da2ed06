package cases

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/thaw-mcp/thaw/mcp"
)

// refusedAsInvalid is how a message that is none is refused.
var refusedAsInvalid = all(status(400), code(mcp.CodeInvalidRequest), oneMessage, nothingRan)

var jsonRPC = map[string]verdict{
	"B-08": {
		rules: []rule{
			{says: "response text contains the id token exactly as sent", holds: func(a *answer) error { return bodyHas(`"id":` + string(a.to.id()))(a) }},
			{says: "on the result path", on: []string{"2^53+1", "neighbour", "max int64"}, holds: all(status(200), complete)},
			{says: "every error path", on: []string{"error path"}, holds: all(status(404), code(mcp.CodeMethodNotFound))},
		},
		scenes: []scene{{says: []string{"also header errors, auth of the body, and the SSE form"}, play: exactIDs}},
	},

	"B-10": {rules: []rule{
		{says: "status 400", holds: status(400)},
		{says: "code -32600", holds: code(mcp.CodeInvalidRequest)},
		{says: "counter unchanged", holds: nothingRan},
	}},

	"B-11": {rules: []rule{
		{says: "every case: status 400, code -32600, a single object (not an array) as body", holds: refusedAsInvalid},
		{says: "counter unchanged", holds: nothingRan},
	}},

	"B-13": {rules: []rule{
		{says: "no 5xx; response body is valid UTF-8 JSON", holds: func(a *answer) error {
			if !utf8.Valid(a.body) || a.final() == nil {
				return errors.New("the body is no JSON in UTF-8")
			}
			return no5xx(a)
		}},
		{
			says:  "A lone surrogate is refused, or replaced by U+FFFD by documented choice",
			on:    []string{"lone high surrogate in an argument"},
			holds: all(status(400), code(mcp.CodeParseError), nothingRan), // the documented choice: refused like any bad UTF-8
		},
		{says: "good pair: text is U+1F600", on: []string{"good pair"}, holds: all(status(200), text("\U0001F600"))},
		{says: "NUL: text is a, U+0000, b", on: []string{"NUL in an argument"}, holds: all(status(200), text("a\x00b"))},
		{
			says:  "id case: 400, or the id comes back as the same escape",
			on:    []string{"lone surrogate in the id"},
			holds: either(status(400), bodyHas(`"id":"\udc00"`)),
		},
	}, scenes: []scene{{says: []string{"also through task storage"}, play: textsInTasks}}},

	"B-14": {rules: []rule{
		{says: "counter never changes", holds: func(a *answer) error {
			for _, r := range a.ran {
				if r.tool == "counter_add" {
					return errors.New("counter_add ran")
				}
			}
			return nil
		}},
		{
			says:  "first and third: echo runs, or 400; second: tools/list answers",
			on:    []string{"Name after name", "long s"},
			holds: either(all(status(200), complete, text("x"), ran("echo")), all(status(400), nothingRan)),
		},
		{
			says:  "first and third: echo runs, or 400; second: tools/list answers",
			on:    []string{"Method after method"},
			holds: all(status(200), nothingRan, func(a *answer) error { return isArray(a, "tools") }),
		},
		{says: "only wrong case: 400 (-32600)", on: []string{"only wrong case"}, holds: refusedAsInvalid},
		{
			says:  "wrong case inside arguments: text counts as missing (isError true)",
			on:    []string{"wrong case inside arguments"},
			holds: all(status(200), toolError("text"), nothingRan),
		},
	}, scenes: []scene{{says: []string{"in _meta"}, play: foldedMeta}, {says: []string{"in JWT claims"}, play: foldedClaims}, {says: []string{"in task records"}, play: foldedRecords}}},

	"B-16": {rules: []rule{
		{says: "process lives, next request works", holds: no5xx}, // the rest is asserted of every answer
		{
			says:  "no params, null, array, string, _meta null: status 400, code -32602, -32600 or -32020",
			on:    []string{"no params", "params null", "params array", "params string", "_meta null"},
			holds: all(status(400), code(mcp.CodeInvalidParams, mcp.CodeInvalidRequest, mcp.CodeHeaderMismatch), nothingRan),
		},
		{
			says:  "left out for noargs: result complete",
			on:    []string{"arguments left out, tool without inputs"},
			holds: all(status(200), complete, text("ok"), ran("noargs")),
		},
		{
			says:  "arguments null: complete or -32602, never 5xx",
			on:    []string{"arguments null"},
			holds: all(no5xx, either(complete, code(mcp.CodeInvalidParams))),
		},
		{says: "arguments array: -32602", on: []string{"arguments array"}, holds: all(code(mcp.CodeInvalidParams), nothingRan)},
		{
			says:  "left out for echo: isError true (or -32602), handler not run",
			on:    []string{"arguments left out, input required"},
			holds: all(either(toolError("text"), code(mcp.CodeInvalidParams)), nothingRan),
		},
		// The case leaves Mcp-Name to the body, which has none: the header check may fire first.
		{says: "a header check that fires first may say -32020", on: []string{"name missing"}, holds: all(code(mcp.CodeInvalidParams, mcp.CodeHeaderMismatch), nothingRan)},
	}},
}

// isArray wants a member of the result to be an array with something in it.
func isArray(a *answer, name string) error {
	if v := a.result(name); v.Kind() != '[' || string(v) == "[]" {
		return fmt.Errorf("result %s is %.80q, want an array that is not empty", name, v)
	}
	return nil
}

// exactIDs sends ids that no float64 holds down the paths that B-08 names beside its
// requests.
func exactIDs(t *testing.T, s *stage) {
	const id = "9007199254740993"
	withID := func(x *exchange) *exchange {
		x.body = []byte(strings.Replace(string(x.body), `"id":"of-the-test"`, `"id":`+id, 1))
		return x
	}
	echo := func(own header) *exchange { return s.post(withID(s.call("echo", `{"text":"x"}`, "")).body, own) }
	for _, test := range []struct {
		name  string
		x     *exchange
		holds check
	}{
		{"header error", echo(header{"Mcp-Name", "noargs"}), all(status(400), code(mcp.CodeHeaderMismatch))},
		{"version error", echo(header{"MCP-Protocol-Version", "1900-01-01"}), all(status(400), code(mcp.CodeHeaderMismatch))},
		{"bad params", withID(s.request("tools/call", `"name":"echo","arguments":7`, "")), code(mcp.CodeInvalidParams)},
		{"unknown tool", withID(s.call("nope", `{}`, "")), code(mcp.CodeInvalidParams)},
		{"tool error", withID(s.call("echo", `{}`, "")), toolError()},
		{"stream", withID(s.call("steps", `{}`, `"progressToken":1`)), func(a *answer) error {
			if a.door == "HTTP" && !a.streamed {
				return errors.New("the answer is no stream")
			}
			return complete(a)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.expect(t, test.x, all(test.holds, func(a *answer) error {
				if got := string(a.final().ID); got != id {
					return fmt.Errorf("id %s came back as %q", id, got)
				}
				return nil
			}))
		})
	}
}

// foldedClaims has tokens whose claims are spelled in another case: they count as missing,
// and change nothing beside those in the right case.
func foldedClaims(t *testing.T, s *stage) {
	s = newStage(t, s.expansion, production{identified: true})
	claims := claimsOf("guest") + `,"aud":"` + audience + `"`
	for _, test := range []struct {
		claims string
		holds  check
	}{
		{claims + `,"SUB":"alice","Scope":"admin","\u017fub":"alice","ISS":"https://evil.example"`, all(status(200), complete, calledBy("guest", ""))},
		{strings.Replace(claims, `"sub"`, `"Sub"`, 1), all(status(401), challenged("invalid_token"), nothingRan)},
		{strings.Replace(claims, `"exp"`, `"EXP"`, 1), all(status(401), challenged("invalid_token"), nothingRan)},
		{strings.Replace(claims, `"aud"`, `"Aud"`, 1), all(status(401), challenged("invalid_token"), nothingRan)},
		{claims + `,"sub":"alice"`, all(status(401), challenged("invalid_token"), nothingRan)},
	} {
		s.expect(t, s.withToken(jws([]byte(goodHeader), []byte(`{`+test.claims+`}`), k1().sign)), test.holds)
	}
}

// foldedMeta spells the members of _meta in another case: they count as missing.
func foldedMeta(t *testing.T, s *stage) {
	for _, name := range []string{mcp.MetaProtocolVersion, mcp.MetaClientCapabilities} {
		x := s.call("echo", `{"text":"x"}`, "")
		folded := strings.Replace(string(x.body), name, strings.ToUpper(name), 1)
		if folded == string(x.body) {
			t.Fatalf("the request has no %s", name)
		}
		x.body = []byte(folded)
		s.expect(t, x, all(status(400), code(mcp.CodeInvalidParams), nothingRan))
	}
}
