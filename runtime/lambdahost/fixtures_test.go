package lambdahost

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// awsFixtures reads events that AWS's own module keeps as test data, by file name.
func awsFixtures(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), folder, "testdata", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no events in the test data of aws-lambda-go's %s (%v)", folder, err)
	}
	fixtures := make(map[string][]byte, len(files))
	for _, file := range files {
		if fixtures[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return fixtures
}

// seen is what a request has to be, as far as AWS's own types say.
type seen struct {
	method, path, body string
	query              url.Values
	header             http.Header
}

// requestFixtures are the events of events/testdata that are HTTP requests, with the
// way to read them through AWS's types. All others are unknown events.
var requestFixtures = map[string]func(testing.TB, []byte) seen{
	"apigw-request.json":                                seenV1,
	"apigw-restapi-openapi-request.json":                seenV1,
	"apigw-v2-request-iam.json":                         seenV2,
	"apigw-v2-request-jwt-authorizer.json":              seenV2,
	"apigw-v2-request-lambda-authorizer.json":           seenV2,
	"apigw-v2-request-no-authorizer.json":               seenV2,
	"lambda-urls-request.json":                          seenV2,
	"alb-lambda-target-request-headers-only.json":       seenALB,
	"alb-lambda-target-request-multivalue-headers.json": seenALB,
}

func TestAWSFixtures(t *testing.T) {
	fixtures := awsFixtures(t, "events")
	for name := range requestFixtures {
		if fixtures[name] == nil {
			t.Errorf("%s is gone from aws-lambda-go", name)
		}
	}
	for name, payload := range fixtures {
		t.Run(name, func(t *testing.T) {
			if read := requestFixtures[name]; read != nil {
				compare(t, payload, read(t, payload))
				return
			}
			_, err := newTestInvoker(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("the handler was called")
			})).Invoke(t.Context(), payload)
			var unknown *UnknownEventError
			if !errors.As(err, &unknown) {
				t.Errorf("Invoke = %v, want an UnknownEventError", err)
			}
		})
	}
}

// TestFunctionURLFixtures are events captured from real function URLs.
func TestFunctionURLFixtures(t *testing.T) {
	for name, payload := range awsFixtures(t, "lambdaurl") {
		t.Run(name, func(t *testing.T) { compare(t, payload, seenV2(t, payload)) })
	}
}

func compare(t *testing.T, payload []byte, want seen) {
	t.Helper()
	var event map[string]any
	if err := json.Unmarshal(payload, &event); err != nil {
		t.Fatal(err)
	}
	r, body := capture(t, event)
	if r.Method != want.method || r.URL.Path != want.path || body != want.body {
		t.Errorf("request %s %s %q, want %s %s %q", r.Method, r.URL.Path, body, want.method, want.path, want.body)
	}
	if got := r.URL.Query(); got.Encode() != want.query.Encode() {
		t.Errorf("query %q, want %q", got, want.query)
	}
	if host := want.header.Get("Host"); host != "" && r.Host != host {
		t.Errorf("Host %q, want %q", r.Host, host)
	}
	want.header.Del("Host")
	if len(r.Header) != len(want.header) {
		t.Errorf("%d headers, want %d", len(r.Header), len(want.header))
	}
	for name, values := range want.header {
		if !slices.Equal(r.Header[name], values) {
			t.Errorf("header %s = %q, want %q", name, r.Header[name], values)
		}
	}
}

func decodeAs[E any](t testing.TB, payload []byte) (e E) {
	t.Helper()
	if err := json.Unmarshal(payload, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func seenV1(t testing.TB, payload []byte) seen {
	e := decodeAs[events.APIGatewayProxyRequest](t, payload)
	return seen{e.HTTPMethod, e.Path, e.Body, e.MultiValueQueryStringParameters, canonical(e.MultiValueHeaders)}
}

func seenV2(t testing.TB, payload []byte) seen {
	e := decodeAs[events.LambdaFunctionURLRequest](t, payload)
	query, err := url.ParseQuery(e.RawQueryString)
	if err != nil {
		t.Fatal(err)
	}
	header := canonical(lists(e.Headers))
	if len(e.Cookies) > 0 {
		header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	body := e.Body
	if e.IsBase64Encoded {
		b, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		body = string(b)
	}
	return seen{e.RequestContext.HTTP.Method, e.RawPath, body, query, header}
}

func seenALB(t testing.TB, payload []byte) seen {
	e := decodeAs[events.ALBTargetGroupRequest](t, payload)
	query, headers := e.MultiValueQueryStringParameters, e.MultiValueHeaders
	if headers == nil {
		query, headers = lists(e.QueryStringParameters), lists(e.Headers)
	}
	return seen{e.HTTPMethod, e.Path, e.Body, query, canonical(headers)}
}

func lists(m map[string]string) map[string][]string {
	l := make(map[string][]string, len(m))
	for name, value := range m {
		l[name] = []string{value}
	}
	return l
}

func canonical(m map[string][]string) http.Header {
	h := make(http.Header, len(m))
	for name, values := range m {
		for _, value := range values {
			h.Add(name, value)
		}
	}
	return h
}
