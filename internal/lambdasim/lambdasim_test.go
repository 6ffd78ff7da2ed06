package lambdasim_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// child makes the test binary a function.
const child = "LAMBDASIM_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		lambda.Start(function)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// order is the event of the tests' function: what it has to do.
type order struct {
	Do   string
	Size int
	Wait string // a URL that answers when the function may go on
}

// report is its answer.
type report struct {
	PID      int
	ID       string
	Left     time.Duration
	Counted  int64
	Variable string
}

var (
	counted atomic.Int64
	counts  atomic.Bool
)

// count counts as long as the process runs.
func count() {
	for range time.Tick(time.Millisecond) {
		counted.Add(1)
	}
}

func wait(url string) {
	if r, err := http.Get(url); err == nil {
		_ = r.Body.Close()
	}
}

// body is a response that a function streams.
type body struct{ io.Reader }

func (body) MarshalJSON() ([]byte, error) { return nil, errors.New("no JSON") }
func (body) ContentType() string          { return "text/x-test" }

type brokenError struct{}

func (*brokenError) Error() string { return "it broke" }

// brokenReader gives a word and then an error.
type brokenReader struct{ said bool }

func (b *brokenReader) Read(p []byte) (int, error) {
	if b.said {
		return 0, &brokenError{}
	}
	b.said = true
	return copy(p, "half"), nil
}

func function(ctx context.Context, o order) (any, error) {
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	switch o.Do {
	case "fail":
		return nil, errors.New("no luck")
	case "panic":
		panic("no luck")
	case "exit":
		os.Exit(3)
	case "hang":
		select {}
	case "size":
		return strings.Repeat("x", o.Size-2), nil // in quotes
	case "count":
		if counts.CompareAndSwap(false, true) {
			go count()
		}
	case "counted":
		before := counted.Load()
		for range time.Tick(time.Millisecond) {
			if counted.Load() > before {
				break
			}
		}
	case "wait":
		wait(o.Wait)
	case "stream":
		return body{io.MultiReader(strings.NewReader("one"), readerFunc(func([]byte) (int, error) { wait(o.Wait); return 0, io.EOF }), strings.NewReader("two"))}, nil
	case "break":
		return body{&brokenReader{}}, nil
	}
	return report{os.Getpid(), lc.AwsRequestID, time.Until(deadline), counted.Load(), os.Getenv("VARIABLE")}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func start(t *testing.T, c lambdasim.Config) *lambdasim.Function {
	t.Helper()
	c.Program = os.Args[0]
	c.Env = append(c.Env, child+"=1")
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	f := lambdasim.New(c)
	t.Cleanup(f.Close)
	return f
}

func give(t *testing.T, o order) []byte {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func invoke(t *testing.T, f *lambdasim.Function, o order) (r report) {
	t.Helper()
	b, err := f.Invoke(t.Context(), give(t, o))
	if err != nil {
		t.Fatalf("%s: %v", o.Do, err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%s: %s: %v", o.Do, b, err)
	}
	return r
}

func TestInvoke(t *testing.T) {
	f := start(t, lambdasim.Config{Env: []string{"VARIABLE=value"}})
	first := invoke(t, f, order{})
	if first.ID == "" || first.Left > time.Minute || first.Left < 30*time.Second || first.Variable != "value" {
		t.Errorf("%+v", first)
	}
	for range 20 {
		if next := invoke(t, f, order{}); next.PID != first.PID || next.ID == first.ID {
			t.Errorf("%+v after %+v", next, first)
		}
	}
	f.Recycle()
	if next := invoke(t, f, order{}); next.PID == first.PID || f.Started() != 2 {
		t.Errorf("after Recycle %+v, %d started", next, f.Started())
	}
	f.Close()
	if _, err := f.Invoke(t.Context(), []byte("{}")); !errors.Is(err, lambdasim.ErrClosed) {
		t.Errorf("after Close %v", err)
	}
}

// gate answers once it is open.
func gate(t *testing.T) (url string, arrived chan struct{}, open func()) {
	t.Helper()
	opened := make(chan struct{})
	arrived = make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-opened
	}))
	t.Cleanup(s.Close)
	return s.URL, arrived, func() { close(opened) }
}

// A sandbox works on one invocation at a time, and reserved concurrency bounds them.
func TestConcurrency(t *testing.T) {
	f := start(t, lambdasim.Config{Concurrency: 2})
	url, arrived, open := gate(t)
	results := make(chan report, 2)
	for range 2 {
		go func() {
			var r report
			b, err := f.Invoke(context.WithoutCancel(t.Context()), []byte(`{"Do":"wait","Wait":"`+url+`"}`))
			if err := errors.Join(err, json.Unmarshal(b, &r)); err != nil {
				t.Error(err)
			}
			results <- r
		}()
		<-arrived
	}
	if _, err := f.Invoke(t.Context(), []byte("{}")); !errors.Is(err, lambdasim.ErrThrottled) {
		t.Errorf("a third at a time: %v", err)
	}
	open()
	if a, b := <-results, <-results; a.PID == b.PID || f.Started() != 2 {
		t.Errorf("%+v and %+v, %d started", a, b, f.Started())
	}
	invoke(t, f, order{})
	if f.Started() != 2 {
		t.Errorf("%d started", f.Started())
	}
}

