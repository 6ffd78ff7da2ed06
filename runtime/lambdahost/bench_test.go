package lambdahost

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// benchBody is a tools/call of about 500 bytes.
var benchBody = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}},` +
	`"name":"echo","arguments":{"text":"` + strings.Repeat("lorem ipsum ", 15) + `"}}}`

func BenchmarkInvoke(b *testing.B) {
	headers := map[string]string{
		"accept":               "application/json, text/event-stream",
		"accept-encoding":      "gzip, deflate, br",
		"authorization":        "Bearer " + strings.Repeat("x", 300),
		"content-length":       "500",
		"content-type":         "application/json",
		"host":                 "api123.execute-api.eu-west-1.amazonaws.com",
		"mcp-method":           "tools/call",
		"mcp-name":             "echo",
		"mcp-protocol-version": "2026-07-28",
		"user-agent":           "bench/1.0",
		"x-amzn-trace-id":      "Root=1-5c34e93e-4dea0086f9763ac0667b115a",
		"x-forwarded-for":      "192.0.2.10",
		"x-forwarded-proto":    "https",
	}
	lists := make(map[string][]string)
	for name, value := range headers {
		lists[name] = []string{value}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body)
	})
	for name, event := range map[string]map[string]any{
		"v1": overlay(shellV1(), map[string]any{"headers": headers, "multiValueHeaders": lists, "body": benchBody}),
		"v2": overlay(shellV2(), map[string]any{"headers": headers, "body": benchBody}),
		"v2 jwt": overlay(shellV2(), map[string]any{"headers": headers, "body": benchBody, "requestContext": map[string]any{
			"apiId": "api123", "authorizer": map[string]any{"jwt": map[string]any{"claims": map[string]any{
				"iss": "https://idp.example.com", "sub": "auth0|6650f2c1e4b0a1", "aud": "[https://mcp.example.com/mcp]", "exp": "1796043600", "scope": "files:read",
			}, "scopes": nil}}}}),
	} {
		b.Run(name, func(b *testing.B) {
			payload := encodeEvent(b, event)
			invoker := NewInvoker(handler)
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := invoker.Invoke(ctx, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEscapedLen(b *testing.B) {
	body := []byte(strings.Repeat(benchBody, 2000))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		escapedLen(body)
	}
}
