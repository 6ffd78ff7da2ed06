package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// A place with settings of its own is what they make of it, and they are read only there.
func TestPickConfigured(t *testing.T) {
	place := Host{Name: "plain", Here: func(getenv func(string) string) bool { return getenv("HERE") != "" },
		Configured: func(getenv func(string) string) Host { return Host{Name: "set to " + getenv("PLACE")} }}
	if got := Pick(env("HERE", "1", "PLACE", "x"), place); got.Name != "set to x" {
		t.Errorf("here: %s", got.Name)
	}
	if got := Pick(env("PLACE", "x"), place); got.Name != "local" {
		t.Errorf("elsewhere: %s", got.Name)
	}
}

func TestPick(t *testing.T) {
	special := Host{Name: "special", Here: func(getenv func(string) string) bool { return getenv("SPECIAL") != "" }}
	for _, c := range []struct {
		name   string
		getenv func(string) string
		want   string
		facts  Facts
	}{
		{"laptop", env(), "local", Facts{Resident: true, Streaming: true, Loopback: true}},
		{"laptop, all interfaces", env("THAW_ADDR", ":80"), "local", Facts{Resident: true, Streaming: true}},
		{"laptop, another name", env("THAW_ADDR", "box.example:80"), "local", Facts{Resident: true, Streaming: true}},
		{"laptop, IPv6", env("THAW_ADDR", "[::1]:80"), "local", Facts{Resident: true, Streaming: true, Loopback: true}},
		{"PORT alone is no Cloud Run", env("PORT", "9"), "local", Facts{Resident: true, Streaming: true, Loopback: true}},
		{"Cloud Run", env("K_SERVICE", "x", "PORT", "9"), "cloudrun", Facts{Streaming: true}},
		{"a host of its own comes first", env("K_SERVICE", "x", "SPECIAL", "1"), "special", Facts{}},
	} {
		h := Pick(c.getenv, special)
		if h.Name != c.want || h.Facts != c.facts || h.Ephemeral != (c.want == "cloudrun") {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}

// running is a server under test: its address, and how it ends.
func running(t *testing.T, b bounds, h http.Handler, drain func()) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- b.serve(ctx, App{HTTP: h, Started: func(a net.Addr) { started <- a }, Drain: drain}, l)
	}()
	return (<-started).String(), func() error { cancel(); return <-done }
}

// get asks the server in the background; what it answers, or why it does not, comes later.
func get(addr string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + addr)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answer <- string(text)
	}()
	return answer
}

// What is open when the order to stop comes is finished; streams end by Drain.
func TestDrain(t *testing.T) {
	drained, entered := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-drained
		fmt.Fprint(w, "whole")
	})
	addr, stop := running(t, usual, h, func() { close(drained) })
	answer := get(addr)
	<-entered
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := <-answer; got != "whole" {
		t.Errorf("got %q", got)
	}
}

// What does not end in time is cut off, and said.
func TestDrainIsBounded(t *testing.T) {
	b := usual
	b.drain = 50 * time.Millisecond
	entered, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
	})
	defer close(release)
	addr, stop := running(t, b, h, nil)
	go func() { _, _ = http.Get("http://" + addr) }()
	<-entered
	if err := stop(); err == nil || !strings.Contains(err.Error(), "still open after 50ms") {
		t.Errorf("got %v", err)
	}
}

// What is still open shortly before the end hears of it, and can answer.
func TestStopCanBeAnswered(t *testing.T) {
	b := usual
	b.drain = 1500 * time.Millisecond
	entered := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		fmt.Fprint(w, context.Cause(r.Context()))
	})
	addr, stop := running(t, b, h, nil)
	answer := get(addr)
	<-entered
	err := stop()
	if got := <-answer; got != ErrStopping.Error() || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Half a body ends with an error for the handler, and the server goes on (B-66 of the case
// list). A finished request is not bounded by the time for reading.
func TestReadTimeout(t *testing.T) {
	b := usual
	b.read = 100 * time.Millisecond
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		select {
		case <-r.Context().Done():
			fmt.Fprint(w, "cut off")
		case <-time.After(3 * b.read):
			fmt.Fprint(w, "ok")
		}
	})
	addr, stop := running(t, b, h, nil)
	for range 2 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%v, %v", resp, err)
		}
		_ = c.Close()
	}
	resp, err := http.Post("http://"+addr, "text/plain", strings.NewReader("whole"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != "ok" {
		t.Errorf("got %q", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestFits(t *testing.T) {
	if ok, limit := Fits(t.Context(), make([]byte, 1<<20)); !ok || limit != 0 {
		t.Errorf("without a limit: %v, %d", ok, limit)
	}
	ctx := WithResponseLimit(t.Context(), 10, func(body []byte) bool { return len(body) <= 10 })
	if ok, limit := Fits(ctx, make([]byte, 10)); !ok || limit != 10 {
		t.Errorf("at the limit: %v, %d", ok, limit)
	}
	if ok, _ := Fits(ctx, make([]byte, 11)); ok {
		t.Error("above the limit")
	}
}
