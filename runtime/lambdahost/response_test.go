package lambdahost

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestAnswerForms pins the exact members of each form: a REST API answers 502 for a
// member it does not know, a load balancer for the map it is not set to.
func TestAnswerForms(t *testing.T) {
	want := map[string]string{
		"REST": `{"statusCode":401,"multiValueHeaders":{"Content-Type":["application/json"],"Set-Cookie":["a=1","b=2"],` +
			`"Www-Authenticate":["Bearer realm=\"x\""],"X-Two":["one","two"]},"isBase64Encoded":false,"body":"{\"a\":\"ü\\n\"}"}`,
		"HTTP 2.0": `{"statusCode":401,"headers":{"Content-Type":"application/json","Www-Authenticate":"Bearer realm=\"x\"","X-Two":"one, two"},` +
			`"cookies":["a=1","b=2"],"isBase64Encoded":false,"body":"{\"a\":\"ü\\n\"}"}`,
		"ALB": `{"statusCode":401,"statusDescription":"401 Unauthorized","headers":{"Content-Type":"application/json","Www-Authenticate":"Bearer realm=\"x\"",` +
			`"X-Two":"one, two","set-cookie":"a=1","Set-cookie":"b=2"},"isBase64Encoded":false,"body":"{\"a\":\"ü\\n\"}"}`,
		"ALB multi": `{"statusCode":401,"statusDescription":"401 Unauthorized","multiValueHeaders":{"Content-Type":["application/json"],"Set-Cookie":["a=1","b=2"],` +
			`"Www-Authenticate":["Bearer realm=\"x\""],"X-Two":["one","two"]},"isBase64Encoded":false,"body":"{\"a\":\"ü\\n\"}"}`,
	}
	want["HTTP 1.0"], want["FURL"] = want["REST"], want["HTTP 2.0"]
	i := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Www-Authenticate", `Bearer realm="x"`)
		h["X-Two"] = []string{"one", "two"}
		h["Set-Cookie"] = []string{"a=1", "b=2"}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"a":"ü\n"}`))
	}))
	for kind, shell := range shells() {
		t.Run(kind, func(t *testing.T) {
			raw, err := i.Invoke(t.Context(), encodeEvent(t, shell))
			if err != nil {
				t.Fatal(err)
			}
			if string(raw) != want[kind] {
				t.Errorf("answer\n got %s\nwant %s", raw, want[kind])
			}
		})
	}
}

func TestWriterRules(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		body    string
		header  map[string]string
	}{
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, 200, "", map[string]string{}},
		{"implicit 200", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hi")) }, 200, "hi",
			map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		{"first status wins", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) }, 404, "", map[string]string{}},
		{"informational statuses are dropped", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(202) }, 202, "", map[string]string{}},
		{"header is fixed by WriteHeader", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["A"] = []string{"1"}
			w.WriteHeader(200)
			w.Header()["A"][0] = "2"
			w.Header().Set("B", "3")
		}, 200, "", map[string]string{"A": "1"}},
		{"type is sniffed over all writes", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<ht"))
			_, _ = w.Write([]byte("ml></html>"))
		}, 200, "<html></html>", map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		{"a nil type is not sniffed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = w.Write([]byte("hi"))
		}, 200, "hi", map[string]string{"Content-Type": ""}},
		{"nor is coded content", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("\x1f\x8bxx"))
		}, 200, "\x1f\x8bxx", map[string]string{"Content-Encoding": "gzip"}},
		{"204 has no body", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
				panic(err)
			}
		}, 204, "", map[string]string{}},
		{"304 has no body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Etag", `"1"`)
			w.WriteHeader(304)
		}, 304, "", map[string]string{"Etag": `"1"`}},
		{"connection headers are dropped", func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "X-Own"} {
				w.Header().Set(name, "1")
			}
			w.Header().Set("Connection", "close, x-own")
			w.Header().Set("X-Kept", "1")
		}, 200, "", map[string]string{"X-Kept": "1"}},
		{"headers stay one line", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("A", " 1\r\nB: 2 ")
			w.Header().Set("bad name", "1")
			w.Header().Set("C", "caf\xe9")
		}, 200, "", map[string]string{"A": "1  B: 2", "C": "caf\ufffd"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := invoke(t, test.handler, shellV2())
			if a.StatusCode != test.status || a.content(t) != test.body {
				t.Errorf("answer %d %q, want %d %q", a.StatusCode, a.content(t), test.status, test.body)
			}
			if !maps.Equal(a.Headers, test.header) {
				t.Errorf("headers %q, want %q", a.Headers, test.header)
			}
		})
	}
}

// The same handler must look the same through net/http's own server.
func TestLikeNetHTTP(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"json":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"a":1}`) },
		"not text": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 1, 0xff}) },
		"error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "../x?y=z", http.StatusSeeOther) },
		"cookies": func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
			http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
		},
		"mux":   http.NewServeMux().ServeHTTP,
		"empty": func(http.ResponseWriter, *http.Request) {},
		"path": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.URL, r.RequestURI, r.Method, r.ContentLength)
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/a%2Fb/c?d=e", nil)
			if err != nil {
				t.Fatal(err)
			}
			want, err := server.Client().Transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer want.Body.Close()
			wantBody := new(strings.Builder)
			if err := want.Write(wantBody); err != nil {
				t.Fatal(err)
			}
			want.Header.Del("Date")
			want.Header.Del("Content-Length")

			a := invoke(t, handler, overlay(shellV1(), map[string]any{
				"httpMethod": "GET", "path": "/a%2Fb/c", "headers": nil, "multiValueHeaders": nil,
				"queryStringParameters": map[string]any{"d": "e"},
			}))
			if a.StatusCode != want.StatusCode {
				t.Errorf("status %d, want %d", a.StatusCode, want.StatusCode)
			}
			if !maps.EqualFunc(http.Header(a.MultiValueHeaders), want.Header, slices.Equal) {
				t.Errorf("header %q, want %q", a.MultiValueHeaders, want.Header)
			}
			if _, body, _ := strings.Cut(wantBody.String(), "\r\n\r\n"); a.content(t) != body {
				t.Errorf("body %q, want %q", a.content(t), body)
			}
		})
	}
}

