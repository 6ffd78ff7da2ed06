package gatewaysim_test

import (
	"bufio"
	"context"
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

const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00"

// streaming is a function that streams what it reads.
type streaming struct {
	contentType string
	io.Reader
}

const frames = "application/vnd.awslambda.http-integration-response"

func (streaming) Invoke(context.Context, []byte) ([]byte, error) {
	return nil, errors.New("invoked in the buffered way")
}

func (s streaming) InvokeStream(context.Context, []byte) (*lambdasim.Stream, error) {
	return &lambdasim.Stream{ContentType: s.contentType, ReadCloser: io.NopCloser(s.Reader)}, nil
}

// What a function streams, and what each door makes of it.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name, kind, out string
		doors           string
		status          int
		body, header    string
	}{
		{"a stream", frames, `{"statusCode":201,"headers":{"content-type":"text/x","X-A":"1"}}` + zeros + "a\x00" + zeros + "b", "FURL,REST", 201, "a\x00" + zeros + "b", "X-A=1"},
		{"cookies", frames, `{"statusCode":200,"cookies":["a=1","b=2"]}` + zeros + "x", "FURL,REST", 200, "x", "Set-Cookie=a=1|b=2"},
		{"lists of values", frames, `{"statusCode":200,"multiValueHeaders":{"X-A":["1","2"]}}` + zeros + "x", "REST", 200, "x", "X-A=1|2"},
		{"a challenge is renamed", frames, `{"statusCode":401,"headers":{"WWW-Authenticate":"Bearer"}}` + zeros + "x", "FURL,REST", 401, "x", "X-Amzn-Remapped-Www-Authenticate=Bearer"},
		{"no status", frames, `{}` + zeros + "x", "FURL,REST", 200, "x", ""},
		{"no content", frames, `{"statusCode":204}` + zeros, "FURL,REST", 204, "", ""},
		{"a member too many", frames, `{"statusCode":200,"body":"x"}` + zeros + "x", "FURL,REST", 502, "*", ""},
		{"a prelude that is no JSON", frames, `x` + zeros + "x", "FURL,REST", 502, "*", ""},
		{"a prelude without its end", frames, `{"statusCode":200}`, "FURL,REST", 502, "*", ""},
		{"a prelude that is too long", frames, `{"headers":{"X-A":"` + strings.Repeat("x", 16<<10) + `"}}` + zeros + "x", "FURL,REST", 502, "*", ""},
		{"the answer of a function that does not stream", "application/json", `{"statusCode":404,"body":"x"}`, "FURL", 200, `{"statusCode":404,"body":"x"}`, "Content-Type=application/json"},
		{"the same, REST", "application/json", `{"statusCode":404,"body":"x"}`, "REST", 502, "*", ""},
	} {
		for kind := range strings.SplitSeq(c.doors, ",") {
			w := serve(doors[kind+" stream"](streaming{c.kind, strings.NewReader(c.out)}), request("POST", "/prod/x", "{}"))
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
	for _, kind := range []string{"FURL stream", "REST stream"} {
		if w := serve(doors[kind](failing(nil)), request("POST", "/prod/x", "{}")); w.Code != 502 {
			t.Errorf("%s: a function that cannot: %d", kind, w.Code)
		}
	}
}

// What has come is passed on before more comes, and a stream that breaks breaks at the client.
func TestStreamsPassOn(t *testing.T) {
	for _, kind := range []string{"FURL stream", "REST stream"} {
		out, in := io.Pipe()
		s := httptest.NewServer(doors[kind](streaming{frames, out}))
		go func() {
			_, _ = io.WriteString(in, `{"statusCode":200,"headers":{"content-type":"text/event-stream"}}`+zeros+"one\n")
		}()
		r, err := http.Get(s.URL + "/prod/x")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(r.Body)
		if line, err := lines.ReadString('\n'); line != "one\n" || err != nil {
			t.Errorf("%s: %q, %v", kind, line, err)
		}
		go func() {
			_, _ = io.WriteString(in, "two\n")
			_ = in.CloseWithError(&lambdasim.FunctionError{Type: "t", Message: "m"})
		}()
		if rest, err := io.ReadAll(lines); string(rest) != "two\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %q, %v", kind, rest, err)
		}
		_ = r.Body.Close()
		s.Close()
	}
}

// A client that leaves does not hold the door.
func TestClientsLeaveStreams(t *testing.T) {
	for _, kind := range []string{"FURL stream", "REST stream"} {
		out, in := io.Pipe()
		s := httptest.NewServer(doors[kind](piped{out}))
		go func() { _, _ = io.WriteString(in, `{"statusCode":200}`+zeros+"one") }()
		r, err := http.Get(s.URL + "/prod/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		s.Close() // waits for the door, for which nothing comes any more
		if _, err := io.WriteString(in, "two"); err != io.ErrClosedPipe {
			t.Errorf("%s: the stream goes on: %v", kind, err)
		}
	}
}

// The doors have the fault that an empty body never ends.
func TestEmptyStreamsHang(t *testing.T) {
	for _, kind := range []string{"FURL stream", "REST stream"} {
		for _, c := range []struct {
			method, out string
			hangs       bool
		}{
			{"POST", `{"statusCode":202}` + zeros, true},
			{"POST", `{"statusCode":202}` + zeros + "\n", false},
			{"POST", `{"statusCode":204}` + zeros, false},
			{"GET", `{"statusCode":304}` + zeros, false},
			{"HEAD", `{"statusCode":200}` + zeros, false},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start := time.Now()
				serve(doors[kind](streaming{frames, strings.NewReader(c.out)}), request(c.method, "/prod/x", "").WithContext(ctx))
				if hung := time.Since(start) > 0; hung != c.hangs {
					t.Errorf("%s, %s %q: hung %t", kind, c.method, c.out, hung)
				}
			})
		}
	}
}

// A REST API ends a stream that says nothing for long, and one that goes on for longer.
func TestRESTStreamTimes(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause time.Duration
		ends  time.Duration
	}{{"silent", time.Hour, 5 * time.Minute}, {"long", 4 * time.Minute, 15 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			out, in := io.Pipe()
			over := make(chan struct{})
			defer close(over)
			go func() {
				for next := `{"statusCode":200}` + zeros + "x"; ; next = "x" {
					if _, err := io.WriteString(in, next); err != nil {
						return
					}
					select {
					case <-time.After(c.pause):
					case <-over:
						return
					}
				}
			}()
			start := time.Now()
			h := doors["REST stream"](piped{out})
			func() {
				defer func() {
					if v := recover(); v != http.ErrAbortHandler {
						t.Errorf("%s: the response was not cut: %v", c.name, v)
					}
				}()
				serve(h, request("GET", "/prod/x", ""))
			}()
			if took := time.Since(start); took != c.ends {
				t.Errorf("%s: ended after %s", c.name, took)
			}
		})
	}
}

// piped is a function whose stream can be closed by who reads it.
type piped struct{ *io.PipeReader }

func (piped) Invoke(context.Context, []byte) ([]byte, error) { return nil, io.EOF }

func (p piped) InvokeStream(context.Context, []byte) (*lambdasim.Stream, error) {
	return &lambdasim.Stream{ContentType: frames, ReadCloser: p.PipeReader}, nil
}

var _ gatewaysim.Lambda = piped{}
