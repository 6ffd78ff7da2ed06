package lambdahost

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// The frames of a streamed response are ours, the protocol of the Runtime API is that of
// aws-lambda-go: it sends any io.Reader that a function returns in chunks, takes the content type
// from its ContentType method, and puts an error of Read into the trailers
// Lambda-Runtime-Function-Error-Type and -Error-Body. It does not send the header
// Lambda-Runtime-Function-Response-Mode, which the documentation asks of custom runtimes; Lambda
// streams without it, as the users of its lambdaurl show (aws-lambda-go#593, #596).
//
// Its own frames, events.LambdaFunctionURLStreamingResponse, and its lambdaurl.Wrap are not used:
// Wrap runs the handler where no recover is, ends a stream that broke as if it were whole, joins
// nothing but Set-Cookie rightly, and knows one door of the two.

// streamWriter is the responseWriter of a handler behind a front door that takes streams. What
// it writes is collected until it flushes, so that a handler that just answers is answered for
// as everywhere else.
type streamWriter struct{ *responseWriter }

func newStreamResponseWriter(isHead bool) *responseWriter {
	w := newResponseWriter(isHead, maxStream)
	w.begun, w.flow = make(chan struct{}), newFlow(maxStream)
	return w
}

// Flush implements http.Flusher.
func (w streamWriter) Flush() { _ = w.FlushError() }

// FlushError begins the stream. Its error says that nobody reads any more.
func (w streamWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	if w.taken || w.flow.closed() {
		return http.ErrHandlerTimeout
	}
	w.stream()
	return nil
}

// SetWriteDeadline bounds the time that a Write waits for a platform that does not read.
func (w streamWriter) SetWriteDeadline(t time.Time) error {
	w.flow.setDeadline(t)
	return nil
}

// stream has the response begin to stream, with what has been collected of it. One without a
// body has nothing to stream. w.mu is held.
func (w *responseWriter) stream() {
	if w.streaming || w.held || w.isHead || !bodyAllowed(w.res.status) {
		return
	}
	w.res.sniff()
	w.streaming = true
	w.flow.buf, w.flow.size = w.res.body, len(w.res.body) // nobody else has the flow yet
	w.res.body = nil
	close(w.begun)
}

// hold keeps the response from beginning to stream. It reports whether it comes too late.
func (w *responseWriter) hold() (streaming bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = true
	return w.streaming
}

// stream is the answer of a request in frames.
func (v *invocation) stream() io.Reader {
	if v.bad != nil {
		v.cancel()
		return v.framed(v.bad.response(v.isHead))
	}
	return v.start(newStreamResponseWriter(v.isHead)).frames()
}

// frames is the answer of a handler that may stream; it waits until that has begun or ended.
func (r *running) frames() io.Reader {
	how := r.wait(r.w.begun)
	if !r.w.hold() {
		defer r.free()
		res := r.result(how)
		if res.size > len(res.body) {
			r.logTooLarge(res.size)
			res = tooLarge(res.size, maxStream).response(r.isHead)
		}
		return r.framed(res)
	}
	s := &stream{running: r, head: r.door.prelude(&r.w.res)}
	s.how = s.unlessWhole(how)
	if size := len(s.head); size > maxPrelude {
		_ = s.Close() // the handler's writes fail from here on
		return r.framed(r.headerTooLarge(size))
	}
	return s
}

func (v *invocation) logTooLarge(size int) {
	v.logger().ErrorContext(v.ctx, "lambda: response too large", "bytes", size, "limit", maxStream)
}

func (v *invocation) headerTooLarge(size int) *response {
	v.logger().ErrorContext(v.ctx, "lambda: response header too large", "bytes", size, "limit", maxPrelude)
	return headerTooLarge(size, maxPrelude).response(v.isHead)
}

// framed is a response that is whole, as a stream.
//
// The platform does not end the response to a client when a stream ends behind its prelude: the
// client waits for a body until the function's time is over and longer (aws-lambda-go#593 and
// #596, aws-lambda-web-adapter#499, aws-lambda-nodejs-runtime-interface-client#95). So where HTTP
// has a place for a body an empty one is a line end; a 204, a 304 and the answer to a HEAD
// have none, and a client of theirs waits for nothing.
func (v *invocation) framed(res *response) *whole {
	if len(res.body) == 0 && !v.isHead && bodyAllowed(res.status) {
		res.body = emptyBody
		if len(res.header["Content-Type"]) == 0 {
			res.header.Set("Content-Type", "text/plain; charset=utf-8")
		}
	}
	head := v.door.prelude(res)
	if len(head) > maxPrelude {
		res = v.headerTooLarge(len(head))
		head = v.door.prelude(res)
	}
	w := newWhole(append(head, res.body...))
	w.framed = true
	return w
}