func TestFailures(t *testing.T) {
	f := start(t, lambdasim.Config{})
	for _, c := range []struct {
		o       order
		want    string
		started int // sandboxes, after one more invocation
	}{
		{order{Do: "fail"}, "errorString: no luck", 1},
		{order{Do: "panic"}, "string: no luck", 2},
		{order{Do: "exit"}, "Runtime.ExitError: RequestId: ", 3},
		{order{Do: "size", Size: lambdasim.MaxResponse + 1}, "Function.ResponseSizeTooLarge: Response payload size exceeded maximum allowed payload size (6291556 bytes).", 4},
	} {
		_, err := f.Invoke(t.Context(), give(t, c.o))
		var failed *lambdasim.FunctionError
		if !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.o.Do, err)
		}
		if invoke(t, f, order{}); f.Started() != c.started {
			t.Errorf("%s: %d started, want %d", c.o.Do, f.Started(), c.started)
		}
	}
	if b, err := f.Invoke(t.Context(), give(t, order{Do: "size", Size: lambdasim.MaxResponse})); err != nil || len(b) != lambdasim.MaxResponse {
		t.Errorf("the largest response: %d bytes, %v", len(b), err)
	}
	if _, err := f.Invoke(t.Context(), make([]byte, lambdasim.MaxRequest+1)); !errors.Is(err, lambdasim.ErrRequestTooLarge) {
		t.Errorf("an event too large: %v", err)
	}
	if _, err := lambdasim.New(lambdasim.Config{Program: "/nowhere"}).Invoke(t.Context(), []byte("{}")); err == nil {
		t.Error("a program that is not there was invoked")
	}
}

// A function that outstays its time is killed, and the next invocation starts anew.
func TestTimeout(t *testing.T) {
	f := start(t, lambdasim.Config{Timeout: 2 * time.Second})
	_, err := f.Invoke(t.Context(), give(t, order{Do: "hang"}))
	var failed *lambdasim.FunctionError
	if !errors.As(err, &failed) || failed.Type != "Sandbox.Timedout" || !strings.Contains(failed.Message, "timed out after 2.00 seconds") {
		t.Errorf("%v", err)
	}
	if invoke(t, f, order{}); f.Started() != 2 {
		t.Errorf("%d started", f.Started())
	}
}

func TestStream(t *testing.T) {
	f := start(t, lambdasim.Config{})
	url, _, open := gate(t)
	s, err := f.InvokeStream(t.Context(), give(t, order{Do: "stream", Wait: url}))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := io.ReadAtLeast(s, b, 3); string(b[:n]) != "one" || err != nil || s.ContentType != "text/x-test" {
		t.Errorf("%q, %v, type %s", b[:n], err, s.ContentType)
	}
	open()
	if rest, err := io.ReadAll(s); string(rest) != "two" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	_ = s.Close()
	invoke(t, f, order{})
	if f.Started() != 1 {
		t.Errorf("%d started", f.Started())
	}
}

// What breaks a stream comes as its error, whether the function says so in a trailer or dies.
func TestBrokenStream(t *testing.T) {
	f := start(t, lambdasim.Config{Timeout: 3 * time.Second})
	s, err := f.InvokeStream(t.Context(), give(t, order{Do: "break"}))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(s)
	var failed *lambdasim.FunctionError
	if string(b) != "half" || !errors.As(err, &failed) || failed.Type != "brokenError" || failed.Message != "it broke" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err = f.InvokeStream(t.Context(), give(t, order{Do: "fail"})); !errors.As(err, &failed) || failed.Message != "no luck" {
		t.Errorf("an error before the stream: %v", err)
	}
	url, _, open := gate(t)
	defer open()
	if s, err = f.InvokeStream(t.Context(), give(t, order{Do: "stream", Wait: url})); err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(s); string(b) != "one" || !errors.As(err, &failed) || failed.Type != "Sandbox.Timedout" {
		t.Errorf("out of time: %q, %v", b, err)
	}
}

// A caller that leaves does not stop the function, which is not told.
func TestCallerLeaves(t *testing.T) {
	f := start(t, lambdasim.Config{Concurrency: 1})
	url, arrived, open := gate(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := f.Invoke(ctx, []byte(`{"Do":"wait","Wait":"`+url+`"}`))
		left <- err
	}()
	<-arrived
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := f.Invoke(t.Context(), []byte("{}")); !errors.Is(err, lambdasim.ErrThrottled) {
		t.Errorf("beside a function that works on: %v", err)
	}
	open()
	// And one that leaves in the middle of a stream.
	f = start(t, lambdasim.Config{Concurrency: 1})
	url, arrived, open = gate(t)
	s, err := f.InvokeStream(t.Context(), give(t, order{Do: "stream", Wait: url}))
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	open()
	for {
		_, err := f.Invoke(t.Context(), give(t, order{}))
		if err == nil {
			break
		}
		if !errors.Is(err, lambdasim.ErrThrottled) {
			t.Fatal(err)
		}
	}
	if f.Started() != 1 {
		t.Errorf("%d started", f.Started())
	}
}
