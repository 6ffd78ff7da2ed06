package cases

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// runtimeTexts stand for what only a run can know.
var runtimeTexts = map[string]string{"$JWT": "token", "$TASK": "task-1", "$NEXT": "next"}

// one expands the request that a YAML text describes.
func one(t *testing.T, text string) (*exchange, error) {
	t.Helper()
	var r call
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return (&expansion{d: loadFile(t), text: runtimeTexts}).exchange(&r)
}

const metaText = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"BugLog","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}`

func TestExpandBody(t *testing.T) {
	for _, test := range []struct{ name, call, want string }{
		{"number tokens", `body: {a: 9007199254740993, b: 42.0, c: 1e2, d: -0.0, e: "42.0"}`, `{"a":9007199254740993,"b":42.0,"c":1e2,"d":-0.0,"e":"42.0"}`},
		{"literals", `body: {n: null, t: true, f: false, e: {}, l: [], s: ''}`, `{"n":null,"t":true,"f":false,"e":{},"l":[],"s":""}`},
		{"members in their order", `body: {z: 1, a: 2}`, `{"z":1,"a":2}`},
		{"texts", `body: {t: "a\0b\u2028\U0001F600\""}`, `{"t":"a\u0000b` + "\u2028\U0001F600" + `\""}`},
		{"absent", `body: {a: $ABSENT, b: [1]}`, `{"b":[1]}`},
		{"meta", `body: {_meta: $META}`, `{"_meta":` + metaText + `}`},
		{"meta in a raw body", `body_raw: ' [$META,9007199254740993] '`, ` [` + metaText + `,9007199254740993] `},
		{"capabilities", `{body: {_meta: $META}, capabilities: {elicitation: {}}}`, `{"_meta":` + strings.Replace(metaText, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1) + `}`},
		{"more meta", `{body: {_meta: $META}, meta_extra: {progressToken: 0}}`, `{"_meta":` + strings.TrimSuffix(metaText, "}") + `,"progressToken":0}}`},
		{"within texts", `body: {a: $TASK, b: "Bearer $JWT", c: $NEXT}`, `{"a":"task-1","b":"Bearer token","c":"next"}`},
		{"base64", `body_base64_of: {a: 1}`, `eyJhIjoxfQ==`},
		{"raw and empty", `body_raw: ''`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			x, err := one(t, test.call)
			if err != nil {
				t.Fatal(err)
			}
			if x.body == nil || string(x.body) != test.want {
				t.Errorf("body %s\nwant %s", x.body, test.want)
			}
		})
	}
}

func TestExpandRefuses(t *testing.T) {
	for _, test := range []struct{ name, call, says string }{
		{"a number that is no JSON", `body: {a: 0x2A}`, "0x2A"},
		{"a date", `body: {a: 2026-07-28}`, "timestamp"},
		{"a member twice", "body: {a: {b: 1, b: 2}}", "twice"},
		{"a placeholder that nothing stands for", `body: {a: $SECRET}`, "$SECRET"},
		{"the same in a raw body", `body_raw: 'x $SECRET'`, "$SECRET"},
		{"two bodies", `{body: {}, body_raw: x}`, "more than one"},
		{"capabilities without meta", `{body: {}, capabilities: {}}`, "no $META"},
		{"bytes nobody can build", `body_hex_template: x`, "how to build"},
		{"an event beside a body", `{event: {$shell: V1}, body: {}}`, "its own"},
		{"no shell", `event: {body: {}}`, "$shell"},
		{"an unknown shell", `event: {$shell: V9}`, "V9"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if x, err := one(t, test.call); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q; expanded to %+v", err, test.says, x)
			}
		})
	}
}

