package lambdahost

import (
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"
)

// TestHeaders covers B-01, B-03 and spec H-26, M-07, M-22, M-24.
func TestHeaders(t *testing.T) {
	tests := []struct {
		name  string
		event map[string]any
		want  http.Header
		host  string
	}{
		{
			name: "REST carries every header twice",
			event: overlay(shellV1(), map[string]any{
				"headers":           map[string]any{"Mcp-Method": "tools/call", "Host": "api.example.com"},
				"multiValueHeaders": map[string]any{"Mcp-Method": []any{"tools/call"}, "Host": []any{"api.example.com"}},
			}),
			want: http.Header{
				"Accept":               {"application/json, text/event-stream"},
				"Content-Type":         {"application/json"},
				"Mcp-Method":           {"tools/call"},
				"Mcp-Protocol-Version": {"2026-07-28"},
			},
			host: "api.example.com",
		},
		{
			name: "REST, repeated lines are only in the lists",
			event: overlay(shellV1(), map[string]any{
				"headers":           absent{},
				"multiValueHeaders": map[string]any{"Mcp-Name": []any{"a", "b"}, "Accept": absent{}, "Content-Type": absent{}, "MCP-Protocol-Version": absent{}},
			}),
			want: http.Header{"Mcp-Name": {"a", "b"}},
			host: "api123.execute-api.eu-west-1.amazonaws.com",
		},
		{
			name:  "REST, only single values",
			event: overlay(shellV1(), map[string]any{"multiValueHeaders": nil}),
			want: http.Header{
				"Accept":               {"application/json, text/event-stream"},
				"Content-Type":         {"application/json"},
				"Mcp-Protocol-Version": {"2026-07-28"},
			},
			host: "api123.execute-api.eu-west-1.amazonaws.com",
		},
		{
			name: "spellings of one name are lines of one header",
			event: overlay(shellV1(), map[string]any{
				"headers":           nil,
				"multiValueHeaders": map[string]any{"Mcp-Name": []any{"a"}, "mcp-name": []any{"b"}, "Accept": absent{}, "Content-Type": absent{}, "MCP-Protocol-Version": absent{}},
			}),
			want: http.Header{"Mcp-Name": {"a", "b"}},
			host: "api123.execute-api.eu-west-1.amazonaws.com",
		},
		{
			name: "white space around values goes, empty values stay, null is no line",
			event: overlay(shellALB(), map[string]any{"headers": map[string]any{
				"mcp-name": " \t echo\t", "mcp-param-region": "", "x-null": nil,
				"accept": absent{}, "content-type": absent{}, "mcp-protocol-version": absent{}, "x-forwarded-proto": absent{}, "x-forwarded-for": absent{},
			}}),
			want: http.Header{"Mcp-Name": {"echo"}, "Mcp-Param-Region": {""}},
			host: "mcp.example.com",
		},
		{
			name: "ALB, two Accept lines",
			event: overlay(shellALBMulti(), map[string]any{"multiValueHeaders": map[string]any{
				"accept": []any{"application/json", "text/event-stream"},
			}}),
			want: http.Header{
				"Accept":               {"application/json", "text/event-stream"},
				"Content-Type":         {"application/json"},
				"Mcp-Protocol-Version": {"2026-07-28"},
				"X-Forwarded-Proto":    {"https"},
				"X-Forwarded-For":      {"192.0.2.10"},
			},
			host: "mcp.example.com",
		},
		{
			name: "HTTP API, joined values stay joined and cookies become one line",
			event: overlay(shellV2(), map[string]any{
				"cookies": []any{"a=1", "b=2"},
				"headers": map[string]any{"x-list": "one,two"},
			}),
			want: http.Header{
				"Accept":               {"application/json, text/event-stream"},
				"Content-Type":         {"application/json"},
				"Mcp-Protocol-Version": {"2026-07-28"},
				"X-List":               {"one,two"},
				"Cookie":               {"a=1; b=2"},
			},
			host: "api123.execute-api.eu-west-1.amazonaws.com",
		},
		{
			name: "Function URL repeats cookies in the header",
			event: overlay(shellFURL(), map[string]any{
				"cookies": []any{"a=1", "b=2"},
				"headers": map[string]any{"cookie": "a=1; b=2", "accept": absent{}, "content-type": absent{}, "mcp-protocol-version": absent{}},
			}),
			want: http.Header{"Cookie": {"a=1; b=2"}},
			host: "abc123.lambda-url.eu-west-1.on.aws",
		},
		{
			name: "transfer coding and quoted names",
			event: overlay(shellFURL(), map[string]any{
				"headers": map[string]any{
					"transfer-encoding": "chunked", "x-\u0041b": "gr\u00fc\u00dfe \"x\"",
					"accept": absent{}, "content-type": absent{}, "mcp-protocol-version": absent{},
				},
			}),
			want: http.Header{"X-Ab": {"gr\u00fc\u00dfe \"x\""}},
			host: "abc123.lambda-url.eu-west-1.on.aws",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, _ := capture(t, test.event)
			if !maps.EqualFunc(r.Header, test.want, slices.Equal) {
				t.Errorf("header\n got %q\nwant %q", r.Header, test.want)
			}
			if r.Host != test.host {
				t.Errorf("Host = %q, want %q", r.Host, test.host)
			}
		})
	}
}

