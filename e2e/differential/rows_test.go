package differential

import (
	"net/http"
	"strings"
	"testing"
)

// row is one request and what thaw answers.
type row struct {
	name  string
	spec  string // ids of the duties behind it
	query *query
	id    string // as sent; "": 7
	want  string // of thaw; see answer.outcome
}

// Outcomes that many rows have.
const (
	called    = "200 result(content resultType)"
	summed    = "200 result(content resultType structuredContent)"
	failed    = "200 isError(content resultType)"
	parse     = "400 -32700 no id"
	invalid   = "400 -32600"
	invalidNo = "400 -32600 no id"
	mismatch  = "400 -32020"
	params    = "200 -32602"
	metaLacks = "400 -32602"
	unknown   = "404 -32601"
)

// good are requests that have to be served.
func good(t *testing.T) []row {
	t.Helper()
	add := func() *query { return call("add", `{"a":1,"b":2}`) }
	return []row{
		{name: "discover", spec: "V-06", query: ask("server/discover", ""), want: "200 result(cacheScope capabilities resultType supportedVersions ttlMs)"},
		{name: "list tools", spec: "F-01 C-01", query: ask("tools/list", ""), want: "200 result(cacheScope resultType tools ttlMs)"},
		{name: "list prompts", spec: "F-28 C-01", query: ask("prompts/list", ""), want: "200 result(cacheScope prompts resultType ttlMs)"},
		{name: "list resources", spec: "F-32 C-01", query: ask("resources/list", ""), want: "200 result(cacheScope resources resultType ttlMs)"},
		{name: "list templates", spec: "F-36 C-01", query: ask("resources/templates/list", ""), want: "200 result(cacheScope resourceTemplates resultType ttlMs)"},
		{name: "call, structured", spec: "F-09 F-11", query: add(), want: summed},
		{name: "call, text", spec: "F-12", query: call("say", `{"text":"hi"}`), want: called},
		{name: "call without arguments", spec: "F-14", query: ask("tools/call", `"name":"steps",`), want: called},
		{name: "call with arguments null", spec: "F-14", query: call("steps", "null"), want: called},
		{name: "tool error", spec: "F-16", query: call("fail", "{}"), want: failed},
		{name: "progress", spec: "F-46", query: call("steps", "{}").replace(t, `"_meta":{`, `"_meta":{"progressToken":"p",`), want: "200 progress, result(content resultType)"},
		{name: "progress without a token", spec: "F-46", query: call("steps", "{}"), want: called},
		{name: "get prompt", spec: "F-29", query: ask("prompts/get", `"name":"greet","arguments":{"name":"Ada"},`), want: "200 result(description messages resultType)"},
		{name: "read resource", spec: "F-36 C-01", query: ask("resources/read", `"uri":"test://note",`), want: "200 result(cacheScope contents resultType ttlMs)"},
		{name: "read by template", spec: "F-36", query: ask("resources/read", `"uri":"test://note/1",`), want: "200 result(cacheScope contents resultType ttlMs)"},
		{name: "complete", spec: "F-41", query: ask("completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"},`), want: "200 result(completion resultType)"},

		{name: "id is a string", spec: "B-04", query: add().replace(t, `"id":7`, `"id":"7"`), id: `"7"`, want: summed},
		{name: "id is zero", spec: "B-03", query: add().replace(t, `"id":7`, `"id":0`), id: "0", want: summed},
		{name: "id is negative", spec: "B-03", query: add().replace(t, `"id":7`, `"id":-1`), id: "-1", want: summed},
		{name: "id is beyond 2^53", spec: "B-04", query: add().replace(t, `"id":7`, `"id":9007199254740993`), id: "9007199254740993", want: summed},
		{name: "id is an empty string", spec: "B-03", query: add().replace(t, `"id":7`, `"id":""`), id: `""`, want: summed},
		{name: "no clientInfo", spec: "B-26", query: add().replace(t, `"io.modelcontextprotocol/clientInfo":{"name":"differential","version":"1.0.0"},`, ""), want: summed},
		{name: "unknown members", spec: "B-35 B-37", query: add().replace(t, `Capabilities":{}`, `Capabilities":{"other":{"x":1}},"com.example/x":[1]`), want: summed},
		{name: "white space around the body", spec: "B-01", query: raw(" \r\n\t" + add().body + "\n"), want: summed},
		{name: "integer written 3.0", spec: "F-22", query: call("add", `{"a":3.0,"b":2}`), want: summed},
		{name: "Content-Type with charset", spec: "H-07", query: add().with("Content-Type", "application/json; charset=utf-8"), want: summed},
		{name: "Accept */*", spec: "H-07", query: add().with("Accept", "*/*"), want: summed},
		{name: "Accept absent", spec: "H-07", query: add().without("Accept"), want: summed},
		{name: "Accept JSON alone", spec: "H-07", query: add().with("Accept", "application/json"), want: summed},
		{name: "Accept event streams alone", spec: "H-07", query: add().with("Accept", "text/event-stream"), want: summed},
		{name: "Accept on two lines", spec: "H-07", query: add().with("Accept", "application/json", "text/event-stream"), want: summed},
		{name: "no Content-Type", spec: "H-07", query: add().without("Content-Type"), want: summed},
		{name: "white space around a header", spec: "M-07", query: add().with("Mcp-Name", "  add  "), want: summed},
		{name: "encoded Mcp-Name", spec: "M-08", query: add().with("Mcp-Name", "=?base64?YWRk?="), want: summed},
		{name: "mirrored parameter", spec: "M-19", query: call("place", `{"region":"us-west1"}`).with("Mcp-Param-Region", "us-west1"), want: called},
		{name: "mirrored parameter, encoded", spec: "M-08 M-13", query: call("place", `{"region":"日本語"}`).with("Mcp-Param-Region", "=?base64?5pel5pys6Kqe?="), want: called},
		{name: "mirrored parameter, empty", spec: "M-22", query: call("place", `{"region":""}`).with("Mcp-Param-Region", ""), want: called},
		{name: "mirrored parameter, absent", spec: "M-21", query: call("place", `{}`), want: called},
		{name: "mirrored integer, as a number", spec: "M-20", query: call("place", `{"count":42}`).with("Mcp-Param-Count", "42.0"), want: called},
		{name: "mirrored, looks encoded without a suffix", spec: "M-09", query: call("place", `{"region":"=?base64?SGVsbG8="}`).with("Mcp-Param-Region", "=?base64?SGVsbG8="), want: called},
		{name: "foreign Mcp-Param", spec: "M-23", query: add().with("Mcp-Param-Other", "x"), want: summed},
		{name: "Mcp-Session-Id", spec: "H-13", query: add().with("Mcp-Session-Id", "abc"), want: summed},
		{name: "Last-Event-ID", spec: "H-13", query: add().with("Last-Event-Id", "1_2"), want: summed},
		{name: "notification", spec: "H-09", query: raw(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,`+meta+`}}`).with("Mcp-Method", "notifications/cancelled").without("Mcp-Name"), want: "202 empty"},
		{name: "notification without Mcp headers", spec: "H-10", query: raw(`{"jsonrpc":"2.0","method":"notifications/other"}`).without("Mcp-Method").without("Mcp-Name").without("Mcp-Protocol-Version"), want: "202 empty"},
	}
}

