package lambdahost

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// TestTooLarge covers B-71 for a handler that does not ask whether its answer fits.
func TestTooLarge(t *testing.T) {
	tests := []struct {
		name        string
		contentType string
		body        string
		albOnly     bool
	}{
		{"quotes, which escaping doubles", "application/json", `["` + strings.Repeat(`\"`, 2_900_000) + `"]`, false},
		{"7 MB of text", "application/json", `"` + strings.Repeat("x", 7_000_000) + `"`, false},
		{"5 MB of binary, which base64 lengthens by a third", "image/png", strings.Repeat("\xff", 5_000_000), false},
		{"1.1 MB", "application/json", `"` + strings.Repeat("x", 1_100_000) + `"`, true},
	}
	for kind, shell := range shells() {
		isALB := strings.HasPrefix(kind, "ALB")
		limit := 6_291_556
		if isALB {
			limit = 1_000_000
		}
		for _, test := range tests {
			t.Run(kind+"/"+test.name, func(t *testing.T) {
				i := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", test.contentType)
					_, _ = io.WriteString(w, test.body)
				}))
				raw, err := i.Invoke(t.Context(), encodeEvent(t, shell))
				if err != nil {
					t.Fatal(err)
				}
				if len(raw) > limit {
					t.Fatalf("answer of %d bytes, limit %d", len(raw), limit)
				}
				a := decodeAnswer(t, raw)
				if test.albOnly && !isALB {
					if a.StatusCode != 200 || a.content(t) != test.body {
						t.Errorf("an answer that fits was replaced: %d %.100s", a.StatusCode, a.Body)
					}
					return
				}
				code, message, reason := rpcError(t, a)
				if a.StatusCode != 500 || code != -32603 || reason != "response_too_large" {
					t.Errorf("answer %d, %d %q", a.StatusCode, code, reason)
				}
				if !strings.Contains(message, fmt.Sprint(limit)) {
					t.Errorf("message %q lacks the limit %d", message, limit)
				}
			})
		}
	}
}

// TestLimitIsExact walks a body over the edge byte by byte.
func TestLimitIsExact(t *testing.T) {
	for kind, shell := range map[string]map[string]any{"ALB": shellALB(), "FURL": shellFURL()} {
		limit := 6_291_556
		if kind == "ALB" {
			limit = 1_000_000
		}
		var length int
		i := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, strings.Repeat("\n", 1000)+strings.Repeat("x", length))
		}))
		answer := func(n int) (proxyAnswer, int) {
			length = n
			raw, err := i.Invoke(t.Context(), encodeEvent(t, shell))
			if err != nil {
				t.Fatal(err)
			}
			return decodeAnswer(t, raw), len(raw)
		}
		_, overhead := answer(0)
		most := limit - overhead
		if a, size := answer(most); a.StatusCode != 200 || size != limit {
			t.Errorf("%s: answer %d of %d bytes, want 200 of %d", kind, a.StatusCode, size, limit)
		}
		a, _ := answer(most + 1)
		if _, message, _ := rpcError(t, a); a.StatusCode != 500 || !strings.Contains(message, fmt.Sprint(limit+1)) {
			t.Errorf("%s: answer %d %q, want 500 naming %d bytes", kind, a.StatusCode, message, limit+1)
		}
	}
}

// TestFits: whatever host.Fits lets pass is delivered, with headers of 10 KiB.
func TestFits(t *testing.T) {
	bodies := []struct {
		name   string
		body   []byte
		length float64 // of one byte in the answer
	}{
		{"plain", bytes.Repeat([]byte("x"), 6_291_556), 1},
		{"quotes", bytes.Repeat([]byte(`"`), 6_291_556), 2},
		{"controls", make([]byte, 6_291_556), 6},
		{"binary", bytes.Repeat([]byte("\xff"), 6_291_556), 4. / 3},
	}
	for kind, shell := range shells() {
		want := 6_291_556
		if strings.HasPrefix(kind, "ALB") {
			want = 1_000_000
		}
		invoke(t, func(_ http.ResponseWriter, r *http.Request) {
			if ok, limit := host.Fits(r.Context(), nil); !ok || limit != want {
				t.Errorf("%s: Fits = %t, %d; want true, %d", kind, ok, limit, want)
			}
		}, shell)
		if kind != "ALB" && kind != "FURL" {
			continue // one of each limit is enough for the large bodies
		}
		for _, test := range bodies {
			t.Run(kind+"/"+test.name, func(t *testing.T) {
				most := int(float64(want-16<<10) / test.length)
				fitting, tooLong := test.body[:most-3], test.body[:most+3]
				a := invoke(t, func(w http.ResponseWriter, r *http.Request) {
					if ok, _ := host.Fits(r.Context(), fitting); !ok {
						t.Errorf("%d bytes do not fit", len(fitting))
					}
					if ok, _ := host.Fits(r.Context(), tooLong); ok {
						t.Errorf("%d bytes fit", len(tooLong))
					}
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("X-Long", strings.Repeat(`"`, 5<<10))
					_, _ = w.Write(fitting)
				}, shell)
				if a.StatusCode != 200 || a.content(t) != string(fitting) {
					t.Errorf("answer %d with %d bytes, want 200 with %d", a.StatusCode, len(a.Body), len(fitting))
				}
			})
		}
	}
}

// A handler that goes on writing is told, and its output not kept.
func TestEndlessBody(t *testing.T) {
	var failure error
	written := 0
	a := invoke(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 100_000); failure == nil && written < 100<<20; written += len(chunk) {
			_, failure = w.Write(chunk)
		}
		_, again := w.Write([]byte("x"))
		if again == nil {
			t.Error("a write after the limit succeeded")
		}
	}, shellALB())
	if written > 1_200_000 || failure == nil || !strings.Contains(failure.Error(), "1000000") {
		t.Errorf("%d bytes written, then %v", written, failure)
	}
	var large *tooLargeError
	if !errors.As(failure, &large) {
		t.Errorf("error %T", failure)
	}
	if code, _, reason := rpcError(t, a); a.StatusCode != 500 || code != -32603 || reason != "response_too_large" {
		t.Errorf("answer %d, %d %q", a.StatusCode, code, reason)
	}
}
