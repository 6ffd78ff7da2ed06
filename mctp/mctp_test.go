package mctp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// definition is one of the schema of MCTP 0.1, formats asserted.
func definition(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mctp:0.1", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mctp:0.1#/definitions/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t testing.TB, name string, body []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return definition(t, name).Validate(doc)
}

func TestRoutes(t *testing.T) {
	for path, want := range map[string]Route{
		"/discovery":             {Kind: Discovery},
		"/discovery/":            {Kind: Discovery},
		"/openapi.json":          {Kind: OpenAPI},
		"/text_analysis":         {Create, "text_analysis", ""},
		"/text%5Fanalysis":       {Create, "text_analysis", ""},
		"/a.b-C/":                {Create, "a.b-C", ""},
		"/text_analysis/1":       {State, "text_analysis", "1"},
		"/t/result":              {State, "t", "result"},
		"/result/result/result":  {Outcome, "result", "result"},
		"/t/1/result":            {Outcome, "t", "1"},
		"/t/1/result/":           {Outcome, "t", "1"},
		"/t/a%2Fb/result":        {Outcome, "t", "a/b"},
		"/":                      {},
		"":                       {},
		"//":                     {},
		"/t//":                   {},
		"/t/1//":                 {},
		"//t":                    {},
		"/t/1/outcome":           {},
		"/t/1/result/more":       {},
		"/discovery/1":           {},
		"/DISCOVERY":             {},
		"/mcp/1":                 {},
		"/.well-known/x":         {},
		"/healthz":               {},
		"/./t":                   {},
		"/../t":                  {},
		"/%2e%2e/t":              {},
		"/%zz":                   {},
		"/openapi.json/1/result": {},
	} {
		if got := RouteOf(path); got != want {
			t.Errorf("RouteOf(%q) = %+v, want %+v", path, got, want)
		}
	}
}

func TestAllow(t *testing.T) {
	for kind, want := range map[Kind]string{Create: "POST, OPTIONS", Discovery: "GET, HEAD, OPTIONS", State: "GET, HEAD, OPTIONS", Outcome: "GET, HEAD, OPTIONS"} {
		if got := kind.Allow(); got != want {
			t.Errorf("%d: %q", kind, got)
		}
	}
}

// A path leads to one thing, and that thing back to its path.
func FuzzRouteOf(f *testing.F) {
	for _, seed := range []string{"/discovery", "/t/1/result", "/%2e%2e/x", "//", "/a%2fb/c", "/openapi.json", "/t/%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r := RouteOf(path)
		back := ""
		switch r.Kind {
		case Nowhere, Discovery, OpenAPI:
			if r.Tool != "" || r.ID != "" {
				t.Fatalf("%q: %+v", path, r)
			}
			return
		case Outcome:
			back = "/result"
			fallthrough
		case State:
			back = "/" + url.PathEscape(r.ID) + back
		}
		if Reserved(r.Tool) || (r.ID == "") != (r.Kind == Create) {
			t.Fatalf("%q: %+v", path, r)
		}
		if again := RouteOf("/" + url.PathEscape(r.Tool) + back); again != r {
			t.Fatalf("%q: %+v, and back %+v", path, r, again)
		}
	})
}

// The reserved names mcp, discovery, .well-known and health are refused as tool names.
func TestReserved(t *testing.T) {
	for _, name := range []string{"mcp", "MCP", "discovery", "Discovery", ".well-known", "health", "healthz", "openapi.json", ".", "..", ""} {
		if !Reserved(name) {
			t.Errorf("%q is free", name)
		}
	}
	for _, name := range []string{"text_analysis", "result", "mcp2", "discover", "...", "well-known"} {
		if Reserved(name) {
			t.Errorf("%q is reserved", name)
		}
	}
}

var created = time.Date(2025, 2, 22, 13, 0, 0, 1500000, time.FixedZone("CET", 3600))

const id = "0b7c1fd2-7a37-8e4c-9d6a-3f1f0a1b2c3d"

