package cases

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
)

const (
	leavers        = 100
	cancelledIn    = time.Second
	goroutineSlack = 5
)

// clientsLeave has clients close the connection while a handler would sleep for half a
// minute: after the first bytes of a stream, or before there are any. The listener is the
// hosts' own, on loopback.
func clientsLeave(t *testing.T, s *stage) {
	addr := make(chan net.Addr, 1)
	stopped := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	local := host.Local(func(name string) string { return map[string]string{"THAW_ADDR": "127.0.0.1:0"}[name] })
	go func() {
		stopped <- local.Serve(ctx, host.App{HTTP: s.handler, Started: func(a net.Addr) { addr <- a }, Drain: s.handler.Drain})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("the host did not stop in order: %v", err)
		}
	})
	var d wire
	select {
	case a := <-addr:
		d = wire{a.String()}
	case err := <-stopped:
		stopped <- err
		t.Fatal(err)
	}

	s.counter(t, d)
	start := runtime.NumGoroutine()
	began, cancelled := make(chan struct{}, 1), make(chan struct{}, 1)
	s.runs.watch(t, func(ctx context.Context, tool string) {
		if tool == "sleep" {
			context.AfterFunc(ctx, func() { cancelled <- struct{}{} })
			began <- struct{}{}
		}
	})
	for i := range leavers {
		meta := `"progressToken":"p"`
		if i%2 == 1 {
			meta = "" // nothing is sent before the response, so there are no first bytes
		}
		conn := d.dial(t)
		if _, err := conn.Write(d.request(s.call("sleep", `{"seconds":30}`, meta))); err != nil {
			t.Fatal(err)
		}
		within(t, answerTime, began, "the handler has not begun")
		if meta != "" {
			if line := firstEvent(t, conn); !strings.Contains(line, `"notifications/progress"`) {
				t.Fatalf("the stream begins with %q", line)
			}
		}
		_ = conn.Close()
		within(t, cancelledIn, cancelled, "the client has left and the handler's context goes on")
	}

	var now int
	if !eventually(func() bool { now = runtime.NumGoroutine(); return now <= start+goroutineSlack }) {
		t.Errorf("%d goroutines after %d calls, there were %d before", now, leavers, start)
	}
	// The context ends before its handler does.
	var sleepers string
	if !eventually(func() bool {
		sleepers = string(s.play(t, d, s.call("sleepers", `{}`, "")).result("structuredContent"))
		return sleepers == fmt.Sprintf(`{"running":0,"finished":0,"interrupted":%d}`, leavers)
	}) {
		t.Errorf("sleepers: %s, want all %d interrupted", sleepers, leavers)
	}
}

// within waits for a sign.
func within(t *testing.T, d time.Duration, sign <-chan struct{}, otherwise string) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-sign:
	case <-timer.C:
		t.Fatalf("after %s: %s", d, otherwise)
	}
}

// firstEvent reads a stream up to the end of its first event.
func firstEvent(t *testing.T, conn net.Conn) string {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			return string(data)
		}
	}
	t.Fatalf("the stream has no event: %v", lines.Err())
	return ""
}

// eventually asks until something holds, for as long as an exchange may take.
func eventually(holds func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(answerTime)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			return holds()
		}
	}
	return true
}

// halfBody sends half of a body and stops. The server's own patience is a minute, so this
// one has less.
func halfBody(t *testing.T, s *stage) {
	live := httptest.NewUnstartedServer(s.handler)
	live.Config.ReadTimeout = 200 * time.Millisecond
	live.Start()
	t.Cleanup(live.Close)
	d := wire{live.Listener.Addr().String()}

	x := s.call("echo", `{"text":"x"}`, "")
	request := d.request(x)
	conn := d.dial(t)
	defer conn.Close()
	s.runs.take()
	if _, err := conn.Write(request[:len(request)-len(x.body)/2]); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer within %s: %v", answerTime, err)
	}
	a := &answer{to: x, door: d.name(), status: r.StatusCode, header: r.Header, ran: s.runs.take()}
	if a.body, err = io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	if err := a.take(); err != nil {
		t.Error(err)
	}
	if err := all(wellFormed, status(400, 408), nothingRan)(a); err != nil {
		t.Errorf("%v: %s", err, a)
	}
	s.expectAt(t, d, x, all(status(200), complete, text("x")))
}
