package gatewaysim_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/gatewaysim"
)

// A door's constructor with a function that keeps the event and answers 204.
type doorOf func(f gatewaysim.Lambda) http.Handler

// eventOf is the event that a door makes of a request.
func eventOf(t *testing.T, door doorOf, r *http.Request) (event map[string]any) {
	t.Helper()
	rec := httptest.NewRecorder()
	door(gatewaysim.Buffered(func(_ context.Context, b []byte) ([]byte, error) {
		return []byte(`{"statusCode":204}`), json.Unmarshal(b, &event)
	})).ServeHTTP(rec, r)
	if rec.Code != http.StatusNoContent {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	return event
}

// captured is an event of aws-lambda-go, most of which were seen by a function.
func captured(t *testing.T, file string) (event map[string]any) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &event); err != nil {
		t.Fatal(err)
	}
	return event
}

// requestOf is the request that led to an event of any kind.
func requestOf(t *testing.T, e map[string]any) *http.Request {
	t.Helper()
	at := func(names ...string) string {
		var v any = e
		for _, name := range names {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		s, _ := v.(string)
		return s
	}
	target, method := at("rawPath"), at("requestContext", "http", "method")
	query := at("rawQueryString")
	if e["version"] != "2.0" {
		target, method = at("path"), at("httpMethod")
		values := url.Values{}
		for name, value := range sub(e, "queryStringParameters") {
			values[name] = []string{value.(string)}
		}
		for name, list := range sub(e, "multiValueQueryStringParameters") {
			values[name] = nil
			for _, value := range list.([]any) {
				values[name] = append(values[name], value.(string))
			}
		}
		query = values.Encode()
	}
	if query != "" {
		target += "?" + query
	}
	body := []byte(at("body"))
	if e["isBase64Encoded"] == true {
		b, err := base64.StdEncoding.DecodeString(string(body))
		if err != nil {
			t.Fatal(err)
		}
		body = b
	}
	r := httptest.NewRequest(method, target, strings.NewReader(string(body)))
	for name, value := range sub(e, "headers") {
		r.Header.Set(name, value.(string))
	}
	for name, list := range sub(e, "multiValueHeaders") {
		r.Header.Del(name)
		for _, value := range list.([]any) {
			r.Header.Add(name, value.(string))
		}
	}
	return r
}

func sub(e map[string]any, name string) map[string]any {
	m, _ := e[name].(map[string]any)
	return m
}

// flat are the members of an event by their paths.
func flat(v any, path string, into map[string]any) map[string]any {
	if m, ok := v.(map[string]any); ok {
		for name, value := range m {
			flat(value, path+"/"+strings.ToLower(name), into)
		}
		return into
	}
	into[path] = v
	return into
}

// own is what no two events have in common, and what AWS says of the connection.
func own(path string) bool {
	switch name := path[strings.LastIndexByte(path, '/')+1:]; name {
	case "time", "timeepoch", "requesttime", "requesttimeepoch", "requestid", "extendedrequestid", "accountid", "apiid", "domainname", "domainprefix",
		"sourceip", "stage", "resourceid", "targetgrouparn", "host", "x-amzn-trace-id", "x-forwarded-for", "x-forwarded-port", "x-forwarded-proto",
		"x-amzn-tls-version", "x-amzn-tls-cipher-suite":
		return true
	}
	return false
}

// The events are those that functions have seen: the same members, with the same values where
// the same request leads to the same.
func TestEventsAreThoseOfAWS(t *testing.T) {
	furl := func(f gatewaysim.Lambda) http.Handler { return gatewaysim.FunctionURL(f, nil) }
	for _, c := range []struct {
		file    string
		door    doorOf
		missing []string // what the door has no reason to set here, or what the capture lacks
	}{
		{"lambdaurl/testdata/function-url-domain-only-get-request.json", furl, nil},
		{"lambdaurl/testdata/function-url-domain-only-get-request-trailing-slash.json", furl, nil},
		{"lambdaurl/testdata/function-url-domain-only-request-with-base64-encoded-body.json", furl, nil},
		{"lambdaurl/testdata/function-url-request-with-headers-and-cookies-and-text-body.json", furl, nil},
		{"events/testdata/apigw-v2-request-no-authorizer.json", func(f gatewaysim.Lambda) http.Handler { return gatewaysim.HTTPAPI(f, nil) },
			[]string{"/requestcontext/authentication/"}},
		{"events/testdata/apigw-request.json", func(f gatewaysim.Lambda) http.Handler {
			return stripped{gatewaysim.RESTAPI(f, nil)}
		}, []string{"/stagevariables", "/requestcontext/authorizer/", "/requestcontext/identity/", "/requestcontext/path", "/isbase64encoded", "/headers/content-length",
			"/multivalueheaders/content-length", "/headers/x-amzn-trace-id", "/multivalueheaders/x-amzn-trace-id"}},
		{"events/testdata/alb-lambda-target-request-headers-only.json", func(f gatewaysim.Lambda) http.Handler { return gatewaysim.ALB(f, nil) }, nil},
		{"events/testdata/alb-lambda-target-request-multivalue-headers.json", func(f gatewaysim.Lambda) http.Handler {
			return gatewaysim.ALB(f, &gatewaysim.ALBOptions{MultiValue: true})
		}, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			e := captured(t, c.file)
			want, got := flat(e, "", map[string]any{}), flat(eventOf(t, c.door, requestOf(t, e)), "", map[string]any{})
			for path := range union(want, got) {
				a, b := fmt.Sprint(want[path]), fmt.Sprint(got[path])
				_, wanted := want[path]
				_, have := got[path]
				switch {
				case strings.HasPrefix(path, "/requestcontext/authorizer/iam"), slices.ContainsFunc(c.missing, func(m string) bool { return strings.HasPrefix(path, m) }):
				case wanted != have:
					t.Errorf("%s: there %t, want %t", path, have, wanted)
				case a != b && !own(path):
					t.Errorf("%s: %s, want %s", path, b, a)
				}
			}
		})
	}
}

