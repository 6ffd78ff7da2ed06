package lambdahost

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// stubborn panics again when it is printed.
type stubborn struct{}

func (stubborn) String() string { panic("secret again") }

// TestBrokenHandlers covers B-72 for what gets as far as the host: the process
// lives, the answer is neutral, and the next request works.
func TestBrokenHandlers(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		logged  string // "": nothing at all
	}{
		{"nil map", func(http.ResponseWriter, *http.Request) {
			func() map[string]int { return nil }()["secret"] = 1
		}, "assignment to entry in nil map"},
		{"value", func(http.ResponseWriter, *http.Request) { panic("secret") }, "secret"},
		{"error", func(http.ResponseWriter, *http.Request) { panic(errors.New("secret")) }, "secret"},
		{"nil", func(http.ResponseWriter, *http.Request) { panic(nil) }, "nil"},
		{"uncomparable", func(http.ResponseWriter, *http.Request) { panic([]string{"secret"}) }, "secret"},
		{"value that cannot be printed", func(http.ResponseWriter, *http.Request) { panic(stubborn{}) }, "PANIC"},
		{"Goexit", func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, "ended its goroutine"},
		{"invalid status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(42) }, "invalid WriteHeader code 42"},
		{"abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		{"after a whole body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Secret", "secret")
			_, _ = w.Write([]byte("data: secret\n\n"))
			panic("secret")
		}, "secret"},
		{"in middleware", func(w http.ResponseWriter, r *http.Request) {
			defer func() { panic("secret") }()
			http.NotFound(w, r)
		}, "secret"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			handler := test.handler
			i := NewInvoker(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) }))
			i.log = slog.New(slog.NewTextHandler(&log, nil))
			raw, err := i.Invoke(t.Context(), encodeEvent(t, shellV2()))
			if err != nil {
				t.Fatal(err)
			}
			if s := string(raw); strings.Contains(s, "secret") || strings.Contains(s, "X-Secret") || strings.Contains(s, ".go") || strings.Contains(s, "goroutine") {
				t.Errorf("the answer tells too much: %s", raw)
			}
			a := decodeAnswer(t, raw)
			if code, message, reason := rpcError(t, a); a.StatusCode != 500 || code != -32603 || message != "internal error" || reason != "internal" {
				t.Errorf("answer %d, %d %q %q", a.StatusCode, code, message, reason)
			}
			switch {
			case test.logged == "":
				if log.Len() > 0 {
					t.Errorf("log has %q", log.String())
				}
			case !strings.Contains(log.String(), test.logged) || !strings.Contains(log.String(), "panic_test.go"):
				t.Errorf("log lacks %q or the stack: %q", test.logged, log.String())
			}

			handler = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }
			raw, err = i.Invoke(t.Context(), encodeEvent(t, shellV2()))
			if err != nil || decodeAnswer(t, raw).StatusCode != http.StatusAccepted {
				t.Errorf("next request: %s, %v", raw, err)
			}
		})
	}
}

// Lambda may run several invocations in one process at a time.
func TestConcurrentInvocations(t *testing.T) {
	i := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	var group sync.WaitGroup
	for kind, shell := range shells() {
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			payload := encodeEvent(t, overlay(shell, map[string]any{"path": path, "rawPath": path}))
			if kind == "HTTP 2.0" || kind == "FURL" {
				payload = encodeEvent(t, overlay(shell, map[string]any{"rawPath": path}))
			}
			group.Go(func() {
				for range 50 {
					raw, err := i.Invoke(t.Context(), payload)
					if err != nil {
						t.Error(err)
						return
					}
					if !bytes.Contains(raw, []byte(`"body":"`+path+`"`)) {
						t.Errorf("%s %s: %s", kind, path, raw)
					}
				}
			})
		}
	}
	group.Wait()
}
