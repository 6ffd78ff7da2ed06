package lambdahost

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/thaw-mcp/thaw/runtime/host"
)

func TestHost(t *testing.T) {
	h := Host()
	if h.Name != "lambda" || !h.Ephemeral || h.Facts != (host.Facts{}) {
		t.Errorf("Host = %+v", h)
	}
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	if h.Here(getenv) || host.Pick(getenv, h).Name == "lambda" {
		t.Error("on Lambda without the Runtime API")
	}
	env["AWS_LAMBDA_RUNTIME_API"] = "127.0.0.1:9001"
	if !h.Here(getenv) || host.Pick(getenv, h).Name != "lambda" {
		t.Error("not on Lambda with the Runtime API")
	}
	for value, facts := range map[string]host.Facts{"": {}, "off": {}, "on": {Streaming: true}} {
		env[StreamingVariable] = value
		if got := host.Pick(getenv, h); got.Facts != facts || got.Name != "lambda" || !got.Messages || !got.Deadlines || !got.Ephemeral {
			t.Errorf("%s=%q: %+v", StreamingVariable, value, got)
		}
	}
	env[StreamingVariable] = "yes"
	if err := host.Pick(getenv, h).Serve(t.Context(), host.App{}); err == nil || !strings.Contains(err.Error(), `THAW_LAMBDA_STREAMING="yes": allowed is on or off`) {
		t.Errorf("Serve = %v", err)
	}
}

func TestServeElsewhere(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "")
	err := Host().Serve(t.Context(), host.App{Started: func(net.Addr) { t.Error("started") }})
	if err == nil || !strings.Contains(err.Error(), "AWS_LAMBDA_RUNTIME_API") {
		t.Errorf("Serve = %v", err)
	}
}

// childVariable makes the test binary a function: the runtime loop ends the process
// that it fails in, and signals go to processes.
const childVariable = "LAMBDAHOST_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(function())
	}
	os.Exit(m.Run())
}

// function is a program that main would be: it tells what happens to it on stdout.
func function() int {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	drained := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		lc, ok := lambdacontext.FromContext(r.Context())
		if !ok {
			http.Error(w, "no Lambda context", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Request-Id", lc.AwsRequestID)
		_, _ = io.Copy(w, r.Body)
	})
	hold := func(then func()) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Println("holding")
			then()
			<-drained
			fmt.Fprintf(w, "held, context %v", r.Context().Err())
		}
	}
	mux.HandleFunc("POST /hold", hold(func() {}))
	mux.HandleFunc("POST /cancel", hold(cancel))
	mux.HandleFunc("POST /break", func(w http.ResponseWriter, _ *http.Request) {
		begin(w)
		panic("secret")
	})
	err := host.Pick(os.Getenv, Host()).Serve(ctx, host.App{
		HTTP:    mux,
		Started: func(a net.Addr) { fmt.Println("started", a) },
		Drain:   func() { fmt.Println("drained"); close(drained) },
		RunTask: func(ctx context.Context, id string) (ack bool, after time.Duration) {
			fmt.Println("task", id)
			host.Leaked(ctx)
			return false, time.Minute
		},
		Sweep: func(context.Context) error { return nil },
	})
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	fmt.Println("stopped")
	return 0
}

// result is what a function posts for an invocation.
type result struct {
	id, verb string // verb: response or error
	body     []byte

	contentType string
	trailer     http.Header
}

// fakeRuntime is the Runtime API of Lambda.
type fakeRuntime struct {
	events  chan []byte
	results chan result
}

func (f *fakeRuntime) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch p := r.URL.Path; {
	case p == "/2018-06-01/runtime/invocation/next":
		select {
		case event := <-f.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "r-"+strconv.Itoa(len(event)))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:111122223333:function:f")
			_, _ = w.Write(event)
		case <-r.Context().Done():
		}
	case strings.HasPrefix(p, "/2018-06-01/runtime/invocation/"):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		f.results <- result{path.Base(path.Dir(p)), path.Base(p), body, r.Header.Get("Content-Type"), r.Trailer}
	default:
		http.NotFound(w, r)
	}
}

