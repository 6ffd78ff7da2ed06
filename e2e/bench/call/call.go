// Package call measures one tools/call through ServeHTTP, in process, contender by
// contender: the same tool, the same bytes, the same sink.
package call

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/floor"
	"github.com/thaw-mcp/thaw/e2e/bench/gosdkserver"
	"github.com/thaw-mcp/thaw/e2e/bench/mcpcall"
	"github.com/thaw-mcp/thaw/e2e/bench/mcpgoserver"
	"github.com/thaw-mcp/thaw/e2e/bench/thawserver"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

// Contender is one way to serve the tool.
type Contender struct {
	Name    string
	Handler http.Handler
}

// Names of the contenders.
const (
	Floor          = "floor"
	Thaw           = "thaw"
	GoSDK          = "go-sdk"
	MCPGo          = "mcp-go"
	MCPGoValidated = "mcp-go-validated"
)

// Contenders makes them all.
func Contenders() ([]Contender, error) {
	// What Main sets on a laptop: every check is on, Host and the request's time included.
	h, err := serve.New(thawserver.One(), &serve.Options{
		Host:   host.Facts{Resident: true, Streaming: true, Loopback: true},
		Limits: serve.Limits{RequestTimeout: 5 * time.Minute},
	})
	if err != nil {
		return nil, fmt.Errorf("thaw: %w", err)
	}
	return []Contender{
		{Floor, http.HandlerFunc(floor.Handler)},
		{Thaw, h},
		{MCPGo, mcpgoserver.One()},
		{MCPGoValidated, mcpgoserver.Validated()},
		{GoSDK, gosdkserver.One()},
	}, nil
}

// Check does the call once and reports what is wrong with the answer.
func (c Contender) Check() error {
	p := newPlayer(c.Handler)
	p.sink.keep = new(bytes.Buffer)
	p.play()
	if err := mcpcall.Check(p.sink.status, p.sink.header.Get("Content-Type"), p.sink.keep.Bytes()); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// Bench is the benchmark.
func (c Contender) Bench(b *testing.B) {
	if err := c.Check(); err != nil {
		b.Fatal(err)
	}
	p := newPlayer(c.Handler)
	b.ReportAllocs()
	b.SetBytes(int64(len(mcpcall.Body)))
	for b.Loop() {
		p.play()
		if p.sink.status != http.StatusOK || p.sink.written == 0 {
			b.Fatalf("%s: status %d with %d bytes", c.Name, p.sink.status, p.sink.written)
		}
	}
}

// player plays the request again and again without allocating anything of its own.
type player struct {
	handler http.Handler
	request *http.Request
	body    *strings.Reader
	sink    sink
}

func newPlayer(h http.Handler) *player {
	p := &player{handler: h, body: strings.NewReader(""), sink: sink{header: http.Header{}}}
	p.request = mcpcall.NewRequest(mcpcall.Host)
	p.request.RemoteAddr = "127.0.0.1:50000"
	p.request.RequestURI = "/mcp"
	p.request.Body = io.NopCloser(p.body)
	return p
}

func (p *player) play() {
	p.body.Reset(mcpcall.Body)
	p.request.Body = nopCloser{p.body} // handlers may have put their own in its place
	p.sink.reset()
	p.handler.ServeHTTP(&p.sink, p.request)
}

// nopCloser fits an interface without an allocation.
type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

// sink is a ResponseWriter that can be used again. It copies nothing unless asked to.
type sink struct {
	header  http.Header
	status  int
	written int
	keep    *bytes.Buffer
}

func (s *sink) reset() {
	clear(s.header)
	s.status, s.written = 0, 0
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
}

func (s *sink) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.written += len(b)
	if s.keep != nil {
		s.keep.Write(b)
	}
	return len(b), nil
}

// Flush implements http.Flusher: contenders that stream want one.
func (s *sink) Flush() {}