// TestPath covers B-07.
func TestPath(t *testing.T) {
	v2 := func(base map[string]any, stage, path string) map[string]any {
		return overlay(base, map[string]any{
			"rawPath":        path,
			"requestContext": map[string]any{"stage": stage, "http": map[string]any{"path": path}},
		})
	}
	v1 := func(base map[string]any, stage, path string) map[string]any {
		return overlay(base, map[string]any{"path": path, "requestContext": map[string]any{"stage": stage}})
	}
	tests := []struct {
		name    string
		event   map[string]any
		path    string
		rawPath string
		uri     string
	}{
		{"HTTP API, stage in rawPath", v2(shellV2(), "prod", "/prod/mcp"), "/mcp", "", "/mcp"},
		{"HTTP API, other path", v2(shellV2(), "prod", "/prod/other"), "/other", "", "/other"},
		{"HTTP API, stage alone", v2(shellV2(), "prod", "/prod"), "/", "", "/"},
		{"HTTP API, stage as part of a segment", v2(shellV2(), "prod", "/products"), "/products", "", "/products"},
		{"HTTP API, stage once", v2(shellV2(), "prod", "/prod/prod/mcp"), "/prod/mcp", "", "/prod/mcp"},
		{"HTTP API, default stage", v2(shellV2(), "$default", "/$default/mcp"), "/$default/mcp", "", "/$default/mcp"},
		{"HTTP API hands paths over decoded", v2(shellV2(), "$default", "/a b/100%"), "/a b/100%", "", "/a%20b/100%25"},
		{"HTTP API, nothing is decoded twice", v2(shellV2(), "$default", "/%6Dcp"), "/%6Dcp", "", "/%256Dcp"},
		{"HTTP API, decoded question mark", v2(shellV2(), "$default", "/mcp?admin=1"), "/mcp?admin=1", "", "/mcp%3Fadmin=1"},
		{"HTTP API 1.0, stage in path", v1(shellHTTP1(), "prod", "/prod/mcp"), "/mcp", "", "/mcp"},
		{"HTTP API 1.0 hands paths over decoded", v1(shellHTTP1(), "$default", "/100%"), "/100%", "", "/100%25"},
		{"REST has no stage in path", v1(shellV1(), "mcp", "/mcp"), "/mcp", "", "/mcp"},
		{"REST, base-path mapping", overlay(v1(shellV1(), "v1", "/agents/mcp"), map[string]any{
			"resource": "/{proxy+}", "pathParameters": map[string]any{"proxy": "mcp"},
		}), "/agents/mcp", "", "/agents/mcp"},
		{"REST, encoded letter", v1(shellV1(), "v1", "/%6Dcp"), "/mcp", "/%6Dcp", "/%6Dcp"},
		{"REST, encoded slash", v1(shellV1(), "v1", "/a%2Fb"), "/a/b", "/a%2Fb", "/a%2Fb"},
		{"Function URL, encoded slash", v2(shellFURL(), "$default", "/a%2Fb"), "/a/b", "/a%2Fb", "/a%2Fb"},
		{"Function URL, space", v2(shellFURL(), "$default", "/a%20b"), "/a b", "", "/a%20b"},
		{"ALB, brackets as sent", v1(shellALB(), "", "/a[1]!"), "/a[1]!", "/a[1]!", "/a[1]!"},
		{"no leading slash", v1(shellV1(), "v1", "mcp"), "/mcp", "", "/mcp"},
		{"empty", v1(shellV1(), "v1", ""), "/", "", "/"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, _ := capture(t, test.event)
			if r.URL.Path != test.path || r.URL.RawPath != test.rawPath {
				t.Errorf("Path, RawPath = %q, %q; want %q, %q", r.URL.Path, r.URL.RawPath, test.path, test.rawPath)
			}
			if r.RequestURI != test.uri {
				t.Errorf("RequestURI = %q, want %q", r.RequestURI, test.uri)
			}
		})
	}
}