// bad are requests that have to be refused, each for one reason.
func bad(t *testing.T) []row {
	t.Helper()
	add := func() *query { return call("add", `{"a":1,"b":2}`) }
	return []row{
		{name: "not JSON", spec: "B-12", query: raw("{"), want: parse},
		{name: "empty body", spec: "B-12", query: raw(""), want: parse},
		{name: "trailing bytes", spec: "B-12", query: raw(add().body + "x"), want: parse},
		{name: "two bodies", spec: "H-06", query: raw(add().body + add().body), want: parse},
		{name: "invalid UTF-8", spec: "B-01", query: call("say", "{\"text\":\"\xff\"}"), want: parse},
		{name: "byte order mark", spec: "B-01", query: raw("\ufeff" + add().body), want: parse},
		{name: "duplicate member", spec: "B-12", query: call("add", `{"a":1,"a":5,"b":2}`), want: parse},
		{name: "duplicate method", spec: "B-12", query: add().replace(t, `"method":`, `"method":"tools/list","method":`), want: parse},
		{name: "nested too deep", spec: "S-12", query: call("say", `{"text":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`), want: parse},
		{name: "member in another case", spec: "B-12", query: add().replace(t, `"method"`, `"Method"`), want: invalid},
		{name: "batch", spec: "H-06", query: raw("[" + add().body + "]"), want: invalidNo},
		{name: "empty batch", spec: "H-06", query: raw("[]"), want: invalidNo},
		{name: "scalar", spec: "H-06", query: raw("7"), want: invalidNo},
		{name: "null", spec: "H-06", query: raw("null"), want: invalidNo},
		{name: "response", spec: "B-20", query: raw(`{"jsonrpc":"2.0","id":7,"result":{}}`), want: invalid},
		{name: "id is null", spec: "B-03", query: add().replace(t, `"id":7`, `"id":null`), want: invalidNo},
		{name: "id is a fraction", spec: "B-03", query: add().replace(t, `"id":7`, `"id":7.5`), want: invalidNo},
		{name: "id is a boolean", spec: "B-03", query: add().replace(t, `"id":7`, `"id":true`), want: invalidNo},
		{name: "id is an object", spec: "B-03", query: add().replace(t, `"id":7`, `"id":{}`), want: invalidNo},
		{name: "request without an id", spec: "H-09", query: add().replace(t, `"id":7,`, ""), want: invalidNo},
		{name: "jsonrpc 1.0", spec: "B-01", query: add().replace(t, `"2.0"`, `"1.0"`), want: invalid},
		{name: "no jsonrpc", spec: "B-01", query: add().replace(t, `"jsonrpc":"2.0",`, ""), want: invalid},
		{name: "method is a number", spec: "B-12", query: add().replace(t, `"tools/call"`, "1"), want: invalid},
		{name: "params is an array", spec: "B-25", query: raw(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}`), want: metaLacks},
		{name: "no params", spec: "B-25", query: raw(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`), want: metaLacks},
		{name: "no _meta", spec: "B-25", query: add().replace(t, meta, `"x":1`), want: metaLacks},
		{name: "no protocolVersion", spec: "B-25", query: add().replace(t, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, ""), want: metaLacks},
		{name: "protocolVersion is a number", spec: "B-25", query: add().replace(t, `Version":"2026-07-28"`, `Version":1`), want: metaLacks},
		{name: "no clientCapabilities", spec: "B-25", query: add().replace(t, `,"io.modelcontextprotocol/clientCapabilities":{}`, ""), want: metaLacks},
		{name: "clientCapabilities is a list", spec: "B-25", query: add().replace(t, `Capabilities":{}`, `Capabilities":[]`), want: metaLacks},

		{name: "no version header", spec: "M-03", query: add().without("Mcp-Protocol-Version"), want: mismatch},
		{name: "version header differs", spec: "M-01", query: add().with("Mcp-Protocol-Version", "2025-11-25"), want: mismatch},
		{name: "_meta version differs", spec: "M-01", query: add().replace(t, `Version":"2026-07-28"`, `Version":"v999.0.0"`), want: mismatch},
		{name: "unknown version", spec: "V-02", query: add().replace(t, `Version":"2026-07-28"`, `Version":"v999.0.0"`).with("Mcp-Protocol-Version", "v999.0.0"), want: "400 -32022"},
		{name: "older version, modern request", spec: "V-02", query: add().replace(t, `Version":"2026-07-28"`, `Version":"2025-11-25"`).with("Mcp-Protocol-Version", "2025-11-25"), want: "400 -32022"},
		{name: "no Mcp-Method", spec: "M-03", query: add().without("Mcp-Method"), want: mismatch},
		{name: "Mcp-Method differs", spec: "M-01", query: add().with("Mcp-Method", "tools/list"), want: mismatch},
		{name: "Mcp-Method in another case", spec: "M-06", query: add().with("Mcp-Method", "TOOLS/CALL"), want: mismatch},
		{name: "Mcp-Method twice", spec: "M-24", query: add().with("Mcp-Method", "tools/call", "tools/list"), want: mismatch},
		{name: "Mcp-Method encoded", spec: "M-11", query: add().with("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?="), want: mismatch},
		{name: "no Mcp-Name", spec: "M-02", query: add().without("Mcp-Name"), want: mismatch},
		{name: "Mcp-Name differs", spec: "M-02", query: add().with("Mcp-Name", "say"), want: mismatch},
		{name: "Mcp-Name twice", spec: "M-24", query: add().with("Mcp-Name", "add", "say"), want: mismatch},
		{name: "Mcp-Name, bad padding", spec: "M-10", query: add().with("Mcp-Name", "=?base64?YWRkMQ?="), want: mismatch},
		{name: "Mcp-Name, marker in other letters", spec: "M-09", query: add().with("Mcp-Name", "=?BASE64?YWRk?="), want: mismatch},
		{name: "Mcp-Name, raw bytes", spec: "M-03", query: ask("tools/call", `"name":"größe",`), want: mismatch},
		{name: "no Mcp-Name for a resource", spec: "M-02", query: ask("resources/read", `"uri":"test://note",`).without("Mcp-Name"), want: mismatch},
		{name: "no Mcp-Name for a prompt", spec: "M-02", query: ask("prompts/get", `"name":"greet","arguments":{"name":"Ada"},`).without("Mcp-Name"), want: mismatch},
		{name: "mirrored parameter missing", spec: "M-19", query: call("place", `{"region":"us-west1"}`), want: mismatch},
		{name: "mirrored parameter differs", spec: "M-19", query: call("place", `{"region":"us-west1"}`).with("Mcp-Param-Region", "eu-west1"), want: mismatch},
		{name: "mirrored parameter twice", spec: "M-24", query: call("place", `{"region":"a"}`).with("Mcp-Param-Region", "a", "b"), want: mismatch},
		{name: "mirrored parameter, bad padding", spec: "M-10", query: call("place", `{"region":"Hello"}`).with("Mcp-Param-Region", "=?base64?SGVsbG8?="), want: mismatch},
		{name: "mirrored parameter, bad alphabet", spec: "M-10", query: call("place", `{"region":"Hello"}`).with("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?="), want: mismatch},
		{name: "mirrored header without an argument", spec: "M-21", query: call("place", `{}`).with("Mcp-Param-Region", "x"), want: mismatch},
		{name: "mirrored integer differs", spec: "M-20", query: call("place", `{"count":42}`).with("Mcp-Param-Count", "43"), want: mismatch},

		{name: "unknown method", spec: "H-11", query: ask("unknown/method", ""), want: unknown},
		{name: "initialize, modern", spec: "V-17", query: ask("initialize", ""), want: unknown},
		{name: "initialize, legacy", spec: "V-19", query: raw(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`).without("Mcp-Protocol-Version").without("Mcp-Method").without("Mcp-Name"), want: mismatch},
		{name: "ping", spec: "0.3", query: ask("ping", ""), want: unknown},
		{name: "logging/setLevel", spec: "0.3", query: ask("logging/setLevel", `"level":"info",`), want: unknown},
		{name: "resources/subscribe", spec: "0.3", query: ask("resources/subscribe", `"uri":"test://note",`), want: unknown},
		{name: "tasks/get without tasks", spec: "B-17", query: ask("tasks/get", `"taskId":"x",`).with("Mcp-Name", "x"), want: unknown},
		{name: "tasks/list", spec: "0.3", query: ask("tasks/list", ""), want: unknown},

		{name: "unknown tool", spec: "F-15", query: call("other", "{}"), want: params},
		{name: "name is a number", spec: "F-15", query: raw(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":1,`+meta+`}}`).with("Mcp-Name", "1"), want: params},
		{name: "arguments is an array", spec: "F-15", query: call("add", "[1,2]"), want: params},
		{name: "unknown prompt", spec: "F-30", query: ask("prompts/get", `"name":"other",`), want: params},
		{name: "prompt argument missing", spec: "F-30", query: ask("prompts/get", `"name":"greet","arguments":{},`), want: params},
		{name: "prompt argument is a number", spec: "F-29", query: ask("prompts/get", `"name":"greet","arguments":{"name":1},`), want: params},
		{name: "missing resource", spec: "F-33", query: ask("resources/read", `"uri":"test://other",`), want: params},
		{name: "missing resource of a template", spec: "F-33", query: ask("resources/read", `"uri":"test://note/2",`), want: params},
		{name: "uri is missing", spec: "F-39", query: ask("resources/read", "").with("Mcp-Name", "x"), want: mismatch},
		{name: "bad cursor", spec: "F-45", query: ask("tools/list", `"cursor":"nonsense",`), want: params},
		{name: "cursor is a number", spec: "F-45", query: ask("tools/list", `"cursor":1,`), want: params},
		{name: "bad log level", spec: "F-50", query: add().replace(t, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"loud",`), want: params},
		{name: "progress token is an object", spec: "0.2", query: add().replace(t, `"_meta":{`, `"_meta":{"progressToken":{},`), want: params},
		{name: "completion of an unknown prompt", spec: "F-42", query: ask("completion/complete", `"ref":{"type":"ref/prompt","name":"other"},"argument":{"name":"name","value":"a"},`), want: params},
		{name: "completion of a bad ref", spec: "F-42", query: ask("completion/complete", `"ref":{"type":"ref/tool","name":"add"},"argument":{"name":"a","value":"a"},`), want: params},
		{name: "completion without an argument", spec: "F-42", query: ask("completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},`), want: params},

		{name: "argument missing", spec: "F-16", query: call("add", `{"a":1}`), want: failed},
		{name: "argument of a wrong type", spec: "F-16", query: call("add", `{"a":"1","b":2}`), want: failed},
		{name: "argument is null", spec: "F-16", query: call("add", `{"a":null,"b":2}`), want: failed},
		{name: "argument is a fraction", spec: "F-16", query: call("add", `{"a":1.5,"b":2}`), want: failed},
		{name: "argument beyond its type", spec: "F-16", query: call("add", `{"a":9223372036854775808,"b":2}`), want: failed},
		{name: "argument that nobody declared", spec: "F-16", query: call("add", `{"a":1,"b":2,"c":3}`), want: failed},
		{name: "argument in another case", spec: "F-16", query: call("add", `{"A":1,"b":2}`), want: failed},

		{name: "GET", spec: "H-12", query: &query{verb: http.MethodGet, header: http.Header{"Accept": {"text/event-stream"}}}, want: "405 -32600 no id"},
		{name: "GET, modern", spec: "H-12", query: &query{verb: http.MethodGet, header: http.Header{"Accept": {"text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}}}, want: "405 -32600 no id"},
		{name: "DELETE", spec: "H-12", query: &query{verb: http.MethodDelete, header: http.Header{"Mcp-Protocol-Version": {"2026-07-28"}}}, want: "405 -32600 no id"},
		{name: "PUT", spec: "H-12", query: func() *query { q := add(); q.verb = http.MethodPut; return q }(), want: "405 -32600 no id"},
		{name: "foreign Origin", spec: "H-02", query: add().with("Origin", "http://evil.example.com"), want: "403 -32600 no id"},
		{name: "foreign Host", spec: "H-05", query: func() *query { q := add(); q.host = "evil.example.com"; return q }(), want: "403 -32600 no id"},
		{name: "Content-Type text/plain", spec: "H-07", query: add().with("Content-Type", "text/plain"), want: "415 -32600 no id"},
		{name: "Content-Encoding gzip", spec: "H-07", query: add().with("Content-Encoding", "gzip"), want: "415 -32600 no id"},
		{name: "body too large", spec: "S-12", query: call("say", `{"text":"`+strings.Repeat("x", bodyLimit)+`"}`), want: "413 -32600 no id"},
		{name: "headers too large", spec: "M-28", query: add().with("X-Padding", strings.Repeat("x", 40<<10)), want: "431 -32600 no id"},
	}
}