func TestBodyEncoding(t *testing.T) {
	tests := []struct {
		contentType string
		body        string
		isBase64    bool
	}{
		{"application/json", `{}`, false},
		{"Application/JSON; charset=utf-8", `{}`, false},
		{"application/problem+json", `{}`, false},
		{"text/event-stream", "data: x\n\n", false},
		{"image/svg+xml", "<svg/>", false},
		{"application/json", "\xff", true},
		{"text/plain; charset=iso-8859-1", "caf\xe9", true},
		{"application/octet-stream", "text", true},
		{"image/png", "\x89PNG", true},
	}
	for _, test := range tests {
		t.Run(test.contentType, func(t *testing.T) {
			a := invoke(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = w.Write([]byte(test.body))
			}, shellV1())
			if a.IsBase64Encoded != test.isBase64 || a.content(t) != test.body {
				t.Errorf("base64 %t, body %q; want %t, %q", a.IsBase64Encoded, a.content(t), test.isBase64, test.body)
			}
		})
	}
}

// TestHead covers B-61: no body, not even of the answers of this package.
func TestHead(t *testing.T) {
	head := func(shell map[string]any) map[string]any {
		if _, isV1 := shell["httpMethod"]; isV1 {
			return overlay(shell, map[string]any{"httpMethod": "HEAD"})
		}
		return overlay(shell, map[string]any{"requestContext": map[string]any{"http": map[string]any{"method": "HEAD"}}})
	}
	for kind, shell := range shells() {
		t.Run(kind, func(t *testing.T) {
			a := invoke(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", "9")
				w.WriteHeader(http.StatusMethodNotAllowed)
				if n, err := w.Write([]byte(`{"a":"b"}`)); n != 9 || err != nil {
					t.Errorf("Write = %d, %v", n, err)
				}
			}, head(shell))
			if a.StatusCode != 405 || a.Body != "" || a.header("Content-Type") != "application/json" || a.header("Content-Length") != "" {
				t.Errorf("answer %+v", a)
			}
			a = invoke(t, func(http.ResponseWriter, *http.Request) { panic("x") }, head(shell))
			if a.StatusCode != 500 || a.Body != "" {
				t.Errorf("answer to a panic: %+v", a)
			}
			a = invoke(t, nil, overlay(head(shell), map[string]any{"body": "*", "isBase64Encoded": true}))
			if a.StatusCode != 400 || a.Body != "" {
				t.Errorf("refusal: %+v", a)
			}
		})
	}
}

func TestNoFlusher(t *testing.T) {
	a := invoke(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Flusher); ok {
			t.Error("the writer claims to flush")
		}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush = %v", err)
		}
	}, shellFURL())
	if a.StatusCode != 200 {
		t.Errorf("status %d", a.StatusCode)
	}
}

func TestCookieNames(t *testing.T) {
	seen := make(map[string]bool)
	for i := range 512 {
		name := cookieName(i)
		if seen[name] || !strings.EqualFold(name, "set-cookie") {
			t.Fatalf("cookieName(%d) = %q", i, name)
		}
		seen[name] = true
	}
}

func TestAnswersAreJSON(t *testing.T) {
	for d := restAPI; d <= albMulti; d++ {
		for _, f := range []*refusal{emptyEvent, internal, outOfTime, tooLarge(7_000_000, d.limit())} {
			for _, isHead := range []bool{false, true} {
				if raw := d.answer(f.response(isHead)); !json.Valid(raw) {
					t.Errorf("door %d, %s: %q", d, f.reason, raw)
				}
			}
		}
	}
}
