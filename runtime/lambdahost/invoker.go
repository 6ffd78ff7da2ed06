package lambdahost

import (
	"context"
	"fmt"
	"io"
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
	v, answer, err := i.begin(ctx, payload, false)
	if v == nil {
		return answer, err
	}
	return v.buffered(), nil
}

// InvokeStream is Invoke for a function whose front doors take streams, as far as they can: the
// answer to an HTTP API, to a load balancer or to no request at all is whole, and so are its
// errors. The answer is an io.Closer too and says in ContentType what it is. It has to be read
// to its end or closed; an error of Read says that the answer is cut short. The handler runs on
// while the answer is read; its context ends with the answer.
func (i *Invoker) InvokeStream(ctx context.Context, payload []byte) (io.Reader, error) {
	v, answer, err := i.begin(ctx, payload, true)
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return newWhole(answer), nil
	case !v.door.streams():
		return newWhole(v.buffered()), nil
	}
	return v.stream(), nil
}

// invocation is an event that is a request.
type invocation struct {
	*Invoker
	door   door
	ctx    context.Context // ends a reserve before the time does
	cancel context.CancelFunc
	grace  time.Duration // half of the reserve
	isHead bool

	request *http.Request
	bad     *refusal // instead of a request
}

// begin reads an event. Whatever is no request it answers itself, and v is nil. streaming says
// that the answer may be a stream where the door takes one.
func (i *Invoker) begin(ctx context.Context, payload []byte, streaming bool) (v *invocation, answer []byte, err error) {
	e, d, err := decodeEvent(payload)
	if err != nil {
		if w, ok := decodeWork(payload); ok {
			answer, err = i.work(ctx, payload, w)
		}
		return nil, answer, err
	}
	if d == noDoor {
		i.logger().WarnContext(ctx, "lambda: empty event")
		return nil, httpAPI2.answer(emptyEvent.response(false)), nil // the form that most doors can read
	}
	v = &invocation{Invoker: i, door: d, isHead: e.method(d) == http.MethodHead}
	v.ctx, v.grace, v.cancel = withReserve(ctx)
	if streaming && d.streams() {
		v.ctx = withStreamLimit(v.ctx)
	} else {
		v.ctx = d.withLimit(v.ctx)
	}
	if id := e.identity(d); id != (host.Identity{}) {
		v.ctx = host.WithIdentity(v.ctx, id)
	}
	if v.request, v.bad = e.request(v.ctx, d); v.bad != nil {
		i.logger().WarnContext(ctx, "lambda: request refused", "reason", v.bad.reason)
	}
	return v, nil, nil
}

// buffered is the whole answer of a request.
func (v *invocation) buffered() []byte {
	defer v.cancel()
	d := v.door
	if v.bad != nil {
		return d.answer(v.bad.response(v.isHead))
	}
	r := v.start(newResponseWriter(v.isHead, d.limit()))
	defer r.free()
	answer, size := d.encode(r.result(r.wait(nil)))
	if answer == nil {
		v.logger().ErrorContext(v.ctx, "lambda: response too large", "bytes", size, "limit", d.limit())
		answer = d.answer(tooLarge(size, d.limit()).response(v.isHead))
	}
	return answer
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
	begun                    // it has not ended yet, and streams
	returned
	exited // runtime.Goexit
	panicked
)

// running is a handler at work on a request.
type running struct {
	*invocation
	w     *responseWriter
	ended chan outcome  // holds how the handler ended
	whole chan struct{} // closed when the handler says that its answer is complete

	method, path string // for the log; the request is the handler's

	late *time.Timer // ends the grace; nil as long as the handler has time
}

// start runs the handler with w, or with what w is wrapped in.
func (v *invocation) start(w *responseWriter) *running {
	r := &running{invocation: v, w: w, ended: make(chan outcome, 1), whole: make(chan struct{}),
		method: v.request.Method, path: v.request.URL.Path}
	request := v.request.WithContext(host.WithAnswered(v.ctx, sync.OnceFunc(func() { close(r.whole) })))
	var writer http.ResponseWriter = w
	if w.flow != nil {
		writer = streamWriter{w}
	}
	go v.run(writer, request, r.ended)
	return r
}

// wait returns when the handler has ended or answered, or has no time left, or has begun to
// stream. more, if it is not nil, ends it too, with begun.
func (r *running) wait(more <-chan struct{}) outcome {
	for {
		done, late := r.ctx.Done(), (<-chan time.Time)(nil)
		if r.late != nil {
			done, late = nil, r.late.C
		}
		select {
		case how := <-r.ended:
			return how
		case <-r.whole:
			return answered
		case <-more:
			return begun
		case <-done:
			r.late = time.NewTimer(r.grace)
		case <-late:
			return outstayed
		}
	}
}

// look is wait for who does not wait: begun, unless the handler has ended or answered, or has no
// time left.
func (r *running) look() outcome {
	select {
	case how := <-r.ended:
		return how
	case <-r.whole:
		return answered
	default:
	}
	if r.late == nil {
		if r.ctx.Err() == nil {
			return begun
		}
		r.late = time.NewTimer(r.grace)
	}
	select {
	case <-r.late.C:
		return outstayed
	default:
		return begun
	}
}

// free lets go of what the invocation holds; its context ends.
func (r *running) free() {
	if r.late != nil {
		r.late.Stop()
	}
	r.cancel()
}

// result is the answer of a handler that has not begun to stream.
func (r *running) result(how outcome) *response {
	var res response
	switch how {
	case panicked:
		r.w.take()
		return internal.response(r.isHead)
	case exited:
		// It may have answered whole before it ended its goroutine.
		if res = r.w.take(); !res.stands(r.isHead) {
			return internal.response(r.isHead)
		}
	case returned:
		res = r.w.finish()
	case answered:
		// Its goroutine goes on when the next invocation thaws the process.
		r.logger().WarnContext(r.ctx, "lambda: handler still running after its answer", "method", r.method, "path", r.path)
		if res = r.w.take(); !res.stands(r.isHead) {
			return internal.response(r.isHead)
		}
	default:
		r.logger().ErrorContext(r.ctx, "lambda: handler still running at the end of its time", "method", r.method, "path", r.path)
		if res = r.w.take(); !res.stands(r.isHead) {
			return outOfTime.response(r.isHead)
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
