// Package lambdasim is AWS Lambda without a cloud, for tests: it runs a function's program in
// sandboxes that speak the Runtime API, and invokes it, whole or as a stream.
//
// A sandbox is a process. It works on one invocation at a time and is stopped by SIGSTOP from
// when it asks for the next one until it gets it, as Lambda freezes what has nothing to do: what a
// program leaves running goes on in a later invocation or never. A sandbox that outstays the
// function's time, or ends, is gone with all that it held.
//
// The rules are those of AWS's documentation: "Using the Lambda runtime API", "Understanding the
// Lambda execution environment lifecycle", "Lambda quotas" and "Building a custom runtime for AWS
// Lambda" (streams and their trailers). What is not simulated: extensions, more than one
// invocation at a time in a sandbox, the Init phase's own limit of 10 s, and the bandwidth of streams.
package lambdasim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Limits of one invocation in bytes, from "Lambda quotas" and the errors of the API.
const (
	MaxRequest  = 6_291_456   // of an event
	MaxResponse = 6_291_556   // of a buffered response
	MaxStream   = 209_715_200 // of a streamed response
)

// Config describes a function.
type Config struct {
	// Program is the path of the binary: bootstrap, in a deployment.
	Program string
	// Env are the function's environment variables, NAME=value. There are no others but those
	// that Lambda sets.
	Env []string
	// Timeout is the time of one invocation; 0: 3 s, as for a function that says nothing.
	Timeout time.Duration
	// MemoryMB is what the function is told that it has; 0: 128.
	MemoryMB int
	// Concurrency is the most sandboxes at a time, as reserved concurrency bounds them; 0: 1,000.
	Concurrency int
	// Log gets what the sandboxes write; nil: nobody. It has to be safe for concurrent use.
	Log io.Writer
}

// Function is a function that can be invoked. It is safe for concurrent use.
type Function struct {
	config Config

	mu      sync.Mutex
	idle    []*sandbox // the last to become idle is the next to work
	living  map[*sandbox]bool
	started int
	closed  bool
}

// New makes a function. Nothing is started before its first invocation.
func New(c Config) *Function {
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Second
	}
	if c.MemoryMB == 0 {
		c.MemoryMB = 128
	}
	if c.Concurrency == 0 {
		c.Concurrency = 1000
	}
	return &Function{config: c, living: map[*sandbox]bool{}}
}

// What an invocation is refused with before any program sees it.
var (
	ErrThrottled       = errors.New("TooManyRequestsException: all sandboxes are at work")      // 429
	ErrRequestTooLarge = errors.New("RequestTooLargeException: the event is above 6 MB")        // 413
	ErrClosed          = errors.New("ResourceNotFoundException: the function is there no more") // 404
)

// FunctionError is an invocation that the function failed: by its own word, by its death, or by
// outstaying its time.
type FunctionError struct {
	Type    string // such as Sandbox.Timedout, Runtime.ExitError, Function.ResponseSizeTooLarge
	Message string
}

// Error has both.
func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// Started is how many sandboxes have ever been started: how many cold starts there were.
func (f *Function) Started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// Recycle ends every idle sandbox, so that the next invocation is a cold start.
func (f *Function) Recycle() {
	f.mu.Lock()
	idle := f.idle
	f.idle = nil
	f.mu.Unlock()
	for _, s := range idle {
		s.kill()
		<-s.ended
	}
}

// Close ends every sandbox and waits for their end.
func (f *Function) Close() {
	f.mu.Lock()
	f.closed = true
	living := make([]*sandbox, 0, len(f.living))
	for s := range f.living {
		living = append(living, s)
	}
	f.mu.Unlock()
	for _, s := range living {
		s.kill()
		<-s.ended
	}
}

// Invoke invokes the function in the buffered way and returns its response, whatever that is.
func (f *Function) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	s, err := f.invoke(ctx, event, MaxResponse)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b, err := io.ReadAll(s)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// InvokeStream invokes the function and returns its response as it comes. The stream has to be
// closed; an error of Read is a *FunctionError that cut the response short. The function goes on
// when ctx ends or the stream is closed: Lambda does not tell it that its caller has left.
func (f *Function) InvokeStream(ctx context.Context, event []byte) (*Stream, error) {
	return f.invoke(ctx, event, MaxStream)
}

func (f *Function) invoke(ctx context.Context, event []byte, limit int) (*Stream, error) {
	if len(event) > MaxRequest {
		return nil, ErrRequestTooLarge
	}
	s, err := f.acquire()
	if err != nil {
		return nil, err
	}
	i := &invocation{id: newID(), event: event, limit: limit, responded: make(chan struct{}),
		timeout: f.config.Timeout}
	i.reader, i.writer = io.Pipe()
	go s.work(i)
	select {
	case <-i.responded:
	case <-ctx.Done():
		_ = i.reader.Close()
		return nil, ctx.Err()
	}
	if i.refused != nil {
		_ = i.reader.Close()
		return nil, i.refused
	}
	return &Stream{i.contentType, i.reader}, nil
}

// Stream is a response on its way. Read returns what has come, and waits if nothing has; its end
// comes when the sandbox is free again. Close takes no more of the response; the function works on.
type Stream struct {
	// ContentType is what the runtime called the response.
	ContentType string
	io.ReadCloser
}

// acquire takes a sandbox for one invocation.
func (f *Function) acquire() (*sandbox, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch n := len(f.idle); {
	case f.closed:
		return nil, ErrClosed
	case n > 0:
		s := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return s, nil
	case len(f.living) >= f.config.Concurrency:
		return nil, ErrThrottled
	}
	s, err := f.start()
	if err != nil {
		return nil, err
	}
	f.living[s] = true
	f.started++
	return s, nil
}

// release gives a sandbox back that waits for its next invocation.
func (f *Function) release(s *sandbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.living[s] && !f.closed {
		f.idle = append(f.idle, s)
	}
}

// forget is for a sandbox that has ended.
func (f *Function) forget(s *sandbox) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.living, s)
	for n, other := range f.idle {
		if other == s {
			f.idle = append(f.idle[:n:n], f.idle[n+1:]...)
			return
		}
	}
}

// newID is the id of a request.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