func TestExpandHeaders(t *testing.T) {
	const defaults = "Content-Type: application/json\nAccept: application/json, text/event-stream\nMCP-Protocol-Version: 2026-07-28\n"
	const callEcho = `body: {method: tools/call, params: {name: echo}}`
	for _, test := range []struct{ name, call, want string }{
		{"default", `{` + callEcho + `}`, defaults + "Mcp-Method: tools/call\nMcp-Name: echo\n"},
		{"by URI", `body: {method: resources/read, params: {uri: "a:b"}}`, defaults + "Mcp-Method: resources/read\nMcp-Name: a:b\n"},
		{"by task", `body: {method: tasks/get, params: {taskId: $TASK}}`, defaults + "Mcp-Method: tasks/get\nMcp-Name: task-1\n"},
		{"encoded", `body: {method: tools/call, params: {name: "日本語"}}`, defaults + "Mcp-Method: tools/call\nMcp-Name: =?base64?5pel5pys6Kqe?=\n"},
		{"of no string", `body: {method: tools/call, params: {name: 7}}`, defaults + "Mcp-Method: tools/call\n"},
		{"another header", `{` + callEcho + `, headers: {accept: "*/*"}}`, "Content-Type: application/json\nMCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: echo\naccept: */*\n"},
		{"one left out", `{` + callEcho + `, headers: {MCP-Protocol-Version: null}}`, "Content-Type: application/json\nAccept: application/json, text/event-stream\nMcp-Method: tools/call\nMcp-Name: echo\n"},
		{"name left out on purpose", `{` + callEcho + `, headers: {Mcp-Method: x}}`, defaults + "Mcp-Method: x\n"},
		{"none", `{` + callEcho + `, headers: null}`, ""},
		{"no body", `{method: GET}`, "Accept: application/json, text/event-stream\nMCP-Protocol-Version: 2026-07-28\n"},
		{"a token", `{method: GET, headers: {Authorization: Bearer $JWT}}`, "Accept: application/json, text/event-stream\nMCP-Protocol-Version: 2026-07-28\nAuthorization: Bearer token\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x, err := one(t, test.call)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, h := range x.headers {
				fmt.Fprintf(&got, "%s: %s\n", h.name, h.value)
			}
			if got.String() != test.want {
				t.Errorf("headers\n%s\nwant\n%s", got.String(), test.want)
			}
		})
	}
}

func TestExpandEvent(t *testing.T) {
	for _, test := range []struct {
		name, call string
		want       map[string]string // members by their dotted path; "": none
	}{
		{"lists like the map", `event: {$shell: V1, body: {method: a}}`, map[string]string{
			"headers.Mcp-Method": `"a"`, "multiValueHeaders.Mcp-Method": `["a"]`, "multiValueHeaders.Content-Type": `["application/json"]`,
			"body": `"{\"method\":\"a\"}"`, "isBase64Encoded": "false",
		}},
		{"lower case behind other doors", `event: {$shell: FURL, body: {method: a, params: {name: n}}}`, map[string]string{
			"headers.mcp-method": `"a"`, "headers.mcp-name": `"n"`, "headers.Mcp-Method": "", "multiValueHeaders": "",
		}},
		{"null and absent maps", `event: {$shell: V1, headers: null, multiValueHeaders: $ABSENT, body: {method: a}}`, map[string]string{
			"headers": "null", "multiValueHeaders": "",
		}},
		{"no body", `event: {$shell: ALB, body: $ABSENT}`, map[string]string{"body": "", "headers.mcp-method": "", "headers.host": `"mcp.example.com"`}},
		{"null body", `event: {$shell: ALB, body: null}`, map[string]string{"body": "null"}},
		{"raw body with a $ of its own", `event: {$shell: V2, body_raw: '{"a":"$default"}'}`, map[string]string{"body": `"{\"a\":\"$default\"}"`}},
		{"base64", `event: {$shell: V2, body_base64_of: {a: 1}, isBase64Encoded: true}`, map[string]string{"body": `"eyJhIjoxfQ=="`, "isBase64Encoded": "true"}},
		{"maps merged, others replaced", `event: {$shell: V2, rawPath: /p, requestContext: {stage: prod, http: {path: /p}}}`, map[string]string{
			"rawPath": `"/p"`, "requestContext.stage": `"prod"`, "requestContext.http.path": `"/p"`, "requestContext.http.method": `"POST"`,
		}},
		{"headers merged whatever their case", `event: {$shell: V2, headers: {Content-Type: text/plain}}`, map[string]string{
			"headers.Content-Type": `"text/plain"`, "headers.content-type": "", "headers.accept": `"application/json, text/event-stream"`,
		}},
		{"method and path", `event: {$shell: V2, method: GET, path: /x}`, map[string]string{
			"rawPath": `"/x"`, "requestContext.http.path": `"/x"`, "requestContext.http.method": `"GET"`, "method": "", "path": "",
		}},
		{"method and path, REST", `event: {$shell: V1, method: GET, path: /x}`, map[string]string{"path": `"/x"`, "httpMethod": `"GET"`, "requestContext.httpMethod": `"GET"`}},
		{"named in the lists alone", `event: {$shell: ALB, headers: $ABSENT, multiValueHeaders: {mcp-method: [a]}, body: {method: b}}`, map[string]string{
			"headers": "", "multiValueHeaders.mcp-method": `["a"]`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x, err := one(t, test.call)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range test.want {
				if got := string(at(jsontext.Value(x.event), strings.Split(path, ".")...)); got != want {
					t.Errorf("%s is %q, want %q in %s", path, got, want, x.event)
				}
			}
		})
	}
}

