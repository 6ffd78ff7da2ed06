package lambdahost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/thaw-mcp/thaw/runtime/host"
)

const (
	// runtimeAPI is the variable that Lambda sets to the address of its Runtime API.
	runtimeAPI = "AWS_LAMBDA_RUNTIME_API"

	// StreamingVariable is the environment variable that says, with on or off, whether the
	// front doors of this function take streams; off if it is not set. No event tells.
	StreamingVariable = "THAW_LAMBDA_STREAMING"
)

// Host is AWS Lambda. All its facts are false: no process between requests, no
// streaming, and the world can connect. With [StreamingVariable] on it streams.
//
// Its Serve runs Lambda's runtime loop until ctx ends. Then it drains the app once and
// returns nil when the invocations in flight have been answered, or after 400 ms. The
// platform sends no SIGTERM before it ends a function unless the function registers an
// extension, which costs every cold start a round trip; nothing here lives between
// invocations that would need the signal. If the Runtime API itself fails, or after a
// *LeakError, the loop ends the process with status 1, as the platform expects; it takes one
// Serve per process.
func Host() host.Host { return HostOf(nil) }

// Options are what a Lambda host can do beyond the events that it is sent.
type Options struct {
	// Visibility shows a received message of a queue to others after d from now, and not
	// before. nil leaves it to the queue's own timeout. It must be safe for concurrent use.
	Visibility func(ctx context.Context, queueARN, receipt string, d time.Duration) error
}

// HostOf is Host with options, which may be nil.
func HostOf(o *Options) host.Host {
	if o == nil {
		o = &Options{}
	}
	return hostOf(*o, "")
}

// hostOf is a host whose StreamingVariable has the value streaming.
func hostOf(o Options, streaming string) host.Host {
	return host.Host{
		Name:       "lambda",
		Here:       func(getenv func(string) string) bool { return getenv(runtimeAPI) != "" },
		Configured: func(getenv func(string) string) host.Host { return hostOf(o, getenv(StreamingVariable)) },
		Facts:      host.Facts{Streaming: streaming == "on"},
		Ephemeral:  true,
		Deadlines:  true,
		Messages:   true,
		Serve: func(ctx context.Context, a host.App) error {
			if streaming != "" && streaming != "on" && streaming != "off" {
				return fmt.Errorf("%s=%q: allowed is on or off", StreamingVariable, streaming)
			}
			return serve(ctx, a, &o, streaming == "on")
		},
	}
}

// drainTime is what Serve gives invocations in flight when it stops.
const drainTime = 400 * time.Millisecond

func serve(ctx context.Context, a host.App, o *Options, streaming bool) error {
	if os.Getenv(runtimeAPI) == "" {
		return errors.New("not on AWS Lambda: " + runtimeAPI + " is not set")
	}
	if a.Started != nil {
		a.Started(nil)
	}
	loop := &loopHandler{invoker: InvokerOf(a, o)}
	var handler any = loop
	if streaming {
		handler = loop.stream
	}
	// Invocations in flight get their own time, below.
	go lambda.StartWithOptions(handler, lambda.WithContext(context.WithoutCancel(ctx)))
	<-ctx.Done()
	if a.Drain != nil {
		a.Drain()
	}
	loop.wait(drainTime)
	return nil
}

// loopHandler is the Invoker as the runtime loop calls it. It remembers which
// invocations the loop has not finished: an answer is sent after Invoke returns, and
// the only sign that it was is that the loop cancels the invocation's context.
type loopHandler struct {
	invoker *Invoker

	mu   sync.Mutex
	open []<-chan struct{} // Done of each invocation; those long finished are dropped by the next one
}

// Invoke implements lambda.Handler.
func (l *loopHandler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	l.note(ctx)
	answer, err := l.invoker.Invoke(ctx, payload)
	exitAfter(err)
	return answer, err
}

// stream is Invoke in the form of a function, which alone may answer with a stream.
func (l *loopHandler) stream(ctx context.Context, payload json.RawMessage) (io.Reader, error) {
	l.note(ctx)
	answer, err := l.invoker.InvokeStream(ctx, payload)
	exitAfter(err)
	return answer, err
}

// exitAfter panics with a *LeakError: the runtime loop posts a panic as the invocation's error
// and ends the process before it asks for another event, which to exit from here could not promise.
func exitAfter(err error) {
	var leak *LeakError
	if errors.As(err, &leak) {
		panic(leak)
	}
}

// note remembers an invocation.
func (l *loopHandler) note(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	unfinished := l.open[:0]
	for _, done := range l.open {
		select {
		case <-done:
		default:
			unfinished = append(unfinished, done)
		}
	}
	l.open = append(unfinished, ctx.Done())
}

// wait returns when the loop has finished all invocations that it has begun, or
// after limit.
func (l *loopHandler) wait(limit time.Duration) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	l.mu.Lock()
	open := slices.Clone(l.open)
	l.mu.Unlock()
	for _, done := range open {
		select {
		case <-done:
		case <-timeout.C:
			return
		}
	}
}