func TestQuery(t *testing.T) {
	tests := []struct {
		name  string
		event map[string]any
		want  string
	}{
		{"REST, decoded lists", overlay(shellV1(), map[string]any{
			"queryStringParameters":           map[string]any{"a": "x&y"},
			"multiValueQueryStringParameters": map[string]any{"a": []any{"1 2", "x&y"}, "b[]": []any{"\u00fc"}},
		}), "a=1+2&a=x%26y&b%5B%5D=%C3%BC"},
		{"REST, single values", overlay(shellV1(), map[string]any{
			"queryStringParameters": map[string]any{"a": "100%"},
		}), "a=100%25"},
		{"ALB, still encoded", overlay(shellALB(), map[string]any{
			"queryStringParameters": map[string]any{"a%5B%5D": "x%26y+z"},
		}), "a%5B%5D=x%26y+z"},
		{"ALB, encoded lists", overlay(shellALBMulti(), map[string]any{
			"multiValueQueryStringParameters": map[string]any{"k": []any{"%31", "2"}},
		}), "k=%31&k=2"},
		{"HTTP API, raw", overlay(shellV2(), map[string]any{
			"rawQueryString":        "b=2&a=%20&a",
			"queryStringParameters": map[string]any{"a": " ,", "b": "2"},
		}), "b=2&a=%20&a"},
		{"none", shellV1(), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, _ := capture(t, test.event)
			if r.URL.RawQuery != test.want {
				t.Errorf("RawQuery = %q, want %q", r.URL.RawQuery, test.want)
			}
		})
	}
}

// TestBody covers B-05.
func TestBody(t *testing.T) {
	binary := "\x00\xff\xfe{}"
	for kind, shell := range shells() {
		tests := []struct {
			name     string
			body     any
			isBase64 any
			want     string
		}{
			{"text", "{\"a\":\"\u00fc\\u0000\"}\n", false, "{\"a\":\"\u00fc\\u0000\"}\n"},
			{"without escapes", "plain", false, "plain"},
			{"null", nil, false, ""},
			{"missing", absent{}, absent{}, ""},
			{"empty", "", nil, ""},
			{"base64", base64.StdEncoding.EncodeToString([]byte(binary)), true, binary},
			{"empty base64", "", true, ""},
		}
		for _, test := range tests {
			t.Run(kind+"/"+test.name, func(t *testing.T) {
				r, body := capture(t, overlay(shell, map[string]any{"body": test.body, "isBase64Encoded": test.isBase64}))
				if body != test.want {
					t.Errorf("body = %q, want %q", body, test.want)
				}
				if r.ContentLength != int64(len(test.want)) {
					t.Errorf("ContentLength = %d, want %d", r.ContentLength, len(test.want))
				}
			})
		}
	}
}

func TestBase64WithEscapedSlashes(t *testing.T) {
	payload := []byte(`{"version":"2.0","rawPath":"/","isBase64Encoded":true,"body":"\/\/79","requestContext":{"http":{"method":"PUT"}}}`)
	raw, err := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})).Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	if a := decodeAnswer(t, raw); a.content(t) != "\xff\xfe\xfd" {
		t.Errorf("body = %q", a.content(t))
	}
}

func TestConnection(t *testing.T) {
	tests := []struct {
		name       string
		event      map[string]any
		remoteAddr string
		tls        bool
	}{
		{"REST", shellV1(), "192.0.2.10:0", true},
		{"REST console test", overlay(shellV1(), map[string]any{
			"requestContext": map[string]any{"identity": map[string]any{"sourceIp": "test-invoke-source-ip"}},
		}), "", true},
		{"HTTP 2.0", shellV2(), "192.0.2.10:0", true},
		{"FURL, IPv6", overlay(shellFURL(), map[string]any{
			"requestContext": map[string]any{"http": map[string]any{"sourceIp": "2001:db8::1"}},
		}), "[2001:db8::1]:0", true},
		{"ALB", shellALB(), "", true},
		{"ALB, plain listener", overlay(shellALB(), map[string]any{"headers": map[string]any{"x-forwarded-proto": "http"}}), "", false},
		{"ALB multi", shellALBMulti(), "", true},
		{"forged header behind REST", overlay(shellV1(), map[string]any{
			"multiValueHeaders": map[string]any{"X-Forwarded-Proto": []any{"http"}, "X-Forwarded-For": []any{"203.0.113.1"}},
		}), "192.0.2.10:0", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, _ := capture(t, test.event)
			if r.RemoteAddr != test.remoteAddr {
				t.Errorf("RemoteAddr = %q, want %q", r.RemoteAddr, test.remoteAddr)
			}
			if (r.TLS != nil) != test.tls {
				t.Errorf("TLS = %v, want %v", r.TLS, test.tls)
			}
			if r.Method != http.MethodPost || r.Proto != "HTTP/1.1" || !r.ProtoAtLeast(1, 1) {
				t.Errorf("request line %s %s", r.Method, r.Proto)
			}
		})
	}
}