func union(a, b map[string]any) map[string]any {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}

// stripped puts a REST API's stage in front of a path that its event has without it.
type stripped struct{ http.Handler }

func (s stripped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Path = "/prod" + r.URL.Path
	s.Handler.ServeHTTP(w, r)
}

// eventCase is a request, and what its event has to have at some paths.
type eventCase struct {
	name string
	door doorOf
	r    *http.Request
	want map[string]any
}

func request(method, target, body string, header ...string) *http.Request {
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, b)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// What the captured events have no example of.
func TestEventRules(t *testing.T) {
	furl := func(f gatewaysim.Lambda) http.Handler { return gatewaysim.FunctionURL(f, nil) }
	httpAPI := func(o gatewaysim.HTTPOptions) doorOf {
		return func(f gatewaysim.Lambda) http.Handler { return gatewaysim.HTTPAPI(f, &o) }
	}
	rest := func(o gatewaysim.RESTOptions) doorOf {
		return func(f gatewaysim.Lambda) http.Handler { return gatewaysim.RESTAPI(f, &o) }
	}
	alb := func(o gatewaysim.ALBOptions) doorOf {
		return func(f gatewaysim.Lambda) http.Handler { return gatewaysim.ALB(f, &o) }
	}
	for _, c := range []eventCase{
		{"paths of a Function URL stay encoded", furl, request("GET", "/a%20b/c%2Fd?x=%201&x=2&y", ""), map[string]any{
			"/rawpath": "/a%20b/c%2Fd", "/requestcontext/http/path": "/a%20b/c%2Fd", "/rawquerystring": "x=%201&x=2&y", "/querystringparameters/x": " 1,2",
			"/querystringparameters/y": "", "/body": nil, "/isbase64encoded": false, "/requestcontext/accountid": "anonymous"}},
		{"lines of one name are joined", furl, request("POST", "/", "é", "Content-Type", "text/plain", "X-A", "1", "X-A", "2"), map[string]any{
			"/headers/x-a": "1,2", "/body": "é", "/headers/content-length": "2", "/isbase64encoded": false}},
		{"forms are encoded", furl, request("POST", "/", "a=1", "Content-Type", "application/x-www-form-urlencoded"), map[string]any{
			"/body": "YT0x", "/isbase64encoded": true}},
		{"cookies stay among the headers", furl, request("GET", "/", "", "Cookie", "a=1; b=2", "Cookie", "c=3"), map[string]any{
			"/headers/cookie": "a=1; b=2; c=3", "/cookies": []any{"a=1", "b=2", "c=3"}}},
		{"an HTTP API takes them apart", httpAPI(gatewaysim.HTTPOptions{}), request("GET", "/", "", "Cookie", "a=1; b=2"), map[string]any{
			"/headers/cookie": nil, "/cookies": []any{"a=1", "b=2"}}},
		{"paths of an HTTP API are decoded", httpAPI(gatewaysim.HTTPOptions{}), request("GET", "/a%20b%25", ""), map[string]any{
			"/rawpath": "/a b%", "/requestcontext/stage": "$default"}},
		{"and have the stage", httpAPI(gatewaysim.HTTPOptions{Stage: "v1"}), request("GET", "/v1/mcp", ""), map[string]any{
			"/rawpath": "/v1/mcp", "/requestcontext/stage": "v1"}},
		{"paths of a REST API have no stage", rest(gatewaysim.RESTOptions{Stage: "v1"}), request("GET", "/v1/a%20b?x=1&x=2", "", "X-A", "1", "X-A", "2"), map[string]any{
			"/path": "/a%20b", "/requestcontext/path": "/v1/a%20b", "/requestcontext/stage": "v1", "/querystringparameters/x": "2",
			"/multivaluequerystringparameters/x": []any{"1", "2"}, "/headers/x-a": "2", "/multivalueheaders/x-a": []any{"1", "2"}, "/body": nil}},
		{"and have a domain's base path", rest(gatewaysim.RESTOptions{BasePath: "/agents"}), request("GET", "/agents/mcp", ""), map[string]any{
			"/path": "/agents/mcp", "/requestcontext/path": "/agents/mcp", "/pathparameters/proxy": "mcp", "/requestcontext/domainname": "api.example.com"}},
		{"binary is damaged", rest(gatewaysim.RESTOptions{}), request("POST", "/prod/", "a\xff"), map[string]any{
			"/body": "a\uFFFD", "/isbase64encoded": false}},
		{"unless it is named", rest(gatewaysim.RESTOptions{BinaryMediaTypes: []string{"image/png"}}), request("POST", "/prod/", "a\xff", "Content-Type", "image/png"), map[string]any{
			"/body": "Yf8=", "/isbase64encoded": true}},
		{"a load balancer keeps the last of one name", alb(gatewaysim.ALBOptions{}), request("POST", "/a%20b?x=1&x=%202", "{}", "Content-Type", "application/json", "X-A", "1", "X-A", "2"), map[string]any{
			"/path": "/a%20b", "/querystringparameters/x": "%202", "/headers/x-a": "2", "/body": "{}", "/isbase64encoded": false}},
		{"or all", alb(gatewaysim.ALBOptions{MultiValue: true}), request("POST", "/?x=1&x=%202", "{}", "Content-Encoding", "gzip", "Content-Type", "application/json", "X-A", "1", "X-A", "2"), map[string]any{
			"/multivaluequerystringparameters/x": []any{"1", "%202"}, "/multivalueheaders/x-a": []any{"1", "2"}, "/headers": nil, "/body": "e30=", "/isbase64encoded": true}},
	} {
		got := flat(eventOf(t, c.door, c.r), "", map[string]any{})
		for path, want := range c.want {
			if fmt.Sprint(got[path]) != fmt.Sprint(want) {
				t.Errorf("%s: %s is %v, want %v", c.name, path, got[path], want)
			}
		}
	}
}