// Ids are UUIDs, times RFC 3339, shapes those of the schema.
func TestShapes(t *testing.T) {
	task := Task{ID: id, Status: InProgress, Created: created}
	for _, c := range []struct{ name, body, want string }{
		{"TaskResponse", string(task.AppendJSON(nil)), `{"id":"` + id + `","status":"in_progress","createdAt":"2025-02-22T12:00:00.001Z"}`},
		{"TaskResultResponse", string(task.AppendResult(nil, []byte(`{"a":1}`))),
			`{"task":{"id":"` + id + `","status":"in_progress","createdAt":"2025-02-22T12:00:00.001Z"},"result":{"a":1}}`},
		{"DiscoveryResponse", string(AppendDiscovery(nil, nil)), `{"endpoints":{}}`},
		{"DiscoveryResponse", string(AppendDiscovery(nil, []Endpoint{{"b", "https://x/b"}, {`a"`, "https://x/a"}})),
			`{"endpoints":{"b":"https://x/b","a\"":"https://x/a"}}`},
	} {
		if c.body != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.body, c.want)
		}
		if err := valid(t, c.name, []byte(c.body)); err != nil {
			t.Errorf("%s: %v", c.body, err)
		}
	}
	// The schema refuses what is wrong, or the above would say nothing.
	for name, body := range map[string]string{
		"TaskResponse":       `{"id":"12345","status":"pending","createdAt":"2025-02-22T12:00:00Z"}`,
		"TaskResultResponse": `{"task":{"id":"` + id + `","status":"cancelled","createdAt":"2025-02-22T12:00:00Z"},"result":{}}`,
		"DiscoveryResponse":  `{"endpoints":{"a":1}}`,
	} {
		if valid(t, name, []byte(body)) == nil {
			t.Errorf("%s takes %s", name, body)
		}
	}
}

// What a tool gives becomes the object that the schema wants as a result.
func TestResults(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"structured":            {string(Result([]byte(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"score":1}}`))), `{"score":1}`},
		"text":                  {string(Result([]byte(`{"content":[{"type":"text","text":"x"}]}`))), `{"content":[{"type":"text","text":"x"}]}`},
		"structured, no object": {string(Result([]byte(`{"content":[],"structuredContent":[1]}`))), `{"content":[],"structuredContent":[1]}`},
		"structured null":       {string(Result([]byte(`{"structuredContent":null}`))), `{"content":[],"structuredContent":null}`},
		"nothing":               {string(Result([]byte(`{}`))), `{"content":[]}`},
		"tool error": {string(ToolError("", []byte(`{"content":[{"type":"text","text":"no"},{"type":"image","data":""},{"type":"text","text":"luck"}],"isError":true}`))),
			`{"error":{"reason":"tool_error","message":"no\nluck","content":[{"type":"text","text":"no"},{"type":"image","data":""},{"type":"text","text":"luck"}]}}`},
		"tool error with a reason":  {string(ToolError("timeout", []byte(`{"isError":true}`))), `{"error":{"reason":"timeout","message":"","content":[]}}`},
		"protocol error":            {string(ProtocolError([]byte(`{"code":-32603,"message":"m","data":{"reason":"panic"}}`))), `{"error":{"reason":"panic","message":"m"}}`},
		"protocol error, own data":  {string(ProtocolError([]byte(`{"code":7,"message":"m","data":"\"reason\":1"}`))), `{"error":{"reason":"failed","message":"m"}}`},
		"protocol error, short":     {string(ProtocolError([]byte(`{"code":7,"message":"m","data":""}`))), `{"error":{"reason":"failed","message":"m"}}`},
		"no error":                  {string(ProtocolError(nil)), `{"error":{"reason":"failed","message":""}}`},
		"cancelled":                 {string(Error("cancelled", `the "task"`)), `{"error":{"reason":"cancelled","message":"the \"task\""}}`},
		"protocol error of no text": {string(ProtocolError([]byte(`{"message":5,"data":{"reason":5}}`))), `{"error":{"reason":"failed","message":""}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
		whole := Task{ID: id, Status: Failed, Created: created}.AppendResult(nil, []byte(c.got))
		if err := valid(t, "TaskResultResponse", whole); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if IsError(nil) || IsError([]byte(`{"isError":false}`)) || !IsError([]byte(`{"isError":true}`)) {
		t.Error("IsError")
	}
}

func TestProblem(t *testing.T) {
	p := Problem{Status: 422, Reason: "invalid_arguments", Detail: `no "x"`}
	if got := string(p.AppendJSON(nil)); got != `{"title":"Unprocessable Entity","status":422,"detail":"no \"x\"","reason":"invalid_arguments"}` {
		t.Error(got)
	}
	p.Errors = []Violation{{"/a", "one"}, {"", "two"}}
	if got := string(p.AppendJSON(nil)); !strings.HasSuffix(got, `,"errors":[{"pointer":"/a","detail":"one"},{"pointer":"","detail":"two"}]}`) || !json.Valid([]byte(got)) {
		t.Error(got)
	}
	if http.StatusText(p.Status) == "" {
		t.Error("a title is what HTTP calls the status")
	}
}
