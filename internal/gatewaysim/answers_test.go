package gatewaysim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/internal/gatewaysim"
	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// The doors of the tests, in front of paths below /prod.
var doors = map[string]doorOf{
	"FURL": func(f gatewaysim.Lambda) http.Handler { return gatewaysim.FunctionURL(f, nil) },
	"HTTP": func(f gatewaysim.Lambda) http.Handler { return gatewaysim.HTTPAPI(f, nil) },
	"REST": func(f gatewaysim.Lambda) http.Handler { return gatewaysim.RESTAPI(f, nil) },
	"REST binary": func(f gatewaysim.Lambda) http.Handler {
		return gatewaysim.RESTAPI(f, &gatewaysim.RESTOptions{BinaryMediaTypes: []string{"image/png"}})
	},
	"ALB": func(f gatewaysim.Lambda) http.Handler { return gatewaysim.ALB(f, nil) },
	"ALB multi": func(f gatewaysim.Lambda) http.Handler {
		return gatewaysim.ALB(f, &gatewaysim.ALBOptions{MultiValue: true})
	},
	"FURL stream": func(f gatewaysim.Lambda) http.Handler {
		return gatewaysim.FunctionURL(f, &gatewaysim.URLOptions{Streaming: true})
	},
	"REST stream": func(f gatewaysim.Lambda) http.Handler {
		return gatewaysim.RESTAPI(f, &gatewaysim.RESTOptions{Streaming: true})
	},
}

// answering is a function that always answers the same.
func answering(out string) gatewaysim.Lambda {
	return gatewaysim.Buffered(func(context.Context, []byte) ([]byte, error) { return []byte(out), nil })
}

func failing(err error) gatewaysim.Lambda {
	return gatewaysim.Buffered(func(context.Context, []byte) ([]byte, error) { return nil, err })
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// What a function answers in the buffered way, and what each door makes of it.
func TestAnswers(t *testing.T) {
	const (
		good      = `{"statusCode":201,"headers":{"content-type":"text/x","x-a":"1"},"body":"é"}`
		multi     = `{"statusCode":201,"multiValueHeaders":{"content-type":["text/x"],"x-a":["1","2"]},"body":"é"}`
		both      = `{"statusCode":200,"headers":{"X-A":"1","X-B":"3"},"multiValueHeaders":{"X-A":["1","2"]},"body":""}`
		cookies   = `{"statusCode":200,"headers":{"content-type":"text/x"},"cookies":["a=1","b=2"],"body":""}`
		challenge = `{"statusCode":401,"headers":{"WWW-Authenticate":"Bearer","content-length":"77"},"body":"x"}`
		binary    = `{"statusCode":200,"headers":{"Content-Type":"image/png"},"body":"/w==","isBase64Encoded":true}`
		badBase64 = `{"statusCode":200,"body":"*","isBase64Encoded":true}`
	)
	for _, c := range []struct {
		name, out string
		doors     string
		status    int
		body      string
		header    string // Name=value of one line of the header; "Name=" for none
	}{
		{"an answer", good, "FURL,HTTP,REST,ALB", 201, "é", "X-A=1"},
		{"lists of values", multi, "REST,ALB multi", 201, "é", "X-A=1|2"},
		{"lists of values elsewhere", multi, "FURL,HTTP", 201, "é", "X-A="},
		{"headers of the other kind", multi, "ALB", 502, "*", ""},
		{"headers of the other kind, the other way", good, "ALB multi", 502, "*", ""},
		{"both kinds are merged", both, "REST", 200, "", "X-A=1|2"},
		{"cookies", cookies, "FURL,HTTP", 200, "", "Set-Cookie=a=1|b=2"},
		{"a member too many", cookies, "REST", 502, `{"message": "Internal server error"}`, ""},
		{"a challenge", challenge, "HTTP,ALB", 401, "x", "Www-Authenticate=Bearer"},
		{"a challenge is renamed", challenge, "FURL,REST", 401, "x", "X-Amzn-Remapped-Www-Authenticate=Bearer"},
		{"and its own name is gone", challenge, "FURL,REST", 401, "x", "Www-Authenticate="},
		{"a length is renamed", challenge, "FURL", 401, "x", "X-Amzn-Remapped-Content-Length=77"},
		{"base64", binary, "FURL,HTTP,ALB,REST binary", 200, "\xff", "Content-Type=image/png"},
		{"base64 of no binary type", binary, "REST", 200, "/w==", ""},
		{"broken base64", badBase64, "FURL,ALB", 502, "*", ""},
		{"broken base64, HTTP API", badBase64, "HTTP", 500, `{"message": "Internal Server Error"}`, ""},
		{"no status", `{"body":"x"}`, "FURL,HTTP", 200, `{"body":"x"}`, "Content-Type=application/json"},
		{"no object", `"hello"`, "FURL,HTTP", 200, `"hello"`, "Content-Type=application/json"},
		{"no status where it has to be", `{"body":"x"}`, "REST,ALB", 502, "*", ""},
		{"a number for a header", `{"statusCode":200,"headers":{"a":1}}`, "ALB", 502, "*", ""},
		{"null", `null`, "REST,ALB", 502, "*", ""},
		{"more than a load balancer takes", `{"statusCode":200,"body":"` + strings.Repeat("x", 1<<20) + `"}`, "ALB", 502, "*", ""},
	} {
		for kind := range strings.SplitSeq(c.doors, ",") {
			w := serve(doors[kind](answering(c.out)), request("GET", "/prod/x", ""))
			if w.Code != c.status || c.body != "*" && w.Body.String() != c.body {
				t.Errorf("%s, %s: %d %q, want %d %q", c.name, kind, w.Code, w.Body, c.status, c.body)
			}
			if name, want, _ := strings.Cut(c.header, "="); name != "" {
				if got := strings.Join(w.Header()[name], "|"); got != want {
					t.Errorf("%s, %s: %s %q, want %q", c.name, kind, name, got, want)
				}
			}
		}
	}
}

// What each door says when there is no answer.
func TestFailures(t *testing.T) {
	failed := &lambdasim.FunctionError{Type: "Sandbox.Timedout", Message: "secret"}
	for _, c := range []struct {
		name   string
		err    error
		status map[string]int
	}{
		{"the function failed", failed, map[string]int{"FURL": 502, "HTTP": 500, "REST": 502, "ALB": 502}},
		{"throttled", lambdasim.ErrThrottled, map[string]int{"FURL": 429, "HTTP": 503, "REST": 500, "ALB": 502}},
		{"event too large", lambdasim.ErrRequestTooLarge, map[string]int{"FURL": 413, "HTTP": 503, "REST": 500, "ALB": 502}},
		{"no function", lambdasim.ErrClosed, map[string]int{"FURL": 404, "HTTP": 503, "REST": 500, "ALB": 502}},
		{"out of the door's time", context.DeadlineExceeded, map[string]int{"HTTP": 503, "REST": 504}},
	} {
		for kind, status := range c.status {
			w := serve(doors[kind](failing(c.err)), request("POST", "/prod/x", "{}"))
			if w.Code != status || strings.Contains(w.Body.String(), "secret") || w.Body.Len() == 0 {
				t.Errorf("%s, %s: %d %s, want %d", c.name, kind, w.Code, w.Body, status)
			}
		}
	}
	for kind, limit := range map[string]int{"FURL": lambdasim.MaxRequest, "HTTP": 10 << 20, "REST": 10 << 20, "ALB": 1 << 20} {
		body := strings.Repeat("x", limit+1)
		w := serve(doors[kind](failing(errors.New("it was invoked"))), request("POST", "/prod/x", body, "Content-Type", "text/plain"))
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a body above the limit, %s: %d %s", kind, w.Code, w.Body)
		}
	}
}