// lambdaProcess is a function running against a fakeRuntime.
type lambdaProcess struct {
	*fakeRuntime
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Scanner
	said   []string
}

func startFunction(t *testing.T, env ...string) *lambdaProcess {
	t.Helper()
	f := &fakeRuntime{events: make(chan []byte, 1), results: make(chan result, 1)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // should the process hang
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"),
		"GORACE=atexit_sleep_ms=0") // or a process that exits too early would live long enough to pass
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &lambdaProcess{f, t, cmd, bufio.NewScanner(out), nil}
}

// until reads what the function says up to a line.
func (p *lambdaProcess) until(line string) {
	p.t.Helper()
	for p.stdout.Scan() {
		p.said = append(p.said, p.stdout.Text())
		if p.stdout.Text() == line {
			return
		}
	}
	p.t.Fatalf("the function ended without saying %q; it said %q", line, p.said)
}

// end waits for the process and checks all that it said.
func (p *lambdaProcess) end(want ...string) {
	p.t.Helper()
	for p.stdout.Scan() {
		p.said = append(p.said, p.stdout.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the function ended with %v", err)
	}
	if !slices.Equal(p.said, want) {
		p.t.Errorf("the function said %q, want %q", p.said, want)
	}
}

func (p *lambdaProcess) result() result {
	p.t.Helper()
	select {
	case r := <-p.results:
		return r
	case <-time.After(30 * time.Second):
		p.t.Fatal("no result within 30 s")
		return result{}
	}
}

func TestServe(t *testing.T) {
	p := startFunction(t)
	event := encodeEvent(t, overlay(shellV2(), map[string]any{"rawPath": "/echo", "body": "hello"}))
	p.events <- event
	got := p.result()
	if want := "r-" + strconv.Itoa(len(event)); got.verb != "response" || got.id != want {
		t.Fatalf("%s of %s: %s; want the response of %s", got.verb, got.id, got.body, want)
	}
	if a := decodeAnswer(t, got.body); a.StatusCode != 200 || a.Body != "hello" || a.Headers["X-Request-Id"] != got.id {
		t.Errorf("answer %s", got.body)
	}

	p.events <- []byte(`{"Records":[{"eventSource":"aws:sqs"}]}`)
	got = p.result()
	var failure struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(got.body, &failure); err != nil {
		t.Fatal(err)
	}
	if got.verb != "error" || failure.ErrorType != "UnknownEventError" || !strings.Contains(failure.ErrorMessage, "Records") {
		t.Errorf("%s: %s", got.verb, got.body)
	}

	p.events <- encodeEvent(t, overlay(shellALB(), map[string]any{"path": "/hold"}))
	p.until("holding")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if a := decodeAnswer(t, p.result().body); a.StatusCode != 200 || a.Body != "held, context <nil>" {
		t.Errorf("answer of the invocation in flight: %+v", a)
	}
	p.end("started <nil>", "holding", "drained", "stopped")
}

// The runtime loop sends frames as frames, whole answers as they are, and what cut a stream short
// in the trailers.
func TestServeStreaming(t *testing.T) {
	p := startFunction(t, StreamingVariable+"=on")
	p.events <- encodeEvent(t, overlay(shellFURL(), map[string]any{"rawPath": "/echo", "body": "hello"}))
	got := p.result()
	if a, body := unframe(t, got.body); got.verb != "response" || got.contentType != contentTypeFrames || a.StatusCode != 200 || body != "hello" || got.trailer.Get("Lambda-Runtime-Function-Error-Type") != "" {
		t.Errorf("%+v: %d %q", got, a.StatusCode, body)
	}

	p.events <- encodeEvent(t, overlay(shellFURL(), map[string]any{"rawPath": "/break"}))
	got = p.result()
	reason, err := base64.StdEncoding.DecodeString(got.trailer.Get("Lambda-Runtime-Function-Error-Body"))
	if a, body := unframe(t, got.body); a.StatusCode != 200 || body != "data: 1\n\n" || got.trailer.Get("Lambda-Runtime-Function-Error-Type") != "BrokenStreamError" ||
		err != nil || !strings.Contains(string(reason), "broke off") || strings.Contains(string(reason), "secret") {
		t.Errorf("%+v: %d %q, %s", got, a.StatusCode, body, reason)
	}

	p.events <- encodeEvent(t, overlay(shellALB(), map[string]any{"path": "/echo", "body": "hello"}))
	got = p.result()
	if a := decodeAnswer(t, got.body); a.StatusCode != 200 || a.Body != "hello" || got.contentType != "application/json" {
		t.Errorf("%+v", got)
	}

	p.events <- []byte(`{"Records":[{"eventSource":"aws:sqs"}]}`)
	if got = p.result(); got.verb != "error" || !strings.Contains(string(got.body), "UnknownEventError") {
		t.Errorf("%s: %s", got.verb, got.body)
	}

	p.events <- encodeEvent(t, overlay(shellFURL(), map[string]any{"rawPath": "/hold"}))
	p.until("holding")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, body := unframe(t, p.result().body); body != "held, context <nil>" {
		t.Errorf("answer of the invocation in flight: %q", body)
	}
	p.end("started <nil>", "holding", "drained", "stopped")
}

func TestServeUntilItsContextEnds(t *testing.T) {
	p := startFunction(t)
	p.events <- encodeEvent(t, overlay(shellV1(), map[string]any{"path": "/cancel"}))
	if a := decodeAnswer(t, p.result().body); a.StatusCode != 200 || a.Body != "held, context <nil>" {
		t.Errorf("answer of the invocation in flight: %+v", a)
	}
	p.end("started <nil>", "holding", "drained", "stopped")
}

// A handler that does not end is told as the error of its invocation, and the process ends
// before it is sent another event (tasks rule 10).
func TestServeEndsAfterALeak(t *testing.T) {
	for _, streaming := range []string{"off", "on"} {
		t.Run("streaming "+streaming, func(t *testing.T) { endsAfterALeak(t, startFunction(t, StreamingVariable+"="+streaming)) })
	}
}

func endsAfterALeak(t *testing.T, p *lambdaProcess) {
	p.events <- sqsEvent(t, body("a"))
	got := p.result()
	var failure struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(got.body, &failure); err != nil {
		t.Fatal(err)
	}
	if got.verb != "error" || failure.ErrorType != "LeakError" || !strings.Contains(failure.ErrorMessage, "does not end") {
		t.Errorf("%s: %s", got.verb, got.body)
	}
	p.events <- sqsEvent(t, body("b")) // waits for the next process
	for p.stdout.Scan() {
		p.said = append(p.said, p.stdout.Text())
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the function ended with %v", err)
	}
	if want := []string{"started <nil>", "task a"}; !slices.Equal(p.said, want) || len(p.events) != 1 {
		t.Errorf("the function said %q, want %q; %d events wait", p.said, want, len(p.events))
	}
}

// The loop ends an invocation's context once it has sent the answer.
func TestWaitForTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &loopHandler{invoker: newTestInvoker(http.NotFoundHandler())}
		begin := func() context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := loop.Invoke(ctx, encodeEvent(t, shellV2())); err != nil {
				t.Fatal(err)
			}
			return cancel
		}
		waited := func() time.Duration {
			start := time.Now()
			loop.wait(400 * time.Millisecond)
			return time.Since(start)
		}
		if d := waited(); d != 0 {
			t.Errorf("waited %s for nothing", d)
		}
		for range 100 {
			begin()()
		}
		first, second := begin(), begin()
		if n := len(loop.open); n != 2 {
			t.Errorf("%d invocations open, want 2", n)
		}
		if d := waited(); d != 400*time.Millisecond {
			t.Errorf("waited %s for unfinished invocations, want 400ms", d)
		}
		time.AfterFunc(100*time.Millisecond, first)
		time.AfterFunc(200*time.Millisecond, second)
		if d := waited(); d != 200*time.Millisecond {
			t.Errorf("waited %s, want until both were finished after 200ms", d)
		}
	})
}
