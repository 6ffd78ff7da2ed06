package lambdasim

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// sandbox is one process and the Runtime API that it speaks to.
type sandbox struct {
	f      *Function
	cmd    *exec.Cmd
	server *http.Server
	ended  chan struct{} // closed when the process has ended and was waited for

	next chan *invocation // handed to the runtime that asks for it
	free chan struct{}    // holds a token when the runtime asks for the next invocation

	mu      sync.Mutex
	current *invocation
}

// invocation is one event and what comes of it.
type invocation struct {
	id      string
	event   []byte
	limit   int // of the response
	timeout time.Duration

	deadline time.Time

	mu      sync.Mutex
	posted  bool // the runtime has begun to respond
	begun   bool // and its response is on its way to the caller
	failure error

	responded   chan struct{} // closed when the response begins, or will never
	refused     error         // why it will never; like contentType for those who have seen responded closed
	contentType string
	reader      *io.PipeReader
	writer      *io.PipeWriter
}

// begin says that the response begins.
func (i *invocation) begin(contentType string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begun = true
	i.contentType = contentType
	close(i.responded)
}

// record keeps what went wrong with the response until the sandbox is done with it.
func (i *invocation) record(failure error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failure = failure
}

// finish tells the caller that the invocation has ended, and how: a response that has begun
// ends, and one that has not will not.
func (i *invocation) finish(failure error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begun {
		i.refused = failure
		close(i.responded)
	}
	_ = i.writer.CloseWithError(failure)
}

// recorded is what went wrong with the response, or else otherwise.
func (i *invocation) recorded(otherwise error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure != nil {
		return i.failure
	}
	return otherwise
}

// start starts a sandbox. f.mu is held.
func (f *Function) start() (*sandbox, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sandbox{f: f, ended: make(chan struct{}), next: make(chan *invocation), free: make(chan struct{}, 1)}
	s.server = &http.Server{Handler: s.api()}
	s.cmd = exec.Command(f.config.Program)
	s.cmd.Env = append(f.environment(l.Addr().String()), f.config.Env...)
	s.cmd.Stdout, s.cmd.Stderr = f.config.Log, f.config.Log
	s.cmd.SysProcAttr = attributes()
	if err := s.cmd.Start(); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	go func() { _ = s.server.Serve(l) }() // ends with Close
	go func() {
		_ = s.cmd.Wait() // how it ended is in ProcessState
		f.forget(s)
		close(s.ended)
		_ = s.server.Close()
	}()
	return s, nil
}

// environment is what Lambda sets ("Using Lambda environment variables", defined runtime
// environment variables).
func (f *Function) environment(api string) []string {
	return []string{
		"AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_LAMBDA_FUNCTION_NAME=sim",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(f.config.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/sim",
		"AWS_LAMBDA_LOG_STREAM_NAME=2026/08/01/[$LATEST]0123456789abcdef0123456789abcdef",
		"AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1",
		"AWS_ACCESS_KEY_ID=ASIAEXAMPLE", "AWS_SECRET_ACCESS_KEY=example", "AWS_SESSION_TOKEN=example",
		"_HANDLER=bootstrap", "LAMBDA_TASK_ROOT=/var/task", "LAMBDA_RUNTIME_DIR=/var/runtime",
		"LANG=en_US.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=:UTC",
	}
}

// work has the sandbox work on an invocation and gives it back when it asks for the next.
func (s *sandbox) work(i *invocation) {
	timer := time.NewTimer(i.timeout)
	defer timer.Stop()
	i.deadline = time.Now().Add(i.timeout)
	s.set(i)
	s.thaw()
	select {
	case s.next <- i:
	case <-s.ended:
		i.finish(i.recorded(s.exitError(i)))
		return
	case <-timer.C:
		s.outOfTime(i)
		return
	}
	select {
	case <-s.free:
	case <-s.ended:
		i.finish(i.recorded(s.exitError(i)))
		return
	case <-timer.C:
		s.outOfTime(i)
		return
	}
	s.set(nil)
	s.f.release(s) // before the caller hears of the end, who may come again at once
	i.finish(i.recorded(nil))
}

func (s *sandbox) outOfTime(i *invocation) {
	s.kill()
	<-s.ended
	i.finish(&FunctionError{"Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", i.id, i.timeout.Seconds())})
}

func (s *sandbox) exitError(i *invocation) error {
	return &FunctionError{"Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited with error: %v", i.id, s.cmd.ProcessState)}
}

// set says what the sandbox works on.
func (s *sandbox) set(i *invocation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = i
}

// working is the invocation with this id; nil if the sandbox does not work on that.
func (s *sandbox) working(id string) *invocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.id != id {
		return nil
	}
	return s.current
}