// Paths that lead to no stage do not lead to the function.
func TestPathsOfNoStage(t *testing.T) {
	for _, c := range []struct {
		name, path string
		door       doorOf
		status     int
	}{
		{"REST", "/mcp", doors["REST"], 403},
		{"REST, a longer name", "/production/mcp", doors["REST"], 403},
		{"HTTP", "/mcp", func(f gatewaysim.Lambda) http.Handler {
			return gatewaysim.HTTPAPI(f, &gatewaysim.HTTPOptions{Stage: "v1"})
		}, 404},
		{"base path", "/mcp", func(f gatewaysim.Lambda) http.Handler {
			return gatewaysim.RESTAPI(f, &gatewaysim.RESTOptions{BasePath: "/agents"})
		}, 403},
	} {
		if w := serve(c.door(answering(`{"statusCode":200}`)), request("GET", c.path, "")); w.Code != c.status {
			t.Errorf("%s: %d", c.name, w.Code)
		}
	}
}

// A gateway's time is not the function's, which is left to itself.
func TestGatewayTimeouts(t *testing.T) {
	for kind, c := range map[string]struct {
		time   time.Duration
		status int
	}{"HTTP": {30 * time.Second, 503}, "REST": {29 * time.Second, 504}, "REST stream": {15 * time.Minute, 504}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			w := serve(doors[kind](stuck{}), request("GET", "/prod/x", ""))
			if took := time.Since(start); w.Code != c.status || took != c.time {
				t.Errorf("%s: %d after %s", kind, w.Code, took)
			}
		})
	}
}

// stuck is a function that outlasts every door.
type stuck struct{}

func (stuck) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) InvokeStream(ctx context.Context, event []byte) (*lambdasim.Stream, error) {
	_, err := s.Invoke(ctx, event)
	return nil, err
}

// An answer to HEAD has its header and no body.
func TestHead(t *testing.T) {
	for _, kind := range []string{"FURL", "HTTP", "REST", "ALB"} {
		s := httptest.NewServer(doors[kind](answering(`{"statusCode":200,"headers":{"content-type":"text/x"},"body":"hello"}`)))
		r, err := http.Head(s.URL + "/prod/x")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/x" || len(b) != 0 || err != nil {
			t.Errorf("%s: %d %v %q %v", kind, r.StatusCode, r.Header, b, err)
		}
		_ = r.Body.Close()
		s.Close()
	}
}

// The events are valid JSON whatever the client sends.
func TestEventsAreJSON(t *testing.T) {
	for kind, door := range doors {
		if strings.HasSuffix(kind, "stream") {
			continue
		}
		r := request("POST", "/prod/x?a=%ff&%ff=1", "\x00\xff", "X-A", "\xff", "Cookie", "\xff=1")
		serve(door(gatewaysim.Buffered(func(_ context.Context, event []byte) ([]byte, error) {
			if !json.Valid(event) {
				t.Errorf("%s: %q", kind, event)
			}
			return []byte(`{"statusCode":200}`), nil
		})), r)
	}
}
