package lambdahost

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// late invokes a handler with a deadline of 10 s on a clock of the test's own, and
// returns the answer and when it came.
func late(t *testing.T, h http.HandlerFunc) (proxyAnswer, time.Duration) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), start.Add(10*time.Second))
	defer cancel()
	raw, err := newTestInvoker(h).Invoke(ctx, encodeEvent(t, shellV2()))
	if err != nil {
		t.Fatal(err)
	}
	return decodeAnswer(t, raw), time.Since(start)
}

func TestContextEndsBeforeTheInvocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, took := late(t, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
				t.Errorf("context ended with %v", r.Context().Err())
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		if a.StatusCode != http.StatusServiceUnavailable || took != 9500*time.Millisecond {
			t.Errorf("answer %d after %s, want the handler's own after 9.5s", a.StatusCode, took)
		}
	})
}

func TestShortInvocationsKeepMostOfTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct{ deadline, handler time.Duration }{
			{time.Hour, time.Hour - 500*time.Millisecond},
			{time.Second, 800 * time.Millisecond},
			{0, 0},
			{-time.Second, 0},
		} {
			start := time.Now()
			ctx, cancel := context.WithDeadline(t.Context(), start.Add(test.deadline))
			var got time.Duration
			_, err := newTestInvoker(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				got = time.Since(start)
			})).Invoke(ctx, encodeEvent(t, shellV2()))
			cancel()
			synctest.Wait()
			if err != nil || got != test.handler {
				t.Errorf("deadline %s: the handler had %s (%v), want %s", test.deadline, got, err, test.handler)
			}
		}
	})
}

// TestStuckHandlers are handlers that ignore their context for ever.
func TestStuckHandlers(t *testing.T) {
	tests := []struct {
		name   string
		write  func(w http.ResponseWriter)
		status int
		body   string // "": the JSON-RPC error of a timeout
	}{
		{"nothing written", func(http.ResponseWriter) {}, 504, ""},
		{"only a status", func(w http.ResponseWriter) { w.WriteHeader(200) }, 504, ""},
		{"half of a JSON body", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","res`))
		}, 504, ""},
		{"less than announced", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("12345"))
		}, 504, ""},
		{"no whole event", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: x\n"))
		}, 504, ""},
		{"a whole JSON body", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(503)
			_, _ = w.Write([]byte(`{"late":true}`))
		}, 503, `{"late":true}`},
		{"whole events", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: x\n\ndata: y"))
		}, 200, "data: x\n\ndata: y"},
		{"some text", func(w http.ResponseWriter) { _, _ = w.Write([]byte("busy")) }, 200, "busy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				a, took := late(t, func(w http.ResponseWriter, r *http.Request) {
					test.write(w)
					*r = *r.WithContext(context.Background()) // as old middleware does
					r.URL.Path = "/changed"
					<-release
					// The answer is out; none of this may reach it or race with it.
					w.Header().Set("Late", "1")
					w.WriteHeader(http.StatusTeapot)
					if n, err := w.Write([]byte("late")); n != 0 || !errors.Is(err, http.ErrHandlerTimeout) {
						t.Errorf("late Write = %d, %v", n, err)
					}
				})
				close(release)
				synctest.Wait()
				if took != 9750*time.Millisecond {
					t.Errorf("answered after %s, want 9.75s", took)
				}
				if a.StatusCode != test.status {
					t.Errorf("status %d, want %d", a.StatusCode, test.status)
				}
				if test.body != "" {
					if a.Body != test.body {
						t.Errorf("body %q, want %q", a.Body, test.body)
					}
					return
				}
				if code, _, reason := rpcError(t, a); code != -32603 || reason != "deadline_exceeded" {
					t.Errorf("error %d %q", code, reason)
				}
			})
		})
	}
}

func TestStuckHandlerOf204(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a, _ := late(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			<-release
		})
		close(release)
		if a.StatusCode != http.StatusNoContent {
			t.Errorf("status %d", a.StatusCode)
		}
	})
}

func TestPanicDuringTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, took := late(t, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic("x")
		})
		if a.StatusCode != 500 || took != 9500*time.Millisecond {
			t.Errorf("answer %d after %s", a.StatusCode, took)
		}
	})
}

func TestWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ctx context.Context
		a := invoke(t, func(w http.ResponseWriter, r *http.Request) {
			ctx = r.Context()
			select {
			case <-time.After(24 * time.Hour):
			case <-ctx.Done():
				t.Error("the context ended on its own")
			}
			w.WriteHeader(202)
		}, shellV2())
		if a.StatusCode != 202 || !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("answer %d; context afterwards %v, want it canceled", a.StatusCode, ctx.Err())
		}
	})
}

func TestCallerCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		raw, err := newTestInvoker(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			cancel()
			<-release
		})).Invoke(ctx, encodeEvent(t, shellV2()))
		if err != nil {
			t.Fatal(err)
		}
		if a := decodeAnswer(t, raw); a.StatusCode != 504 {
			t.Errorf("status %d", a.StatusCode)
		}
	})
}

// A handler that says its answer is complete is not waited for, whatever it goes on doing.
func TestAnsweredBeforeItReturns(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	i := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"whole":true}`))
		host.Answered(r.Context())
		<-release
	}))
	b, err := i.Invoke(t.Context(), encodeEvent(t, shellV2()))
	if err != nil {
		t.Fatal(err)
	}
	if a := decodeAnswer(t, b); a.StatusCode != 200 || a.Body != `{"whole":true}` {
		t.Errorf("%s", b)
	}
}