var emptyBody = []byte("\n")

// contentTypeFrames tells the front door that a stream begins with a prelude.
const contentTypeFrames = "application/vnd.awslambda.http-integration-response"

// stream is an answer while its handler works on it, as the runtime loop reads it.
type stream struct {
	*running
	head []byte  // comes first
	how  outcome // begun until the handler has done its part
	told bool    // what there is to say about the end was said
	sent bool    // something of the body was read
}

// Read implements io.Reader. It waits for the handler, within the invocation's time.
func (s *stream) Read(p []byte) (n int, err error) {
	if len(s.head) > 0 {
		n = copy(p, s.head)
		s.head = s.head[n:]
		return n, nil
	}
	if s.how == begun {
		s.how = s.unlessWhole(s.look()) // there may always be something to read
	}
	for {
		// The outcome comes before what was written, which would otherwise be missed.
		ended := s.how != begun
		if ended {
			s.w.flow.end() // or a handler that outstays its time could keep the stream open
		}
		if n = s.w.flow.read(p); n > 0 {
			s.sent = true
			return n, nil
		}
		if ended {
			break
		}
		s.how = s.unlessWhole(s.wait(s.w.flow.more))
	}
	s.tell()
	if reason := s.broken(); reason != "" {
		return 0, &BrokenStreamError{reason}
	}
	if !s.sent && len(p) > 0 {
		s.sent = true
		return copy(p, emptyBody), nil // see framed
	}
	return 0, io.EOF
}

// unlessWhole is how, or returned for a handler that broke off after it had said that its answer
// is complete.
func (s *stream) unlessWhole(how outcome) outcome {
	if how != exited && how != panicked {
		return how
	}
	select {
	case <-s.whole:
		return returned
	default:
		return how
	}
}

// broken is what cut the answer short; "" if nothing did.
func (s *stream) broken() string {
	if _, cut := s.w.flow.state(); cut {
		return "the response is larger than the platform takes"
	}
	switch s.how {
	case panicked, exited:
		return "the handler broke off its response"
	case outstayed:
		return "the handler was still running at the end of its time"
	}
	return ""
}

// tell logs how the answer ended, once.
func (s *stream) tell() {
	if s.told {
		return
	}
	s.told = true
	if size, cut := s.w.flow.state(); cut {
		s.logTooLarge(size)
	}
	switch s.how {
	case answered:
		s.logger().WarnContext(s.ctx, "lambda: handler still running after its answer", "method", s.method, "path", s.path)
	case outstayed:
		s.logger().ErrorContext(s.ctx, "lambda: handler still running at the end of its time", "method", s.method, "path", s.path)
	}
}

// Close ends the request's context; what the handler writes from now on fails.
func (s *stream) Close() error {
	s.w.flow.close()
	s.free()
	return nil
}

// ContentType is what the runtime loop calls the answer.
func (s *stream) ContentType() string { return contentTypeFrames }

// MarshalJSON fails: the runtime loop sends a reader as it is only if it is no JSON.
func (s *stream) MarshalJSON() ([]byte, error) { return nil, errNotJSON }

var errNotJSON = errors.New("a stream is no JSON")

// BrokenStreamError is the error of a stream that ends before its answer does. It gets into
// the trailers of the response, from where Lambda counts it and logs it.
type BrokenStreamError struct{ reason string }

// Error says what cut the answer short, and nothing of the answer.
func (e *BrokenStreamError) Error() string { return e.reason }

// whole is an answer that is all there.
type whole struct {
	*bytes.Reader
	framed bool
}

func newWhole(answer []byte) *whole { return &whole{Reader: bytes.NewReader(answer)} }

// ContentType is what the runtime loop calls the answer.
func (w *whole) ContentType() string {
	if w.framed {
		return contentTypeFrames
	}
	return "application/json"
}

// MarshalJSON fails: the runtime loop sends a reader as it is only if it is no JSON.
func (w *whole) MarshalJSON() ([]byte, error) { return nil, errNotJSON }

// Close implements io.Closer.
func (w *whole) Close() error { return nil }
