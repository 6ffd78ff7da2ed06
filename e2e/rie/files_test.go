package rie

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

const echo = `{"jsonrpc":"2.0","id":"größe","method":"tools/call","params":{"name":"echo","arguments":{"text":"héllo"},"_meta":` + meta + `}}`

// echoHeaders are those that belong to echo.
var echoHeaders = map[string]string{
	"Content-Type":         "application/json",
	"Accept":               "application/json, text/event-stream",
	"Mcp-Protocol-Version": "2026-07-28",
	"Mcp-Method":           "tools/call",
	"Mcp-Name":             "echo",
}

// files are the events of HTTP front doors among those of aws-lambda-go.
var files = []struct {
	name string
	form form
}{
	{"apigw-request.json", v1},
	{"apigw-restapi-openapi-request.json", v1},
	{"apigw-v2-request-no-authorizer.json", v2},
	{"apigw-v2-request-iam.json", v2},
	{"apigw-v2-request-jwt-authorizer.json", v2},
	{"apigw-v2-request-lambda-authorizer.json", v2},
	{"lambda-urls-request.json", v2},
	{"alb-lambda-target-request-headers-only.json", albSingle},
	{"alb-lambda-target-request-multivalue-headers.json", albMulti},
}

// testdata is the folder of aws-lambda-go's events in the module cache.
func testdata(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "events", "testdata")
}

// load reads an event file.
func load(t *testing.T, path string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func encode(t *testing.T, e map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// direct points an event at the endpoint and puts echo into it; what else the file says
// stays.
func direct(t *testing.T, e map[string]any, body string, isBase64 bool) {
	t.Helper()
	e["body"], e["isBase64Encoded"] = body, isBase64
	if c, ok := e["requestContext"].(map[string]any); ok {
		if h, ok := c["http"].(map[string]any); ok {
			h["method"], h["path"] = "POST", "/mcp"
		}
	}
	if e["version"] == "2.0" {
		e["rawPath"] = "/mcp"
	} else {
		e["httpMethod"], e["path"] = "POST", "/mcp"
	}
	single, _ := e["headers"].(map[string]any)
	multi, _ := e["multiValueHeaders"].(map[string]any)
	if single == nil && multi == nil {
		t.Fatal("the event has no headers")
	}
	for name, value := range echoHeaders {
		if single != nil {
			drop(single, name)
			single[name] = value
		}
		if multi != nil {
			drop(multi, name)
			multi[name] = []any{value}
		}
	}
}

// drop removes a header whatever its spelling.
func drop(headers map[string]any, name string) {
	for n := range headers {
		if strings.EqualFold(n, name) {
			delete(headers, n)
		}
	}
}

// TestEventFiles: the real shape of each front door's event reaches the tool and gets
// its answer back in the form that the door takes; as the file stands, its path leads
// nowhere, and that too is a JSON-RPC answer.
func TestEventFiles(t *testing.T) {
	f := function(t)
	folder := testdata(t)
	for _, file := range files {
		path := filepath.Join(folder, file.name)
		check := func(t *testing.T, e map[string]any) {
			t.Helper()
			a, m := invoke(t, f, encode(t, e), file.form)
			var result struct {
				ResultType string
				Content    []struct{ Text string }
			}
			if err := json.Unmarshal(m.Result, &result); err != nil {
				t.Fatalf("status %d, error %+v: %v", a.StatusCode, m.Error, err)
			}
			if a.StatusCode != 200 || string(m.ID) != `"größe"` || result.ResultType != "complete" ||
				len(result.Content) != 1 || result.Content[0].Text != "héllo" {
				t.Errorf("status %d, id %s, result %s", a.StatusCode, m.ID, m.Result)
			}
		}
		t.Run(file.name+"/call", func(t *testing.T) {
			e := load(t, path)
			direct(t, e, echo, false)
			check(t, e)
		})
		t.Run(file.name+"/call in base64", func(t *testing.T) {
			e := load(t, path)
			direct(t, e, base64.StdEncoding.EncodeToString([]byte(echo)), true)
			check(t, e)
		})
		t.Run(file.name+"/as it stands", func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if a, m := invoke(t, f, b, file.form); a.StatusCode != 404 || m.Error == nil {
				t.Errorf("status %d, error %v; want 404 and a JSON-RPC error", a.StatusCode, m.Error)
			}
		})
	}
}

// TestForeignEvents: what no HTTP front door sent is a failure of the invocation, which
// its sender counts and retries; it is no answer, which would be taken for success. The
// function lives on.
func TestForeignEvents(t *testing.T) {
	f := function(t)
	folder := testdata(t)
	for _, name := range []string{"sqs-event.json", "sns-event.json", "s3-event.json", "apigw-websocket-request.json",
		"apigw-custom-auth-request.json", "apigw-v2-custom-authorizer-v2-request.json", "dynamodb-event.json"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			out, err := f.Invoke(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			var failed struct{ ErrorType, ErrorMessage string }
			if err := json.Unmarshal(out, &failed); err != nil || failed.ErrorType != "UnknownEventError" {
				t.Errorf("want an UnknownEventError: %s", out)
			}
		})
	}
	e := load(t, filepath.Join(folder, "lambda-urls-request.json"))
	direct(t, e, echo, false)
	if a, m := invoke(t, f, encode(t, e), v2); a.StatusCode != 200 {
		t.Errorf("after the failures: status %d, error %v", a.StatusCode, m.Error)
	}
}
