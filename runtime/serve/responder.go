package serve

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// keepAlive is how often a silent stream says that it lives, well below the shortest
// idle time-out on the way (H-18, L-16).
const keepAlive = 15 * time.Second

// writeTimeout bounds one write to a client that does not read. A call's own end bounds it
// further (H-24), but for lastWrite, which the final message has in any case.
const (
	writeTimeout = 30 * time.Second
	lastWrite    = time.Second
)

// A body that the kernel takes whole never waits for the client; a larger one may, but not
// for ever.
const (
	socketBuffer      = 64 << 10
	largeWriteTimeout = 5 * time.Minute
)

// responder writes the one answer of a request: a JSON body, or an event stream from the
// first notification on. Its methods may be called from any goroutine; after the final
// message every other is dropped.
type responder struct {
	w          http.ResponseWriter
	r          *http.Request
	canStream  bool      // the host can
	onlyEvents bool      // the client reads nothing but an event stream
	until      time.Time // when the call's time is over; zero: never

	mu        sync.Mutex
	streaming bool
	done      bool
	failed    bool // the client cannot be written to
	stays     bool // the client is there although the context says otherwise
	alive     *time.Timer
}

func (p *responder) init(h *Handler, w http.ResponseWriter, r *http.Request) {
	p.w, p.r, p.canStream = w, r, h.host.Streaming && canFlush(w)
}

// canFlush reports whether what is written can be pushed out, as a stream needs. Middleware
// that wraps a writer without Unwrap takes that away; the answer is then JSON.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// result sends a final result whose bytes are the concatenation of parts.
func (p *responder) result(id []byte, parts ...[]byte) {
	n := len(envelopeStart) + len(id) + len(envelopeResult) + len(envelopeEnd)
	for _, part := range parts {
		n += len(part)
	}
	body := appendEnvelope(make([]byte, 0, n), id)
	for _, part := range parts {
		body = append(body, part...)
	}
	p.message(id, append(body, envelopeEnd...))
}

// message sends a final result that is a whole message already.
func (p *responder) message(id, message []byte) { p.finish(nil, id, message) }

// fail sends a final error.
func (p *responder) fail(id []byte, f *failure) { p.finish(f, id, f.appendError(nil, id)) }

const (
	envelopeStart  = `{"jsonrpc":"2.0","id":`
	envelopeResult = `,"result":`
	envelopeEnd    = `}`
)

// appendEnvelope appends what stands before a result.
func appendEnvelope(b, id []byte) []byte {
	b = append(b, envelopeStart...)
	b = append(b, id...)
	return append(b, envelopeResult...)
}

func (p *responder) finish(f *failure, id, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return
	}
	p.done = true
	if p.gone() && !p.streaming {
		p.abandon()
		return
	}
	if p.onlyEvents && p.canStream && !p.streaming && (f == nil || f.httpStatus() == http.StatusOK) {
		p.start()
	}
	if p.streaming {
		if p.alive != nil {
			p.alive.Stop()
		}
		p.event(body)
		return
	}
	if fits, limit := host.Fits(p.r.Context(), body); !fits {
		f = internal(reasonResponseTooLarge, "The result is too large: "+strconv.Itoa(len(body))+" bytes; this host delivers at most "+
			strconv.Itoa(limit)+" bytes, escaping included")
		body = f.appendError(nil, id)
	}
	p.writeJSON(f, body)
}

// writeJSON writes the whole answer. f is nil for a result.
func (p *responder) writeJSON(f *failure, body []byte) {
	status := http.StatusOK
	if f != nil {
		status = f.httpStatus()
		f.setHeaders(p.w.Header())
	}
	writeWhole(p.w, p.r, status, contentTypeJSON, body)
}

