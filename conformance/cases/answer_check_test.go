package cases

import (
	"net/http"
	"strings"
	"testing"
)

// read makes an answer to a request with id 7.
func read(media, body string) (*answer, error) {
	a := &answer{
		to:     &exchange{path: "/mcp", body: []byte(`{"id":7}`)},
		status: 200, header: http.Header{"Content-Type": {media}}, body: []byte(body),
	}
	return a, a.take()
}

// TestAnswersAreJudged shows that each rule common to all answers can fail.
func TestAnswersAreJudged(t *testing.T) {
	const json, stream = "application/json", "text/event-stream"
	for _, test := range []struct{ name, media, body, says string }{
		{"a result", json, `{"jsonrpc":"2.0","id":7,"result":{}}`, ""},
		{"an error whose id was not read", json, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, ""},
		{"a stream", stream, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", ""},
		{"nothing", json, ``, ""},
		{"no JSON", json, `{"jsonrpc":"2.0"`, "no JSON-RPC message"},
		{"a name twice", json, `{"jsonrpc":"2.0","id":7,"id":7,"result":{}}`, "no JSON-RPC message"},
		{"an array", json, `[]`, "no JSON-RPC message"},
		{"another member", json, `{"jsonrpc":"2.0","id":7,"result":{},"more":1}`, "no JSON-RPC message"},
		{"bad UTF-8", json, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\xff\"}}", "no JSON-RPC message"},
		{"HTML", "text/html", `<p>`, "text/html"},
		{"another id", json, `{"jsonrpc":"2.0","id":8,"result":{}}`, "came back as 8"},
		{"another type of id", json, `{"jsonrpc":"2.0","id":"7","result":{}}`, "came back"},
		{"a null id", json, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`, "came back as null"},
		{"no id in a result", json, `{"jsonrpc":"2.0","result":{}}`, "no id"},
		{"no id in an error about the params", json, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"}}`, "no id"},
		{"result and error", json, `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`, "no response"},
		{"no message", json, `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""}}`, "no message"},
		{"another version", json, `{"jsonrpc":"1.0","id":7,"result":{}}`, "jsonrpc"},
		{"a request on a stream", stream, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"n\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", "no notification"},
		{"something after the response", stream, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n", "no response"},
		{"a stream cut short", stream, "data: {\"jsonrpc\":\"2.0\"", "ends inside"},
		{"two data lines", stream, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\"result\":{}}\n\n", "one data line"},
		{"an event id", stream, "id: 1\ndata: {}\n\n", "one data line"},
		{"a stack", json, `{"jsonrpc":"2.0","id":7,"result":{"text":"goroutine 1 [running]"}}`, "goroutine"},
		{"an ARN", json, `{"jsonrpc":"2.0","id":7,"result":{"text":"arn:aws:x"}}`, "arn:aws"},
		{"a credential", json, `{"jsonrpc":"2.0","id":7,"result":{"text":"` + goodToken("alice") + `"}}`, goodToken("alice")},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := read(test.media, test.body)
			if err == nil {
				err = wellFormed(a)
			}
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestProxyResponsesAreJudged(t *testing.T) {
	for _, test := range []struct{ name, payload, says string }{
		{"lists", `{"statusCode":200,"multiValueHeaders":{"A":["b"]},"isBase64Encoded":false,"body":"x"}`, ""},
		{"base64", `{"statusCode":200,"headers":{"a":"b"},"isBase64Encoded":true,"body":"eA=="}`, ""},
		{"unknown member", `{"statusCode":200,"headers":{},"isBase64Encoded":false,"body":"x","more":1}`, "more"},
		{"both maps", `{"statusCode":200,"headers":{},"multiValueHeaders":{},"isBase64Encoded":false,"body":"x"}`, "one of"},
		{"status as text", `{"statusCode":"200","headers":{},"isBase64Encoded":false,"body":"x"}`, "statusCode"},
		{"no status", `{"headers":{},"isBase64Encoded":false,"body":"x"}`, "status"},
		{"bad base64", `{"statusCode":200,"headers":{},"isBase64Encoded":true,"body":"*"}`, "base64"},
		{"cut short", `{"statusCode":200`, "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := readProxy([]byte(test.payload))
			if test.says == "" && (err != nil || string(a.body) != "x") || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("answer %v, error %v, want %q", a, err, test.says)
			}
		})
	}
}
