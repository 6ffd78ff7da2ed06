package cases

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw/mcp"
)

var tasks = map[string]verdict{
	"B-41": {production: production{tasks: true}, scenes: []scene{{
		says: []string{
			"cancel: result.resultType complete and nothing else of weight",
			"get: status completed with the same result, byte for byte", "failed stays failed with error",
		},
		items: []string{
			"task T runs to completed with a result", "tasks/cancel T", "tasks/get T",
			"same with a failed task, and a second cancel of a cancelled one",
		},
		play: cancelledTooLate,
	}}},

	"B-43": {production: production{tasks: true, server: offerFaults}, scenes: []scene{
		{
			says: []string{"failed tasks carry error.code and error.message, no stack trace", "isError: status completed", "every body parses as JSON"},
			items: []string{
				"returns an error", "panics", "returns NaN in structuredContent", "returns +Inf", "returns a channel / cyclic value",
				"returns isError true", "the first five once more without a task (synchronous call)",
			},
			play: faultyHandlers,
		},
		{
			says:  []string{"Asking for input → status input_required via tasks/get"},
			items: []string{"asks for elicitation while running as a task"},
			play:  askingTask,
		},
		{
			says:  []string{"no task stays working past its TTL", "A dead worker → failed at the latest after the TTL or lease"},
			items: []string{"process killed (worker never comes back)"},
			play:  deadWorkers,
		},
	}},

	"B-44": {
		production: production{tasks: true, identified: true, trustsOther: true, as: "alice", declares: canDoTasks},
		rules: []rule{
			{
				says:  "all: code -32602 (401 for anonymous when auth is on)",
				on:    []string{"bob gets", "bob cancels", "bob answers", "same sub from another issuer", "unknown id", "empty", "path-like", "NUL", "5000 characters"},
				holds: noSuchTask,
			},
			{says: "all: code -32602 (401 for anonymous when auth is on)", on: []string{"number", "null"}, holds: all(status(200, 400), code(mcp.CodeInvalidParams), oneMessage, nothingRan)},
			{says: "all: code -32602 (401 for anonymous when auth is on)", on: []string{"anonymous"}, holds: refused},
		},
		scenes: []scene{
			{says: []string{"foreign and unknown answers are equal but for the id", "T unchanged"}, items: []string{"alice creates T"}, play: foreignTasks},
			{says: []string{"the sub may hold |, #, : or / without colliding with another owner's key"}, play: ownersWithSeparators},
		},
	},

	"B-46": {production: production{tasks: true}, scenes: []scene{
		{
			says:  []string{"get: -32602, or status failed; never working", "ttlMs integer ≥ 0 or null"},
			items: []string{"create T with ttlMs 60000", "move the clock by 61 s while the item is still in the table", "tasks/get, tasks/update, tasks/cancel", "the worker now writes its result"},
			play:  expiredTask,
		},
		{
			says:  []string{"stored attribute: 10 digits, createdAt + 60 s (rounded up)"},
			items: []string{"look at the stored item"},
			play:  storedExpiry,
		},
	}},

	"B-47": {
		production: production{tasks: true, server: offerSlow},
		rules: []rule{
			{says: "first: resultType task, flat task fields", on: []string{"declared in the right place"}, holds: all(status(200), taskHandle)},
			{says: "second, third, tasks/get: -32021", on: []string{"bare _meta key", "old shape", "not declared, tasks/get"}, holds: lacks(needsTasks)},
			{says: "either: resultType complete", on: []string{"not declared, tool can run both ways"}, holds: all(status(200), complete, text("ran in the request"), without("taskId"))},
			{says: "null: -32021 or -32602", on: []string{"declared null"}, holds: lacks(needsTasks)},
		},
		scenes: []scene{{says: []string{"Only clientCapabilities.extensions on this request counts.", "also for tasks/get, update, cancel"}, play: undeclaredTasks}},
	},

	"B-50": {production: production{tasks: true, server: offerEcho}, scenes: []scene{{
		says: []string{
			"structuredContent equal as JSON text (number tokens included)", `[] and {} stay, null stays null, "" stays`,
			"500 kB result: completed or failed with -32603, never stuck",
		},
		items: []string{"raw", "also", "run as task", "tasks/get", "compare with the same tool run synchronously"},
		play:  exactResults,
	}}},
}

const needsTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// noSuchTask is the one answer to an id that is not the caller's (T-25, T-47).
var noSuchTask = all(status(200), code(mcp.CodeInvalidParams), oneMessage, nothingRan, bodyHas(`"message":"Unknown task: it never was, or has expired"`))

// emptyAck is the result of cancel and update (T-28, T-36).
var emptyAck = all(status(200), complete, onlyMembers("resultType", "_meta"))

// taskHandle wants a new task, flat (T-12, T-15).
func taskHandle(a *answer) error {
	return all(member(`"task"`, "resultType"), without("task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval"), taskMembers)(a)
}

// showsTask wants an answer of tasks/get.
func showsTask(a *answer) error {
	return all(status(200), member(`"complete"`, "resultType"), without("task", "requestState", "ttl", "pollInterval"), taskMembers)(a)
}

// taskMembers wants what every task shows.
func taskMembers(a *answer) error {
	if id := unquoted(a.result("taskId")); len(id) < 22 { // 128 bits (T-46)
		return fmt.Errorf("taskId is %q", id)
	}
	if status := a.result("status"); status.Kind() != '"' {
		return fmt.Errorf("status is %q", status)
	}
	for _, name := range []string{"createdAt", "lastUpdatedAt"} {
		if _, err := time.Parse(time.RFC3339, unquoted(a.result(name))); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if ttl := a.result("ttlMs"); string(ttl) != "null" {
		if n, err := strconv.ParseInt(string(ttl), 10, 64); err != nil || n < 0 {
			return fmt.Errorf("ttlMs is %q", ttl)
		}
	}
	return nil
}

// onlyMembers wants a result of no other members.
func onlyMembers(names ...string) check {
	return func(a *answer) error {
		var members map[string]jsontext.Value
		if m := a.final(); m == nil || !decode(m.Result, &members) {
			return fmt.Errorf("there is no result")
		}
		for _, name := range names {
			delete(members, name)
		}
		if len(members) > 0 {
			return fmt.Errorf("the result has more than %q: %v", names, members)
		}
		return nil
	}
}

// cancelledTooLate cancels tasks that have ended.
func cancelledTooLate(t *testing.T, s *stage) {
	for _, test := range []struct{ tool, arguments, status, holds string }{
		{"slow_compute", `{"seconds":0.01,"label":"x"}`, "completed", "result"},
		{"failing_job", `{}`, "completed", "result"},
		{"protocol_error_job", `{}`, "failed", "error"},
		{"confirm_delete", `{"filename":"a"}`, "cancelled", ""},
	} {
		call := s.call(test.tool, test.arguments, "")
		for _, d := range s.doors(call) {
			t.Run(test.status+" "+test.tool+", "+d.name(), func(t *testing.T) {
				id := s.become(t, d, call)
				if test.status == "cancelled" {
					s.until(t, d, id, "input_required")
					s.expectAt(t, d, s.about(mcp.MethodCancelTask, id, ""), emptyAck)
				}
				before := s.until(t, d, id, test.status)
				for _, name := range []string{"result", "error"} {
					if has := before.result(name) != nil; has != (name == test.holds) {
						t.Errorf("it has %s: %t\n%s", name, has, before)
					}
				}
				for range 2 {
					s.expectAt(t, d, s.about(mcp.MethodCancelTask, id, ""), emptyAck)
					s.expectAt(t, d, s.about(mcp.MethodUpdateTask, id, `{"confirm":{"action":"accept"}}`), emptyAck)
					s.expectAt(t, d, s.about(mcp.MethodGetTask, id, ""), sameAs(before))
				}
			})
		}
	}
}

// foreignTasks tries alice's task as others, and ids that are nobody's.
func foreignTasks(t *testing.T, s *stage) {
	const unknown = "00000000-0000-4000-8000-000000000000"
	for _, d := range s.doors(s.call("echo", `{}`, "")) {
		t.Run(d.name(), func(t *testing.T) {
			id := s.waitingTask(t, d)
			before := s.until(t, d, id, "input_required")
			want := s.play(t, d, s.about(mcp.MethodGetTask, unknown, "").bearing(goodToken("bob")))
			if err := noSuchTask(want); err != nil {
				t.Errorf("%v: %s", err, want)
			}
			for _, user := range []string{"bob", "admin", "alice@other-issuer", "alice"} {
				ids := []string{unknown, id + " ", id + "\x00", strings.ToUpper(id), id[:35], "../" + id, ""}
				if user != "alice" {
					ids = append(ids, id)
				}
				for _, id := range ids {
					for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
						x := s.about(method, id, `{"confirm":{"action":"accept","content":{"confirm":true}}}`)
						s.expectAt(t, d, x.bearing(goodToken(user)), all(nothingRan, sameAs(want)))
					}
				}
			}
			s.expectAt(t, d, s.about(mcp.MethodGetTask, id, ""), sameAs(before))
		})
	}
}