// writeWhole writes an answer that is no stream.
func writeWhole(w http.ResponseWriter, r *http.Request, status int, contentType []string, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if len(body) > socketBuffer {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(largeWriteTimeout))
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

var (
	contentTypeJSON   = []string{"application/json"}
	contentTypeStream = []string{"text/event-stream"}
)

// gone reports whether the client has left; nothing more is then sent (H-21). A deadline
// is no departure.
func (p *responder) gone() bool {
	ctx := p.r.Context()
	return p.failed || !p.stays && errors.Is(ctx.Err(), context.Canceled) && context.Cause(ctx) != host.ErrStopping
}

// clientStays says that the end of the request's context is not the client's departure.
func (p *responder) clientStays() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stays = true
}

// statusClientClosed is what access logs know as "client closed request". A client that has
// left does not see it; one that only closed its own side must not take silence for
// success.
const statusClientClosed = 499

// abandon ends an answer that nobody is expected to read.
func (p *responder) abandon() {
	if !p.streaming {
		p.w.Header().Set("Connection", "close")
		p.w.WriteHeader(statusClientClosed)
	}
}

// abandoned is abandon for callers that do not hold p.mu.
func (p *responder) abandoned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.done = true
		p.abandon()
	}
}

// begun reports whether the response has begun, so that its status stands.
func (p *responder) begun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.streaming
}

// left is gone for callers that do not hold p.mu.
func (p *responder) left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone()
}

// notify sends a notification, which starts the stream. It reports whether the stream can
// take more.
func (p *responder) notify(message []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || !p.canStream || p.gone() {
		return false
	}
	if !p.streaming {
		p.start()
	}
	p.event(message)
	p.alive.Reset(keepAlive)
	return !p.failed
}

func (p *responder) start() {
	p.streaming = true
	h := p.w.Header()
	h["Content-Type"] = contentTypeStream
	h["Cache-Control"] = []string{"no-store"}
	h["X-Accel-Buffering"] = []string{"no"} // H-17
	p.w.WriteHeader(http.StatusOK)
	p.alive = time.AfterFunc(keepAlive, p.comment)
	p.write([]byte(": stream\n\n"))
}

// event writes one message as one data line (H-19).
func (p *responder) event(message []byte) {
	b := make([]byte, 0, len("data: \n\n")+len(message))
	b = append(b, "data: "...)
	b = append(b, message...)
	b = append(b, "\n\n"...)
	p.write(b)
}

func (p *responder) comment() {
	defer func() { _ = recover() }() // a writer that panics must not end the process from a timer
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.gone() {
		return
	}
	p.write([]byte(":\n\n"))
	p.alive.Reset(keepAlive)
}

func (p *responder) write(b []byte) {
	if p.failed {
		return
	}
	c := http.NewResponseController(p.w)
	limit := writeTimeout
	if !p.until.IsZero() {
		limit = min(limit, max(time.Until(p.until), lastWrite))
	}
	// Not every writer has deadlines; those that have none do not block on a client.
	_ = c.SetWriteDeadline(time.Now().Add(limit))
	if _, err := p.w.Write(b); err != nil || c.Flush() != nil {
		p.failed = true
	}
	_ = c.SetWriteDeadline(time.Time{})
}

// stop ends the keep-alive of a stream that ends without a final message.
func (p *responder) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.alive != nil {
		p.alive.Stop()
	}
}

// announceClose tells the client that the connection ends with this answer, so that it
// sends its next request on another one.
func (p *responder) announceClose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done && !p.streaming {
		p.w.Header().Set("Connection", "close")
	}
}

// flush pushes a finished answer out although the handler goroutine does not return now. A
// stream has to end with its last message (H-16), which net/http does on return only, so its
// connection is closed; without the last chunk, or the client would use it again just then.
// Where that cannot be done (HTTP/2) the client has the message and no end.
func (p *responder) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := http.NewResponseController(p.w)
	_ = c.Flush()
	if !p.streaming {
		return
	}
	if conn, _, err := c.Hijack(); err == nil {
		_ = conn.Close()
	}
}

// accepts reads the Accept lines leniently: absent or unreadable means everything, q=0
// means no (H-07).
func accepts(lines []string) (json, stream bool) {
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "application/json, text/event-stream" {
		return true, true
	}
	return acceptsMedia(lines, "application", "json"), acceptsMedia(lines, "text", "event-stream")
}
