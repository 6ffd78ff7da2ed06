package lambdahost

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestUnknownEvents(t *testing.T) {
	long := strings.Repeat("n", 100)
	tests := []struct {
		name    string
		payload string
		members []string
		says    string
	}{
		{"queue", `{"Records":[{"eventSource":"aws:sqs","body":"secret"}]}`, []string{"Records"}, "not an HTTP request"},
		{"schedule", `{"version":"0","id":"x","detail-type":"Scheduled Event","source":"aws.scheduler"}`, []string{"version", "id", "detail-type", "source"}, "not an HTTP request"},
		{"number", `5`, nil, "not a JSON object"},
		{"string", `"secret"`, nil, "not a JSON object"},
		{"array", `[{}]`, nil, "not a JSON object"},
		{"nothing", ``, nil, "not valid JSON"},
		{"broken", `{"body":"secret`, []string{"body"}, "not valid JSON"},
		{"trailing", `{"httpMethod":"GET","path":"/"} x`, []string{"httpMethod", "path"}, "not valid JSON"},
		{"two values", `{}{}`, nil, "not valid JSON"},
		{"duplicate member", `{"httpMethod":"GET","path":"/","path":"/b"}`, []string{"httpMethod", "path"}, "not valid JSON"},
		{"wrong case", `{"HTTPMethod":"GET","Path":"/"}`, []string{"HTTPMethod", "Path"}, "not an HTTP request"},
		{"HTTP 2.0 without its context", `{"version":"2.0","rawPath":"/"}`, []string{"version", "rawPath"}, "not an HTTP request"},
		{"load balancer without a request", `{"requestContext":{"elb":{}}}`, []string{"requestContext"}, "not an HTTP request"},
		{"agent action", `{"messageVersion":"1.0","apiPath":"/x","httpMethod":"GET"}`, []string{"messageVersion", "apiPath", "httpMethod"}, "not an HTTP request"},
		{"service network", `{"version":"2.0","path":"/x","method":"GET","headers":{"a":["b"]},"requestContext":{"serviceArn":"secret"}}`,
			[]string{"version", "path", "method", "headers", "requestContext"}, "not an HTTP request"},
		{"token authorizer", `{"type":"TOKEN","authorizationToken":"secret","methodArn":"arn:x"}`, []string{"type", "authorizationToken", "methodArn"}, "not an HTTP request"},
		{"web socket", `{"httpMethod":"GET","path":"/","requestContext":{"connectionId":"x"}}`, []string{"httpMethod", "path", "requestContext"}, "not an HTTP request"},
		{"body of a wrong type", `{"httpMethod":"GET","path":"/","body":{"a":"secret"}}`, []string{"httpMethod", "path", "body"}, "member body has a JSON object where a JSON string or null belongs"},
		{"headers of a wrong type", `{"httpMethod":"GET","path":"/","headers":[]}`, []string{"httpMethod", "path", "headers"}, "member headers has a JSON array where a JSON object or null belongs"},
		{"flag of a wrong type", `{"httpMethod":"GET","path":"/","isBase64Encoded":"true"}`, []string{"httpMethod", "path", "isBase64Encoded"}, "member isBase64Encoded has a JSON string where a JSON boolean or null belongs"},
		{"value of a wrong type", `{"httpMethod":"GET","path":"/","multiValueHeaders":{"a":["b",1]}}`, []string{"httpMethod", "path", "multiValueHeaders"}, "member multiValueHeaders has a JSON number"},
		{"long name", `{"` + long + `":1}`, []string{long[:40] + "..."}, "not an HTTP request"},
	}
	i := newTestInvoker(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer, err := i.Invoke(t.Context(), []byte(test.payload))
			var unknown *UnknownEventError
			if !errors.As(err, &unknown) || answer != nil {
				t.Fatalf("Invoke = %s, %v; want an UnknownEventError", answer, err)
			}
			if !slices.Equal(unknown.Members, test.members) {
				t.Errorf("Members = %q, want %q", unknown.Members, test.members)
			}
			if !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q: want %q and no value", err, test.says)
			}
		})
	}
}

func TestUnknownEventWithManyMembers(t *testing.T) {
	event := make(map[string]any)
	for c := range 100 {
		event[fmt.Sprint("m", c)] = c
	}
	_, err := newTestInvoker(nil).Invoke(t.Context(), encodeEvent(t, event))
	var unknown *UnknownEventError
	if !errors.As(err, &unknown) || len(unknown.Members) != maxMembers {
		t.Errorf("error %v: want %d members", err, maxMembers)
	}
}

// An event that says nothing is answered (B-05).
func TestEmptyEvents(t *testing.T) {
	i := newTestInvoker(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }))
	for _, payload := range []string{`{}`, `null`, " {\n}\n"} {
		raw, err := i.Invoke(t.Context(), []byte(payload))
		if err != nil {
			t.Fatalf("%q: %v", payload, err)
		}
		a := decodeAnswer(t, raw)
		if code, _, reason := rpcError(t, a); a.StatusCode != 400 || code != -32600 || reason != "empty_event" {
			t.Errorf("%q: answer %d, %d %q", payload, a.StatusCode, code, reason)
		}
	}
}

// Null maps are what a private REST API or the console's test button sends (B-05).
func TestNullMembers(t *testing.T) {
	for kind, shell := range shells() {
		t.Run(kind, func(t *testing.T) {
			over := make(map[string]any)
			for _, name := range []string{
				"headers", "multiValueHeaders", "queryStringParameters", "multiValueQueryStringParameters",
				"pathParameters", "stageVariables", "cookies", "body", "isBase64Encoded", "rawQueryString",
			} {
				over[name] = nil
			}
			r, body := capture(t, overlay(shell, over))
			if len(r.Header) != 0 || r.URL.RawQuery != "" || body != "" {
				t.Errorf("request has %q, %q, %q", r.Header, r.URL.RawQuery, body)
			}
		})
	}
	t.Run("REST, no request context", func(t *testing.T) {
		r, _ := capture(t, overlay(shellV1(), map[string]any{"requestContext": nil}))
		if r.Host != "" || r.RemoteAddr != "" {
			t.Errorf("Host %q, RemoteAddr %q out of nowhere", r.Host, r.RemoteAddr)
		}
	})
}

func TestUnknownMembersAreSkipped(t *testing.T) {
	for kind, shell := range shells() {
		t.Run(kind, func(t *testing.T) {
			_, body := capture(t, overlay(shell, map[string]any{
				"Body": "wrong", "BODY": 1, "new": map[string]any{"deep": []any{map[string]any{"body": "wrong"}}}, "body": "right",
				"requestContext": map[string]any{"new": []any{1}, "authorizer": map[string]any{"claims": map[string]any{"sub": "x"}}},
			}))
			if body != "right" {
				t.Errorf("body = %q", body)
			}
		})
	}
}
