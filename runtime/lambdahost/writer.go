package lambdahost

import (
	"fmt"
	"net/http"
	"sync"
)

// responseWriter collects a response. It follows net/http's rules: the first
// WriteHeader counts and fixes the header, a Write without one means 200, and a
// status that allows no body gets none.
//
// It is no http.Flusher, as handlers take a Flusher for a promise that they can stream:
// where a front door takes streams, the handler has a streamWriter, which is one.
//
// Once the response has been taken, writes fail with http.ErrHandlerTimeout, so a
// handler that was left behind can neither race with the answer nor change it.
type responseWriter struct {
	header http.Header // the handler's; this package reads it only inside the handler's own calls or after its return
	isHead bool
	limit  int // of the body

	begun chan struct{} // closed when the response begins to stream; nil if it cannot
	flow  *flow         // the body from then on; nil if it cannot

	mu        sync.Mutex
	res       response
	taken     bool
	streaming bool // begun is closed
	held      bool // it does not begin any more
}

func newResponseWriter(isHead bool, limit int) *responseWriter {
	return &responseWriter{header: make(http.Header, 8), isHead: isHead, limit: limit}
}

// Header returns the header that the first WriteHeader or Write will fix.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader fixes status and header. Informational statuses are dropped, as the
// front doors have no way to send them. Like net/http's, it panics for a status
// that is none.
func (w *responseWriter) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status))
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
}

func (w *responseWriter) writeHeader(status int) {
	if w.taken || w.res.status != 0 {
		return
	}
	w.res.status = status
	w.res.header = w.header.Clone()
}

// Write appends to the body. A body that can no longer be delivered is dropped,
// and the handler told so, rather than kept in memory to its end.
func (w *responseWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.streaming {
		w.mu.Unlock()
		return w.flow.write(p) // which waits for the reader
	}
	defer w.mu.Unlock()
	if w.taken {
		return 0, http.ErrHandlerTimeout
	}
	w.writeHeader(http.StatusOK)
	switch {
	case !bodyAllowed(w.res.status):
		return 0, http.ErrBodyNotAllowed
	case w.isHead:
		return len(p), nil
	}
	w.res.size += len(p)
	if w.res.size > w.limit {
		w.res.body = nil
		return 0, &tooLargeError{size: w.res.size, limit: w.limit}
	}
	w.res.body = append(w.res.body, p...)
	if w.flow != nil && len(w.res.body) > maxCollected {
		w.stream()
	}
	return len(p), nil
}

// take ends the writer and returns what has been written; status 0 if nothing.
func (w *responseWriter) take() response {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = true
	return w.res
}

// finish ends the writer of a handler that has returned.
func (w *responseWriter) finish() response {
	w.mu.Lock()
	w.writeHeader(http.StatusOK)
	w.mu.Unlock()
	return w.take()
}

// bodyAllowed reports whether a response with that status has a body (RFC 9110).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// tooLargeError is what a handler's Write returns when the body is beyond what the
// front door can take.
type tooLargeError struct{ size, limit int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("response body of at least %d bytes exceeds the platform's limit of %d bytes", e.size, e.limit)
}