// ownersWithSeparators has owners whose names would run into each other if they were only
// put side by side.
func ownersWithSeparators(t *testing.T, s *stage) {
	var tokens, ids []string
	for _, owner := range []struct{ issuer, subject string }{
		{issuer, "alice"}, {issuer, "alice|"}, {issuer, "|alice"}, {issuer, "alice|bob"}, {issuer, "alice#task"}, {issuer, "alice:bob"},
		{issuer, "/alice"}, {issuer, "..alice"}, {issuer, issuer + "|alice"}, {otherIssuer, "alice"}, {otherIssuer, "alice|"},
	} {
		claims := strings.Replace(claimsOf("guest"), `"sub":"guest"`, `"sub":`+jsonText(owner.subject), 1)
		claims = strings.Replace(claims, jsonText(issuer), jsonText(owner.issuer), 1)
		tokens = append(tokens, jws([]byte(goodHeader), []byte(`{`+claims+`,"aud":"`+audience+`"}`), k1().sign))
	}
	for _, token := range tokens {
		id := s.become(t, s.http, s.call("confirm_delete", `{"filename":"a"}`, "").bearing(token))
		untilShown(t, s.http, s.about(mcp.MethodGetTask, id, "").bearing(token), "input_required") // nothing runs from here on
		ids = append(ids, id)
	}
	for i, id := range ids {
		for k, token := range tokens {
			want := noSuchTask
			if i == k {
				want = showsTask
			}
			s.expectAt(t, s.http, s.about(mcp.MethodGetTask, id, "").bearing(token), want)
		}
	}
}

// undeclaredTasks has clients that knew tasks one request ago, or say so elsewhere.
func undeclaredTasks(t *testing.T, s *stage) {
	const extension = "io.modelcontextprotocol/tasks"
	for _, d := range s.doors(s.call("echo", `{}`, "")) {
		t.Run(d.name(), func(t *testing.T) {
			id := s.waitingTask(t, d)
			before := s.until(t, d, id, "input_required")
			for _, capabilities := range []string{
				`{}`, `{"tasks":{}}`, `{"` + extension + `":{}}`, `{"experimental":{"` + extension + `":{}}}`, `{"extensions":{}}`, `{"extensions":[]}`,
				`{"extensions":{"` + extension + `":null}}`, `{"extensions":{"` + extension + `":true}}`, `{"extensions":{"` + extension + `":[]}}`,
				`{"extensions":{"` + strings.ToUpper(extension) + `":{}}}`, `{"Extensions":{"` + extension + `":{}}}`,
			} {
				for _, x := range []*exchange{
					s.request(mcp.MethodGetTask, `"taskId":`+jsonText(id), ""),
					s.request(mcp.MethodCancelTask, `"taskId":`+jsonText(id), ""),
					s.request(mcp.MethodUpdateTask, `"taskId":`+jsonText(id)+`,"inputResponses":{"confirm":{"action":"accept"}}`, ""),
					s.request(mcp.MethodGetTask, `"taskId":"gate-test"`, ""),
					s.call("slow", `{}`, ""),
				} {
					s.expectAt(t, d, x.by(capabilities), all(nothingRan, lacks(needsTasks)))
				}
			}
			s.expectAt(t, d, s.about(mcp.MethodGetTask, id, ""), sameAs(before))
			// Settings of the extension that nobody knows do not turn it off.
			s.expectAt(t, d, s.call("slow", `{}`, "").by(`{"extensions":{"`+extension+`":{"later":1}}}`), all(status(200), taskHandle))
		})
	}
}
