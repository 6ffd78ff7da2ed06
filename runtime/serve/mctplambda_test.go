package serve

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
)

// doors make the events of the front doors of a Lambda function.
var doors = map[string]func(verb, path, body string, headers map[string]string) map[string]any{
	"REST API": func(verb, path, body string, headers map[string]string) map[string]any {
		lists := map[string][]string{}
		for name, value := range headers {
			lists[name] = []string{value}
		}
		return map[string]any{"resource": "/{proxy+}", "path": path, "httpMethod": verb, "headers": headers, "multiValueHeaders": lists, "body": orNull(body), "isBase64Encoded": false,
			"requestContext": map[string]any{"resourcePath": "/{proxy+}", "httpMethod": verb, "path": "/v1" + path, "stage": "v1", "domainName": "api123.execute-api.eu-west-1.amazonaws.com"}}
	},
	"HTTP API": func(verb, path, body string, headers map[string]string) map[string]any {
		return payload2("api123.execute-api.eu-west-1.amazonaws.com", verb, path, body, headers)
	},
	"Function URL": func(verb, path, body string, headers map[string]string) map[string]any {
		e := payload2("abc123.lambda-url.eu-west-1.on.aws", verb, path, body, headers)
		if body != "" {
			e["body"], e["isBase64Encoded"] = base64.StdEncoding.EncodeToString([]byte(body)), true
		}
		return e
	},
	"load balancer": func(verb, path, body string, headers map[string]string) map[string]any {
		return map[string]any{"requestContext": map[string]any{"elb": map[string]any{"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/t/0123456789abcdef"}},
			"httpMethod": verb, "path": path, "queryStringParameters": map[string]any{}, "headers": headers, "body": body, "isBase64Encoded": false}
	},
}

func payload2(domain, verb, path, body string, headers map[string]string) map[string]any {
	e := map[string]any{"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers, "isBase64Encoded": false,
		"requestContext": map[string]any{"stage": "$default", "domainName": domain, "http": map[string]any{"method": verb, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.10"}}}
	if body != "" {
		e["body"] = body
	}
	return e
}

func orNull(body string) any {
	if body == "" {
		return nil
	}
	return body
}

// withLists is an event of a load balancer whose target group has multi-value headers.
func withLists(e map[string]any) map[string]any {
	lists := map[string][]string{}
	for name, value := range e["headers"].(map[string]string) {
		lists[name] = []string{value}
	}
	e["multiValueHeaders"], e["multiValueQueryStringParameters"] = lists, map[string]any{}
	delete(e, "headers")
	delete(e, "queryStringParameters")
	return e
}

// A whole life through each of the four front doors, HEAD included.
func TestMCTPOnLambda(t *testing.T) {
	doors := maps.Clone(doors)
	doors["load balancer, lists"] = func(verb, path, body string, headers map[string]string) map[string]any {
		return withLists(doors["load balancer"](verb, path, body, headers))
	}
	for name, event := range doors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box := &outbox{}
				h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{sentiment(nil)}},
					Options{MCTP: true, Store: memory(), Dispatcher: box, PublicURLs: []string{"https://api.example.com/mcp"}})
				invoker := lambdahost.NewInvoker(h)
				send := func(verb, path, body string, more ...string) answer {
					t.Helper()
					headers := map[string]string{"host": "api.example.com", "content-type": "application/json", "x-forwarded-proto": "https"}
					for i := 0; i < len(more); i += 2 {
						headers[more[i]] = more[i+1]
					}
					raw, err := json.Marshal(event(verb, path, body, headers))
					if err != nil {
						t.Fatal(err)
					}
					out, err := invoker.Invoke(t.Context(), raw)
					if err != nil {
						t.Fatal(err)
					}
					var got struct {
						StatusCode        int
						Headers           map[string]string
						MultiValueHeaders map[string][]string
						Body              string
						IsBase64Encoded   bool
					}
					if err := json.Unmarshal(out, &got); err != nil || got.IsBase64Encoded {
						t.Fatalf("%v: %s", err, out)
					}
					a := answer{status: got.StatusCode, header: http.Header{}, raw: got.Body}
					for name, value := range got.Headers {
						a.header.Set(name, value)
					}
					for name, values := range got.MultiValueHeaders {
						a.header[http.CanonicalHeaderKey(name)] = values
					}
					return a
				}
				if a := send("GET", "/discovery", ""); a.status != 200 || a.raw != `{"endpoints":{"text_analysis":"https://api.example.com/text_analysis"}}` {
					t.Errorf("%d %s", a.status, a.raw)
				} else if again := send("GET", "/discovery", "", "if-none-match", a.header.Get("ETag")); again.status != 304 || again.raw != "" || again.header.Get("ETag") != a.header.Get("ETag") {
					t.Errorf("%d %v %q", again.status, again.header, again.raw)
				}
				if a := send("HEAD", "/discovery", ""); a.status != 200 || a.raw != "" || a.header.Get("ETag") == "" {
					t.Errorf("%d %v %q", a.status, a.header, a.raw)
				}
				made := send("POST", "/text_analysis", hello, "idempotency-key", "k")
				var task struct{ ID, Status string }
				if err := json.Unmarshal([]byte(made.raw), &task); err != nil || made.status != 201 || task.Status != "pending" || len(box.sent) != 1 ||
					made.header.Get("Location") != "https://api.example.com/text_analysis/"+task.ID {
					t.Fatalf("%d %v %s", made.status, made.header, made.raw)
				}
				if a := send("HEAD", "/text_analysis/"+task.ID, ""); a.status != 200 || a.raw != "" || a.header.Get("X-Task-Status") != "pending" || a.header.Get("Retry-After") != "1" {
					t.Errorf("%d %v %q", a.status, a.header, a.raw)
				}
				if a := send("GET", "/text_analysis/"+task.ID+"/result", ""); a.status != 409 || a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.raw, "not_finished") {
					t.Errorf("%d %v %s", a.status, a.header, a.raw)
				}
				if ack, _ := h.RunTask(t.Context(), task.ID); !ack {
					t.Error("the message was kept")
				}
				if a := send("HEAD", "/text_analysis/"+task.ID, ""); a.status != 200 || a.raw != "" || a.header.Get("X-Task-Status") != "completed" {
					t.Errorf("%d %v %q", a.status, a.header, a.raw)
				}
				if a := send("GET", "/text_analysis/"+task.ID+"/result", ""); a.status != 200 || !strings.Contains(a.raw, `"result":{"sentiment":"positive","score":0.98}}`) {
					t.Errorf("%d %s", a.status, a.raw)
				}
				if a := send("HEAD", "/text_analysis/00000000-0000-8000-8000-000000000000", ""); a.status != 404 || a.raw != "" {
					t.Errorf("%d %q", a.status, a.raw)
				}
				if a := send("DELETE", "/text_analysis/"+task.ID, ""); a.status != 405 || a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
					t.Errorf("%d %v", a.status, a.header)
				}
			})
		})
	}
}