// TestRefusals are requests that no HTTP server would hand to a handler.
func TestRefusals(t *testing.T) {
	path := func(p string) map[string]any { return map[string]any{"path": p} }
	tests := []struct {
		name   string
		event  map[string]any
		code   int
		reason string
	}{
		{"bad base64", overlay(shellV2(), map[string]any{"body": "a*b=", "isBase64Encoded": true}), -32700, "invalid_base64"},
		{"malformed escape, REST", overlay(shellV1(), path("/100%")), -32600, "invalid_path"},
		{"malformed escape, ALB", overlay(shellALB(), path("/%zz")), -32600, "invalid_path"},
		{"malformed escape, FURL", overlay(shellFURL(), map[string]any{"rawPath": "/%4"}), -32600, "invalid_path"},
		{"line break in the path", overlay(shellV2(), map[string]any{"rawPath": "/a\r\nb"}), -32600, "invalid_path"},
		{"line break in the query", overlay(shellV2(), map[string]any{"rawQueryString": "a=\n"}), -32600, "invalid_path"},
		{"line break in a header", overlay(shellV2(), map[string]any{"headers": map[string]any{"x": "a\r\nb: c"}}), -32600, "invalid_header"},
		{"space in a name", overlay(shellALBMulti(), map[string]any{"multiValueHeaders": map[string]any{"x y": []any{"a"}}}), -32600, "invalid_header"},
		{"empty name", overlay(shellV2(), map[string]any{"headers": map[string]any{"": "a"}}), -32600, "invalid_header"},
		{"line break in a cookie", overlay(shellV2(), map[string]any{"cookies": []any{"a\nb"}}), -32600, "invalid_header"},
		{"method", overlay(shellV1(), map[string]any{"httpMethod": "GET /"}), -32600, "invalid_method"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := invoke(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }, test.event)
			code, _, reason := rpcError(t, a)
			if a.StatusCode != http.StatusBadRequest || code != test.code || reason != test.reason {
				t.Errorf("answer %d, %d %q; want 400, %d %q", a.StatusCode, code, reason, test.code, test.reason)
			}
		})
	}
}

func TestHalfSurrogatePairs(t *testing.T) {
	for name, payload := range map[string]string{
		"body":   `{"version":"2.0","rawPath":"/","body":"\"\ud800\"","requestContext":{"http":{"method":"POST"}}}`,
		"header": `{"version":"2.0","rawPath":"/","headers":{"x":"\udc00"},"requestContext":{"http":{"method":"POST"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := newTestInvoker(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("the handler was called")
			})).Invoke(t.Context(), []byte(payload))
			if err != nil {
				t.Fatal(err)
			}
			a := decodeAnswer(t, raw)
			if code, _, reason := rpcError(t, a); a.StatusCode != 400 || code != -32700 || reason != "invalid_utf8" {
				t.Errorf("answer %d, %d %q", a.StatusCode, code, reason)
			}
		})
	}
}

// The runtime loop reuses the payload's memory, so nothing of a request may live in it.
func TestRequestOutlivesPayload(t *testing.T) {
	payload := encodeEvent(t, overlay(shellV2(), map[string]any{
		"rawPath": "/secret", "rawQueryString": "q=1", "body": "hello", "headers": map[string]any{"x-key": "value"},
	}))
	var r *http.Request
	_, err := newTestInvoker(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) { r = got })).Invoke(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	clear(payload)
	var body [5]byte
	if _, err := r.Body.Read(body[:]); err != nil {
		t.Fatal(err)
	}
	if r.URL.String() != "/secret?q=1" || r.Header.Get("X-Key") != "value" || string(body[:]) != "hello" {
		t.Errorf("request changed with the payload: %s %q %q", r.URL, r.Header, body)
	}
}
