package cases

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/thaw-mcp/thaw/runtime/lambdahost"
)

// answerTime is the deadline of every exchange.
const answerTime = 30 * time.Second

// door is a way into the server.
type door interface {
	name() string
	// send delivers x and takes the answer, which is not judged yet.
	send(t *testing.T, x *exchange) *answer
}

// wire is HTTP, byte for byte as a case gives it: a client library would mend or refuse
// some of what the cases send.
type wire struct{ addr string }

func (wire) name() string { return "HTTP" }

func (w wire) send(t *testing.T, x *exchange) *answer {
	t.Helper()
	a := &answer{to: x, door: w.name()}
	conn := w.dial(t)
	defer conn.Close()
	if _, err := conn.Write(w.request(x)); err != nil {
		t.Fatalf("write: %v", err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: x.method})
	if err != nil {
		t.Fatalf("no answer within %s: %v", answerTime, err)
	}
	defer r.Body.Close()
	if a.body, err = io.ReadAll(r.Body); err != nil {
		t.Fatalf("the answer broke off: %v", err)
	}
	a.status, a.header = r.StatusCode, r.Header
	if err := a.take(); err != nil {
		t.Errorf("%v\n%s", err, a)
	}
	return a
}

func (w wire) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", w.addr, answerTime)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// request is x as bytes.
func (w wire) request(x *exchange) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", x.method, x.path)
	host := w.addr
	for _, h := range x.headers {
		if strings.EqualFold(h.name, "Host") {
			host = h.value
			continue
		}
		fmt.Fprintf(&b, "%s: %s\r\n", h.name, h.value)
	}
	fmt.Fprintf(&b, "Host: %s\r\nConnection: close\r\n", host)
	if x.body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(x.body))
	}
	b.WriteString("\r\n")
	b.Write(x.body)
	return b.Bytes()
}

// lambda is an AWS front door: events of one shape.
type lambda struct {
	expansion *expansion
	shell     string
	invoker   *lambdahost.Invoker
}

func (l *lambda) name() string { return l.shell }

// Limits of the front doors for a whole proxy response, in bytes. AWS says 6 MB and means
// 6,291,556, its own error's figure; it says 1 MB for a load balancer and not which.
const (
	maxPayload    = 6_291_556
	maxALBPayload = 1_000_000
)

func (l *lambda) limit() int {
	if l.shell == "ALB" {
		return maxALBPayload
	}
	return maxPayload
}

// proxyAnswer is what a function may return to its front door.
type proxyAnswer struct {
	StatusCode        int                 `json:"statusCode"`
	StatusDescription string              `json:"statusDescription"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Cookies           []string            `json:"cookies"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
	Body              string              `json:"body"`
}

func (l *lambda) send(t *testing.T, x *exchange) *answer {
	t.Helper()
	event := x.event
	if event == nil {
		var err error
		if event, err = l.expansion.through(l.shell, x); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	payload, err := l.invoker.Invoke(ctx, event)
	if err != nil {
		t.Fatalf("function error: %v", err)
	}
	if ctx.Err() != nil {
		t.Fatalf("no answer within %s", answerTime)
	}
	if len(payload) > l.limit() {
		t.Errorf("the proxy response has %d bytes, the limit is %d", len(payload), l.limit())
	}
	a, err := readProxy(payload)
	if err != nil {
		t.Fatalf("the proxy response cannot be used: %v: %.600q", err, payload)
	}
	a.to, a.door = x, l.name()
	if err := a.take(); err != nil {
		t.Errorf("%v\n%s", err, a)
	}
	return a
}

// readProxy reads a proxy response as a front door does: unknown members are an error,
// since a REST API answers 502 for them.
func readProxy(payload []byte) (*answer, error) {
	var p proxyAnswer
	if err := json.Unmarshal(payload, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if p.StatusCode < 200 || p.StatusCode > 599 {
		return nil, fmt.Errorf("status %d", p.StatusCode)
	}
	if (p.Headers == nil) == (p.MultiValueHeaders == nil) {
		return nil, errors.New("want one of headers and multiValueHeaders")
	}
	a := &answer{status: p.StatusCode, header: http.Header{}, body: []byte(p.Body)}
	for name, value := range p.Headers {
		a.header.Add(name, value)
	}
	for name, values := range p.MultiValueHeaders {
		for _, value := range values {
			a.header.Add(name, value)
		}
	}
	if p.IsBase64Encoded {
		var err error
		if a.body, err = base64.StdEncoding.DecodeString(p.Body); err != nil {
			return nil, err
		}
	}
	return a, nil
}
