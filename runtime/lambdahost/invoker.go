package lambdahost

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// Invoker is the function that Lambda invokes: event in, answer out. It is safe for
// concurrent use.
type Invoker struct {
	handler http.Handler
	log     *slog.Logger // nil: slog.Default at the time of use
	tasks   tasks
}

// NewInvoker returns the event function that serves h, without the runtime loop.
func NewInvoker(h http.Handler) *Invoker { return &Invoker{handler: h} }

// InvokerOf returns the event function of an app: its requests, its tasks and its sweeps. o
// may be nil.
func InvokerOf(a host.App, o *Options) *Invoker {
	i := &Invoker{handler: a.HTTP, log: a.Log(), tasks: tasks{run: a.RunTask, sweep: a.Sweep}}
	if o != nil {
		i.tasks.visibility = o.Visibility
	}
	return i
}

// The handler gets all of the invocation's time but a reserve. It has half of the
// reserve left to write an answer of its own once its context has ended; the other
// half is for encoding and sending.
const (
	maxReserve      = 500 * time.Millisecond
	reserveFraction = 5 // of a short invocation, the reserve is at most a fifth
)

// Invoke serves the HTTP request in payload and returns the answer in the form that
// the event's front door takes; what else a program that works on tasks is sent, it hands
// to that program. ctx carries the invocation's deadline; without one
// the handler has all the time it wants.
//
// The error is an *UnknownEventError, a *LeakError, or a sweep's; whatever goes wrong with a request or a
// message after it was recognised is an answer. An event that says nothing at all ({} or null, as
// a console's test button sends) has nothing to lose and is answered with 400.
//
// Invoke does not keep payload. It returns before the handler does if the handler
// outstays its time; the handler's later writes fail, and its context has ended.
func (i *Invoker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	e, d, err := decodeEvent(payload)
	if err != nil {
		if w, ok := decodeWork(payload); ok {
			return i.work(ctx, payload, w)
		}
		return nil, err
	}
	if d == noDoor {
		i.logger().WarnContext(ctx, "lambda: empty event")
		return httpAPI2.answer(emptyEvent.response(false)), nil // the form that most doors can read
	}
	ctx, grace, cancel := withReserve(ctx)
	defer cancel()
	ctx = d.withLimit(ctx)
	if id := e.identity(d); id != (host.Identity{}) {
		ctx = host.WithIdentity(ctx, id)
	}
	r, bad := e.request(ctx, d)
	isHead := e.method(d) == http.MethodHead
	if bad != nil {
		i.logger().WarnContext(ctx, "lambda: request refused", "reason", bad.reason)
		return d.answer(bad.response(isHead)), nil
	}
	res := i.serve(r, d, isHead, grace)
	answer, size := d.encode(res)
	if answer == nil {
		i.logger().ErrorContext(ctx, "lambda: response too large", "bytes", size, "limit", d.limit())
		answer = d.answer(tooLarge(size, d.limit()).response(isHead))
	}
	return answer, nil
}

// answer encodes one of this package's own responses, which are all small.
func (d door) answer(res *response) []byte {
	b, _ := d.encode(res)
	return b
}

// withReserve ends ctx before its deadline by the reserve, half of which is the
// grace. Like net/http's, the context also ends once the request has been answered.
func withReserve(ctx context.Context) (_ context.Context, grace time.Duration, cancel context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		ctx, cancel = context.WithCancel(ctx)
		return ctx, maxReserve / 2, cancel
	}
	reserve := max(0, min(maxReserve, time.Until(deadline)/reserveFraction))
	ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
	return ctx, reserve / 2, cancel
}

// outcome is how a handler ended.
type outcome int

const (
	outstayed outcome = iota // it has not ended yet, and its time is over
	answered                 // it has not ended yet, and has answered
	returned
	exited // runtime.Goexit
	panicked
)

// serve runs the handler for as long as there is time.
func (i *Invoker) serve(r *http.Request, d door, isHead bool, grace time.Duration) *response {
	w := newResponseWriter(isHead, d.limit())
	ended, whole := make(chan outcome, 1), make(chan struct{})
	r = r.WithContext(host.WithAnswered(r.Context(), sync.OnceFunc(func() { close(whole) })))
	ctx, method, path := r.Context(), r.Method, r.URL.Path // r is the handler's from here on
	go i.run(w, r, ended)

	var how outcome
	select {
	case how = <-ended:
	case <-whole:
		how = answered
	case <-ctx.Done():
		timer := time.NewTimer(grace)
		select {
		case how = <-ended:
		case <-whole:
			how = answered
		case <-timer.C:
		}
		timer.Stop()
	}

	var res response
	switch how {
	case panicked:
		w.take()
		return internal.response(isHead)
	case exited:
		// It may have answered whole before it ended its goroutine.
		if res = w.take(); !res.stands(isHead) {
			return internal.response(isHead)
		}
	case returned:
		res = w.finish()
	case answered:
		// Its goroutine goes on when the next invocation thaws the process.
		i.logger().WarnContext(ctx, "lambda: handler still running after its answer", "method", method, "path", path)
		if res = w.take(); !res.stands(isHead) {
			return internal.response(isHead)
		}
	case outstayed:
		i.logger().ErrorContext(ctx, "lambda: handler still running at the end of its time", "method", method, "path", path)
		if res = w.take(); !res.stands(isHead) {
			return outOfTime.response(isHead)
		}
	}
	res.sniff()
	return &res
}

// run calls the handler on a goroutine of its own, so that neither a panic nor a
// runtime.Goexit, which no recover stops, can end the runtime loop.
func (i *Invoker) run(w http.ResponseWriter, r *http.Request, ended chan<- outcome) {
	how := exited
	defer func() { ended <- how }()
	defer func() {
		if how == returned {
			return
		}
		v := recover()
		if v != nil {
			how = panicked
		}
		i.logBroken(r, v)
	}()
	i.handler.ServeHTTP(w, r)
	how = returned
}

func (i *Invoker) logBroken(r *http.Request, v any) {
	// A log that panics must not end the runtime loop.
	defer func() { _ = recover() }()
	switch v {
	case http.ErrAbortHandler: // the handler's way to give up without a trace
	case nil:
		i.logger().ErrorContext(r.Context(), "lambda: handler ended its goroutine", "stack", string(debug.Stack()))
	default:
		// fmt survives a String method that panics; not every slog.Handler does.
		i.logger().ErrorContext(r.Context(), "lambda: handler panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}

func (i *Invoker) logger() *slog.Logger {
	if i.log != nil {
		return i.log
	}
	return slog.Default()
}
