package lambdahost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// streamed is an answer in frames as a front door reads it.
type streamed struct {
	proxyAnswer
	text string // the body
	err  error  // what cut it short
}

// open invokes a handler in the streaming way.
func open(t *testing.T, ctx context.Context, h http.HandlerFunc, event map[string]any) io.ReadCloser {
	t.Helper()
	r, err := newTestInvoker(h).InvokeStream(ctx, encodeEvent(t, event))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.(interface{ ContentType() string }).ContentType(); got != "application/vnd.awslambda.http-integration-response" {
		t.Errorf("content type %s", got)
	}
	if _, err := json.Marshal(r); err == nil {
		t.Error("the runtime loop would send the answer as JSON")
	}
	return r.(io.ReadCloser)
}

// unframe takes a stream apart.
func unframe(t *testing.T, b []byte) (a proxyAnswer, body string) {
	t.Helper()
	head, rest, ok := bytes.Cut(b, make([]byte, 8))
	if !ok {
		t.Fatalf("no eight zero bytes in %.300q", b)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(head, &members); err != nil {
		t.Fatalf("prelude %q: %v", head, err)
	}
	for name := range members {
		switch name {
		case "statusCode", "headers", "multiValueHeaders", "cookies": // the documentation has these and no more
		default:
			t.Errorf("the prelude has a member %q", name)
		}
	}
	return decodeAnswer(t, head), string(rest)
}

// finish reads a stream to its end.
func finish(t *testing.T, r io.ReadCloser) streamed {
	t.Helper()
	b, err := io.ReadAll(r)
	a, text := unframe(t, b)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return streamed{a, text, err}
}

func streamOf(t *testing.T, h http.HandlerFunc, event map[string]any) streamed {
	t.Helper()
	return finish(t, open(t, t.Context(), h, event))
}

// streamingShells are the events of the doors that take streams.
func streamingShells() map[string]map[string]any {
	return map[string]map[string]any{"FURL": shellFURL(), "REST": shellV1()}
}

// A handler that just answers is answered for in frames, with its header in the form of the door.
func TestFrames(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "13")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header()["X-Two"] = []string{"a", "b"}
		w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"a":"\u0000"}`)
	}
	for kind, shell := range streamingShells() {
		got := streamOf(t, h, shell)
		if got.err != nil || got.StatusCode != 201 || got.text != `{"a":"\u0000"}` {
			t.Errorf("%s: %+v", kind, got)
		}
		if kind == "REST" {
			if h := got.MultiValueHeaders; len(h) != 3 || len(h["Set-Cookie"]) != 2 || len(h["X-Two"]) != 2 || got.Headers != nil || got.Cookies != nil {
				t.Errorf("%s: header %+v", kind, got.proxyAnswer)
			}
			continue
		}
		if h := got.Headers; len(h) != 2 || h["X-Two"] != "a, b" || len(got.Cookies) != 2 || got.MultiValueHeaders != nil {
			t.Errorf("%s: header %+v", kind, got.proxyAnswer)
		}
	}
}

// The frames are those that AWS's own types make.
func TestFramesAreThoseOfAWS(t *testing.T) {
	got, err := io.ReadAll(open(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Set-Cookie", "a=1")
		_, _ = io.WriteString(w, "hello")
	}, shellFURL()))
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(&events.LambdaFunctionURLStreamingResponse{StatusCode: 200, Headers: map[string]string{"Content-Type": "text/plain"},
		Cookies: []string{"a=1"}, Body: strings.NewReader("hello")})
	if err != nil || string(got) != string(want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
}

// What is flushed can be read before the handler goes on.
func TestStreamArrivesAsItIsWritten(t *testing.T) {
	for kind, shell := range streamingShells() {
		synctest.Test(t, func(t *testing.T) {
			next := make(chan struct{})
			r := open(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, event := range []string{"data: 1\n\n", "data: 2\n\n", "data: 3\n\n"} {
					_, _ = io.WriteString(w, event)
					w.(http.Flusher).Flush()
					<-next
				}
			}, shell)
			b := make([]byte, 1000)
			n, err := io.ReadAtLeast(r, b, 9)
			if n < 9 || err != nil {
				t.Fatalf("%s: %q, %v", kind, b[:n], err)
			}
			for len(b[:n]) < 20 || !bytes.HasSuffix(b[:n], []byte("data: 1\n\n")) {
				more, err := r.Read(b[n:])
				if n += more; err != nil {
					t.Fatalf("%s: %q, %v", kind, b[:n], err)
				}
			}
			for _, want := range []string{"data: 2\n\n", "data: 3\n\n"} {
				next <- struct{}{}
				if n, err := r.Read(b); string(b[:n]) != want || err != nil {
					t.Errorf("%s: %q, %v, want %q", kind, b[:n], err, want)
				}
			}
			next <- struct{}{}
			if n, err := r.Read(b); n != 0 || err != io.EOF {
				t.Errorf("%s: %q, %v at the end", kind, b[:n], err)
			}
			_ = r.Close()
		})
	}
}

// An answer without a body would leave its client waiting (aws-lambda-go#593): where HTTP has a
// place for a body, there is a line end.
func TestEmptyStreams(t *testing.T) {
	for _, c := range []struct {
		name, method string
		h            http.HandlerFunc
		status       int
		body, kind   string
	}{
		{"accepted", "POST", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, 202, "\n", "text/plain; charset=utf-8"},
		{"nothing at all", "POST", func(http.ResponseWriter, *http.Request) {}, 200, "\n", "text/plain; charset=utf-8"},
		{"a type of its own", "POST", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(405)
		}, 405, "\n", "application/json"},
		{"no content", "POST", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, "", ""},
		{"not modified", "GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, 304, "", ""},
		{"head", "HEAD", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "ok")
		}, 200, "", "text/plain"},
		{"flushed head", "HEAD", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, 200, "", ""},
		{"flushed no content", "POST", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			w.(http.Flusher).Flush()
		}, 204, "", ""},
		{"flushed", "POST", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
		}, 200, "\n", "text/event-stream"},
	} {
		for kind, shell := range streamingShells() {
			if kind == "REST" {
				shell = overlay(shell, map[string]any{"httpMethod": c.method})
			} else {
				shell = overlay(shell, map[string]any{"requestContext": map[string]any{"http": map[string]any{"method": c.method}}})
			}
			got := streamOf(t, c.h, shell)
			contentType := got.Headers["Content-Type"]
			if values := got.MultiValueHeaders["Content-Type"]; len(values) > 0 {
				contentType = values[0]
			}
			if got.err != nil || got.StatusCode != c.status || got.text != c.body || contentType != c.kind {
				t.Errorf("%s, %s: %+v", c.name, kind, got)
			}
		}
	}
}

// The doors that take no stream, and events that are no requests, are answered whole.
func TestWholeAnswersOfAStreamingFunction(t *testing.T) {
	flushed := false
	h := func(w http.ResponseWriter, r *http.Request) {
		_, flushed = w.(http.Flusher)
		_, _ = io.WriteString(w, "hello")
	}
	for kind, shell := range shells() {
		if streamingShells()[kind] != nil {
			continue
		}
		payload := encodeEvent(t, shell)
		r, err := newTestInvoker(http.HandlerFunc(h)).InvokeStream(t.Context(), payload)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(r)
		want, err := newTestInvoker(http.HandlerFunc(h)).Invoke(t.Context(), payload)
		if err != nil || string(got) != string(want) || flushed {
			t.Errorf("%s: %s, want %s; flushes %t", kind, got, want, flushed)
		}
		if got := r.(interface{ ContentType() string }).ContentType(); got != "application/json" {
			t.Errorf("%s: content type %s", kind, got)
		}
	}
	r, err := newTestInvoker(http.HandlerFunc(h)).InvokeStream(t.Context(), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r)
	if a := decodeAnswer(t, b); a.StatusCode != 400 {
		t.Errorf("an empty event: %s", b)
	}
	var unknown *UnknownEventError
	if _, err := newTestInvoker(http.HandlerFunc(h)).InvokeStream(t.Context(), []byte(`{"Records":[]}`)); !errors.As(err, &unknown) {
		t.Errorf("an unknown event: %v", err)
	}
}

// Until a handler has flushed it is answered for, as behind every door.
func TestFaultsBeforeTheStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		h      http.HandlerFunc
		status int
		reason string
	}{
		{"panic", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: x\n\n")
			panic("secret")
		}, 500, "internal"},
		{"Goexit", func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, 500, "internal"},
		{"header too large", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Big", strings.Repeat("x", 16<<10)) }, 500, "response_too_large"},
		{"header too large for a stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Big", strings.Repeat("x", 16<<10))
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}, 500, "response_too_large"},
	} {
		for kind, shell := range streamingShells() {
			got := streamOf(t, c.h, shell)
			got.Body = got.text
			_, _, reason := rpcError(t, got.proxyAnswer)
			if got.err != nil || got.StatusCode != c.status || reason != c.reason {
				t.Errorf("%s, %s: %d %q, %v", c.name, kind, got.StatusCode, got.text, got.err)
			}
		}
	}
	bad := streamOf(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }, overlay(shellFURL(), map[string]any{"rawPath": "/%zz"}))
	if bad.StatusCode != 400 || !strings.Contains(bad.text, "invalid_path") {
		t.Errorf("a bad request: %d %s", bad.StatusCode, bad.text)
	}
}

// begin writes the beginning of a stream.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: 1\n\n")
	w.(http.Flusher).Flush()
}

// What breaks in the middle of a stream cannot be answered any more. It is an error of the
// stream, so that nobody takes the part for the whole.
func TestFaultsInTheStream(t *testing.T) {
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		want string // of the error; "": none
	}{
		{"panic", func(w http.ResponseWriter, _ *http.Request) { begin(w); panic("secret") }, "broke off"},
		{"abort", func(w http.ResponseWriter, _ *http.Request) { begin(w); panic(http.ErrAbortHandler) }, "broke off"},
		{"Goexit", func(w http.ResponseWriter, _ *http.Request) { begin(w); runtime.Goexit() }, "broke off"},
		{"Goexit after the whole answer", func(w http.ResponseWriter, r *http.Request) {
			begin(w)
			host.Answered(r.Context())
			runtime.Goexit()
		}, ""},
	} {
		check := func(got streamed) {
			if got.StatusCode != 200 || got.text != "data: 1\n\n" {
				t.Errorf("%s: %d %q", c.name, got.StatusCode, got.text)
			}
			var broken *BrokenStreamError
			switch {
			case c.want == "" && got.err != nil:
				t.Errorf("%s: %v", c.name, got.err)
			case c.want != "" && (!errors.As(got.err, &broken) || !strings.Contains(got.err.Error(), c.want) || strings.Contains(got.err.Error(), "secret")):
				t.Errorf("%s: error %v, want %q", c.name, got.err, c.want)
			}
		}
		check(streamOf(t, c.h, shellFURL()))
		for range 20 { // it does not matter what of it is noticed first
			synctest.Test(t, func(t *testing.T) {
				v, _, err := newTestInvoker(c.h).begin(t.Context(), encodeEvent(t, shellFURL()), true)
				if err != nil {
					t.Fatal(err)
				}
				r := v.start(newStreamResponseWriter(false))
				synctest.Wait() // for the end of the handler
				check(finish(t, r.frames().(io.ReadCloser)))
			})
		}
	}
}

// A stream has the invocation's time and no more, and its handler can still end it in order.
func TestStreamsEndInTime(t *testing.T) {
	for _, c := range []struct {
		name string
		h    func(w http.ResponseWriter, r *http.Request, release chan struct{})
		text string
		took time.Duration
		cut  bool
	}{
		{"its last word", func(w http.ResponseWriter, r *http.Request, _ chan struct{}) {
			begin(w)
			<-r.Context().Done()
			_, _ = io.WriteString(w, "data: end\n\n")
		}, "data: 1\n\ndata: end\n\n", 9500 * time.Millisecond, false},
		{"stuck", func(w http.ResponseWriter, _ *http.Request, release chan struct{}) { begin(w); <-release }, "data: 1\n\n", 9750 * time.Millisecond, true},
		{"begun too late", func(w http.ResponseWriter, r *http.Request, release chan struct{}) {
			<-r.Context().Done()
			time.Sleep(200 * time.Millisecond)
			begin(w)
			<-release
		}, "data: 1\n\n", 9750 * time.Millisecond, true},
		{"whole and running", func(w http.ResponseWriter, r *http.Request, release chan struct{}) {
			begin(w)
			host.Answered(r.Context())
			<-release
		}, "data: 1\n\n", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				start := time.Now()
				ctx, cancel := context.WithDeadline(t.Context(), start.Add(10*time.Second))
				defer cancel()
				got := finish(t, open(t, ctx, func(w http.ResponseWriter, r *http.Request) {
					c.h(w, r, release)
					select {
					case <-release:
					default:
						return
					}
					// The answer is out: none of this may reach it.
					if n, err := w.Write([]byte("late")); n != 0 || !errors.Is(err, http.ErrHandlerTimeout) {
						t.Errorf("late Write = %d, %v", n, err)
					}
					if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrHandlerTimeout) {
						t.Errorf("late Flush = %v", err)
					}
					if r.Context().Err() == nil {
						t.Error("the context of an answered request goes on")
					}
				}, shellFURL()))
				if took := time.Since(start); got.text != c.text || took != c.took || (got.err != nil) != c.cut {
					t.Errorf("%q after %s, %v", got.text, took, got.err)
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

// A handler that outstays its time and writes on does not keep its stream open, however slowly that
// is read.
func TestStreamOfAWriterWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithDeadline(t.Context(), start.Add(10*time.Second))
		defer cancel()
		r := open(t, ctx, func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 50_000)); err != nil {
					return
				}
			}
		}, shellFURL())
		defer r.Close()
		p := make([]byte, 32<<10)
		var err error
		for err == nil && time.Since(start) < time.Minute {
			time.Sleep(10 * time.Millisecond)
			_, err = r.Read(p)
		}
		var broken *BrokenStreamError
		if took := time.Since(start); !errors.As(err, &broken) || took > 10500*time.Millisecond {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// A body above the limits of a whole answer goes through, one above the platform's does not pass
// for whole, and a handler does not get far ahead of a platform that reads slowly.
func TestLargeStreams(t *testing.T) {
	const size = 20_000_000
	got := streamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if ok, limit := host.Fits(r.Context(), make([]byte, size)); !ok || limit != 200_000_000 {
			t.Errorf("Fits = %t, %d", ok, limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(bytes.Repeat([]byte("\""), size))
	}, shellFURL())
	if got.err != nil || len(got.text) != size {
		t.Errorf("%d bytes, %v", len(got.text), got.err)
	}

	var log bytes.Buffer
	i := NewInvoker(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1_000_000)
		for n := 0; ; n++ {
			if _, err := w.Write(block); err != nil {
				if n != 200 {
					t.Errorf("%d blocks and then %v", n, err)
				}
				return
			}
		}
	}))
	i.log = slog.New(slog.NewTextHandler(&log, nil))
	r, err := i.InvokeStream(t.Context(), encodeEvent(t, shellFURL()))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, r)
	var broken *BrokenStreamError
	if n < 200_000_000 || n > 200_000_000+maxPrelude || !errors.As(err, &broken) || !strings.Contains(log.String(), "response too large") {
		t.Errorf("%d bytes, %v, %s", n, err, &log)
	}

	synctest.Test(t, func(t *testing.T) {
		written := 0
		r := open(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			for err := error(nil); err == nil; {
				var n int
				n, err = w.Write(make([]byte, 100_000))
				written += n
			}
		}, shellFURL())
		start := time.Now()
		time.Sleep(2 * time.Minute) // of the test's own clock
		synctest.Wait()
		if written > 3<<20 {
			t.Errorf("%d bytes were written ahead in %s", written, time.Since(start))
		}
		_ = r.Close()
	})
}

// What does not fit at all, in one write, is no empty success.
func TestOneWriteAboveTheLimit(t *testing.T) {
	v, _, err := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.Write(make([]byte, 1001)); n != 0 || err == nil {
			t.Errorf("Write = %d, %v", n, err)
		}
	})).begin(t.Context(), encodeEvent(t, shellFURL()), true)
	if err != nil {
		t.Fatal(err)
	}
	w := newStreamResponseWriter(false)
	w.limit = 1000
	b, err := io.ReadAll(v.start(w).frames())
	a, text := unframe(t, b)
	if a.Body = text; err != nil || a.StatusCode != 500 {
		t.Errorf("%d %s, %v", a.StatusCode, text, err)
	}
	if _, _, reason := rpcError(t, a); reason != "response_too_large" {
		t.Errorf("reason %s", reason)
	}
}
