package lambdahost

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"testing"
)

// The shells are a plain POST of each front door; tests lay their own members over
// them. A member laid over as absent is left out.

func shellV1() map[string]any {
	headers := map[string]any{
		"Content-Type":         "application/json",
		"Accept":               "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28",
	}
	return map[string]any{
		"resource":                        "/mcp",
		"path":                            "/mcp",
		"httpMethod":                      "POST",
		"headers":                         headers,
		"multiValueHeaders":               asLists(headers),
		"queryStringParameters":           nil,
		"multiValueQueryStringParameters": nil,
		"pathParameters":                  nil,
		"stageVariables":                  nil,
		"requestContext": map[string]any{
			"resourcePath": "/mcp",
			"httpMethod":   "POST",
			"path":         "/v1/mcp",
			"stage":        "v1",
			"domainName":   "api123.execute-api.eu-west-1.amazonaws.com",
			"requestId":    "r-1",
			"identity":     map[string]any{"sourceIp": "192.0.2.10"},
		},
		"isBase64Encoded": false,
	}
}

func shellV2() map[string]any {
	return map[string]any{
		"version":        "2.0",
		"routeKey":       "$default",
		"rawPath":        "/mcp",
		"rawQueryString": "",
		"headers": map[string]any{
			"content-type":         "application/json",
			"accept":               "application/json, text/event-stream",
			"mcp-protocol-version": "2026-07-28",
		},
		"requestContext": map[string]any{
			"stage":      "$default",
			"domainName": "api123.execute-api.eu-west-1.amazonaws.com",
			"http": map[string]any{
				"method":   "POST",
				"path":     "/mcp",
				"protocol": "HTTP/1.1",
				"sourceIp": "192.0.2.10",
			},
			"requestId": "r-1",
		},
		"isBase64Encoded": false,
	}
}

func shellFURL() map[string]any {
	return overlay(shellV2(), map[string]any{
		"requestContext": map[string]any{"domainName": "abc123.lambda-url.eu-west-1.on.aws"},
	})
}

func shellALB() map[string]any {
	return map[string]any{
		"requestContext": map[string]any{
			"elb": map[string]any{
				"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/t/0123456789abcdef",
			},
		},
		"httpMethod":            "POST",
		"path":                  "/mcp",
		"queryStringParameters": map[string]any{},
		"headers": map[string]any{
			"host":                 "mcp.example.com",
			"content-type":         "application/json",
			"accept":               "application/json, text/event-stream",
			"mcp-protocol-version": "2026-07-28",
			"x-forwarded-proto":    "https",
			"x-forwarded-for":      "192.0.2.10",
		},
		"isBase64Encoded": false,
	}
}

// shellALBMulti is an event of a target group with multi-value headers.
func shellALBMulti() map[string]any {
	e := shellALB()
	e["multiValueHeaders"] = asLists(e["headers"].(map[string]any))
	e["multiValueQueryStringParameters"] = map[string]any{}
	delete(e, "headers")
	delete(e, "queryStringParameters")
	return e
}

// shellHTTP1 is an event of an HTTP API that is set to payload format 1.0.
func shellHTTP1() map[string]any {
	return overlay(shellV1(), map[string]any{
		"version":        "1.0",
		"requestContext": map[string]any{"stage": "$default", "path": "/mcp"},
	})
}

// shells are all kinds by name.
func shells() map[string]map[string]any {
	return map[string]map[string]any{
		"REST":      shellV1(),
		"HTTP 1.0":  shellHTTP1(),
		"HTTP 2.0":  shellV2(),
		"FURL":      shellFURL(),
		"ALB":       shellALB(),
		"ALB multi": shellALBMulti(),
	}
}

func asLists(m map[string]any) map[string]any {
	lists := make(map[string]any, len(m))
	for name, value := range m {
		lists[name] = []any{value}
	}
	return lists
}

// absent leaves a member out.
type absent struct{}

// overlay lays over onto base: objects are merged, everything else is replaced.
func overlay(base, over map[string]any) map[string]any {
	merged := maps.Clone(base)
	for name, value := range over {
		object, isObject := value.(map[string]any)
		old, hasObject := merged[name].(map[string]any)
		switch {
		case value == any(absent{}):
			delete(merged, name)
		case isObject && hasObject:
			merged[name] = overlay(old, object)
		default:
			merged[name] = value
		}
	}
	return merged
}

func encodeEvent(t testing.TB, event any) []byte {
	t.Helper()
	payload, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// proxyAnswer is the union of the forms that the front doors take.
type proxyAnswer struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Cookies           []string            `json:"cookies"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

func decodeAnswer(t testing.TB, raw []byte) (a proxyAnswer) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		t.Fatalf("answer %.200q: %v", raw, err)
	}
	if d.More() {
		t.Fatalf("answer %.200q: more than one value", raw)
	}
	return a
}

// content is the body as the front door hands it on.
func (a *proxyAnswer) content(t testing.TB) string {
	t.Helper()
	if !a.IsBase64Encoded {
		return a.Body
	}
	b, err := base64.StdEncoding.DecodeString(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// header is a header of whichever map the answer has.
func (a *proxyAnswer) header(name string) string {
	if v, ok := a.MultiValueHeaders[name]; ok {
		return v[0]
	}
	return a.Headers[name]
}

// newTestInvoker logs to nowhere.
func newTestInvoker(h http.Handler) *Invoker {
	i := NewInvoker(h)
	i.log = slog.New(slog.DiscardHandler)
	return i
}

// invoke sends event to a handler and returns the decoded answer.
func invoke(t testing.TB, h http.HandlerFunc, event map[string]any) proxyAnswer {
	t.Helper()
	raw, err := newTestInvoker(h).Invoke(t.Context(), encodeEvent(t, event))
	if err != nil {
		t.Fatal(err)
	}
	return decodeAnswer(t, raw)
}

// capture returns the request that event becomes, its body read.
func capture(t testing.TB, event map[string]any) (r *http.Request, body string) {
	t.Helper()
	a := invoke(t, func(_ http.ResponseWriter, got *http.Request) {
		b, err := io.ReadAll(got.Body)
		if err != nil {
			t.Error(err)
		}
		r, body = got, string(b)
	}, event)
	if r == nil {
		t.Fatalf("the handler was not called; answer %d %s", a.StatusCode, a.Body)
	}
	return r, body
}

// rpcError is the error that a JSON-RPC body carries.
func rpcError(t testing.TB, a proxyAnswer) (code int, message, reason string) {
	t.Helper()
	var body struct {
		JSONRPC string           `json:"jsonrpc"`
		ID      *json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    struct {
				Reason string `json:"reason"`
			} `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(a.content(t)), &body); err != nil {
		t.Fatalf("body %.200q: %v", a.Body, err)
	}
	if body.JSONRPC != "2.0" || body.ID != nil {
		t.Errorf("body %s: want JSON-RPC 2.0 without id", a.Body)
	}
	if got := a.header("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type = %q, want application/json", got)
	}
	return body.Error.Code, body.Error.Message, body.Error.Data.Reason
}