// TestThrough turns one plain request into the event of each door.
func TestThrough(t *testing.T) {
	p := &expansion{d: loadFile(t), text: runtimeTexts}
	x, err := one(t, `{method: DELETE, path: /p, headers: {Host: h, Mcp-Method: x}, body_raw: '"$default"'}`)
	if err != nil {
		t.Fatal(err)
	}
	for shell, want := range map[string]map[string]string{
		"V1":   {"httpMethod": `"DELETE"`, "path": `"/p"`, "headers.Host": `"h"`, "headers.Mcp-Method": `"x"`, "multiValueHeaders.Mcp-Method": `["x"]`, "requestContext.path": `"/v1/p"`},
		"V2":   {"requestContext.http.method": `"DELETE"`, "rawPath": `"/p"`, "headers.host": `"h"`, "headers.mcp-method": `"x"`},
		"FURL": {"requestContext.http.method": `"DELETE"`, "rawPath": `"/p"`, "requestContext.domainName": `"abc123.lambda-url.eu-west-1.on.aws"`},
		"ALB":  {"httpMethod": `"DELETE"`, "path": `"/p"`, "headers.host": `"h"`, "headers.x-forwarded-proto": `"https"`, "headers.accept": `"application/json, text/event-stream"`},
	} {
		event, err := p.through(shell, x)
		if err != nil {
			t.Fatal(err)
		}
		want["body"] = `"\"$default\""`
		for path, value := range want {
			if got := string(at(jsontext.Value(event), strings.Split(path, ".")...)); got != value {
				t.Errorf("%s: %s is %q, want %q in %s", shell, path, got, value, event)
			}
		}
	}
}

// TestThroughLists says what doors do to a header that is there twice, and to a query.
func TestThroughLists(t *testing.T) {
	p := &expansion{d: loadFile(t), text: runtimeTexts}
	x := &exchange{method: "GET", path: "/p?a=b", headers: []header{{"X-Once", "1"}, {"X-Twice", "1"}, {"X-Twice", "2"}}}
	for shell, want := range map[string]map[string]string{
		"V1":   {"headers.X-Twice": `"2"`, "multiValueHeaders.X-Twice": `["1","2"]`, "multiValueHeaders.X-Once": `["1"]`, "path": `"/p"`, "queryStringParameters.a": `"b"`},
		"V2":   {"headers.x-twice": `"1,2"`, "rawPath": `"/p"`, "rawQueryString": `"a=b"`, "multiValueHeaders": ""},
		"FURL": {"headers.x-twice": `"1,2"`, "headers.x-once": `"1"`, "rawQueryString": `"a=b"`},
		"ALB":  {"headers": "", "multiValueHeaders.x-twice": `["1","2"]`, "multiValueHeaders.x-forwarded-proto": `["https"]`, "queryStringParameters.a": `"b"`},
	} {
		event, err := p.through(shell, x)
		if err != nil {
			t.Fatal(err)
		}
		for path, value := range want {
			if got := string(at(jsontext.Value(event), strings.Split(path, ".")...)); got != value {
				t.Errorf("%s: %s is %q, want %q in %s", shell, path, got, value, event)
			}
		}
	}
}

var left = regexp.MustCompile(`\$[A-Z]`)

// TestEveryCaseExpands covers those that wait, too.
func TestEveryCaseExpands(t *testing.T) {
	p := &expansion{d: loadFile(t), text: runtimeTexts}
	for _, c := range p.d.Cases {
		requests, err := p.requests(c)
		if err != nil {
			t.Errorf("%v", err)
		}
		if len(requests) != len(c.requestNames()) {
			t.Errorf("%s has %d requests, %d names", c.ID, len(requests), len(c.requestNames()))
		}
		for _, x := range requests {
			for _, text := range append([]string{string(x.body), string(x.event)}, fmt.Sprint(x.headers)) {
				if left.MatchString(text) {
					t.Errorf("%s, %s has a placeholder left: %s", c.ID, x.name, text)
				}
			}
			if x.event != nil && !jsontext.Value(x.event).IsValid() {
				t.Errorf("%s, %s: the event is no JSON: %s", c.ID, x.name, x.event)
			}
		}
	}
}
