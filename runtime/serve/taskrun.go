package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// One run of a task by a worker: the same handler as a plain call's, over a journal that is
// committed entry by entry.

// taskReserve is what is left of a worker's own time for writing down what became of a run.
const taskReserve = 20 * time.Second

// RunTask looks at a task, as a message to a worker said, and runs it if it can be claimed.
// The message is done with if ack is true; otherwise it is to be shown again, not before after.
// It is safe for concurrent use, also for one task.
func (h *Handler) RunTask(ctx context.Context, id string) (ack bool, after time.Duration) {
	if h.engine == nil {
		return false, taskReserve
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= taskReserve {
		// A claim that cannot run would count as a death.
		h.refusals.log(h.now(), errTooShort, func(int) {
			h.logger.LogAttrs(ctx, slog.LevelError, "the message of a task is kept: too little of the worker's time is left, of which the reserve is 20s", slog.String("task", id))
		})
		return false, taskReserve
	}
	v := h.engine.Work(ctx, id, h.hiding(h.runTask))
	return v.Ack, v.After
}

var errTooShort = errors.New("too little time")

// leaveTime is how long a task that this program does not know is left to others.
const leaveTime = time.Minute

// runTask runs a claimed task as far as it goes.
func (h *Handler) runTask(ctx context.Context, claim *task.Claim) task.Result {
	head := claim.Head()
	release := func(format string, args ...any) task.Result {
		return task.Result{Release: fmt.Sprintf(format, args...)}
	}
	cat := h.catalog.Load()
	t := cat.tools[head.Tool]
	if t == nil || head.Format > taskFormat { // of a deploy that this process is not of
		h.logger.LogAttrs(ctx, slog.LevelWarn, "a task is left to others", slog.String("task", head.ID), slog.String("tool", head.Tool), slog.Int("format", int(head.Format)))
		return task.Result{Park: &task.Park{Until: h.now().Add(leaveTime), Stopping: true}}
	}
	if int(head.Revision) < t.MinRevision {
		return failed(invalidParams(reasonStale, "The task began under a revision of the tool that is gone: start again"))
	}
	text, err := claim.Call(claim.Held())
	if err != nil {
		return unread(claim, "call", err)
	}
	stored, err := readTaskCall(text)
	if err != nil {
		return release("its call cannot be read: %v", err)
	}
	c := &running{
		h: h, catalog: cat, requestID: []byte("0"), meta: stored.meta(),
		kind: "tool", name: t.Name, principal: stored.Principal.principal(), scopes: t.Scopes, method: mcp.MethodCallTool,
		args: stored.Arguments, round: 1, attempt: int(head.Claims), revision: int(head.Revision), asks: true, callID: stored.CallID, taskID: head.ID, say: claim.Say,
	}
	k := &taskKeeper{running: c, claim: claim, step: t.StepTime}
	c.keep = k
	if err := k.begin(claim.Held()); err != nil {
		return unread(claim, "journal", err)
	}
	return k.run(ctx, t)
}

// unread is what becomes of a task that cannot be read: a worker that stops leaves it to others,
// which is no fault of the task.
func unread(claim *task.Claim, what string, err error) task.Result {
	if why := context.Cause(claim.Held()); why != nil && why != task.ErrLost {
		return task.Result{Park: &task.Park{Stopping: true}}
	}
	return task.Result{Release: fmt.Sprintf("its %s cannot be read: %v", what, err)}
}

// taskKeeper keeps the journal of a task: each entry is committed before its step returns.
type taskKeeper struct {
	*running
	claim  *task.Claim
	step   time.Duration           // the longest a step takes
	worker context.Context         // ends with the claim, or with the worker's own time
	stop   context.CancelCauseFunc // ends the handler's ctx

	asked map[string]pending // the questions that the task has asked and that are not answered, by key
	wires map[string]bool    // wire keys that were used
}

type pending struct {
	digest journal.Digest
	wire   string
}

// begin gives the run what the task has recorded.
func (k *taskKeeper) begin(ctx context.Context) error {
	entries, err := k.claim.Journal(ctx)
	if err != nil {
		return err
	}
	answers, err := k.claim.Answers(ctx)
	if err != nil {
		return err
	}
	k.asked, k.wires = map[string]pending{}, map[string]bool{}
	j := &journal.Journal{}
	at := map[string]int{}
	put := func(e journal.Entry) {
		if i, again := at[e.Key]; again {
			j.Entries[i] = e
			return
		}
		at[e.Key] = len(j.Entries)
		j.Entries = append(j.Entries, e)
	}
	for _, text := range entries {
		l, err := journal.ParseLogged(text)
		if err != nil {
			return err
		}
		if !l.Asked {
			put(l.Entry)
			continue
		}
		k.wires[l.Wire] = true
		if answer, ok := answers[l.Wire]; ok {
			delete(k.asked, l.Key)
			put(journal.Entry{Key: l.Key, Kind: journal.Answer, Digest: l.Digest, Data: answer})
		} else {
			k.asked[l.Key] = pending{l.Digest, l.Wire}
		}
	}
	k.running.run.Begin(j, nil)
	return nil
}

// run runs the handler and says what became of it. cancelled ends when the claim does and when the
// client cancels the task.
func (k *taskKeeper) run(cancelled context.Context, t *tool) task.Result {
	worker := withTrace(k.claim.Held(), k.meta)
	if deadline, ok := worker.Deadline(); ok {
		var over context.CancelFunc
		worker, over = context.WithDeadline(worker, deadline.Add(-taskReserve))
		defer over()
	}
	// The handler's ends with the worker's, never before it, and when the client cancels.
	ctx, stop := context.WithCancelCause(worker)
	defer context.AfterFunc(cancelled, func() { stop(context.Cause(cancelled)) })()
	defer stop(nil)
	k.worker, k.stop = worker, stop
	if k.claim.Cleaning() && k.claim.Head().Journal == 0 {
		stop(thaw.ErrCancelled) // what it did it does not know of, and would do again
	}
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Timeout)
		defer cancel()
	}
	c := k.running
	c.ctx = call.NewContext(ctx, c)
	// The handler's ctx is known by its channel, and one that was never asked for shares it with
	// every other that has ended.
	_ = c.ctx.Done()
	ended := make(chan task.Result, 1)
	go func() {
		returned := false
		defer func() {
			if !returned {
				ended <- k.broke(recover(), debug.Stack())
			}
		}()
		r := k.handle(worker, t)
		returned = true
		ended <- r
	}()
	select {
	case r := <-ended:
		return r
	case <-worker.Done():
	}
	select {
	case r := <-ended:
		return r
	case <-time.After(taskReserve / 2):
		// Whatever it still does it does for nobody: its writes are refused.
		host.Leaked(ctx)
		r := task.Result{Release: "the handler does not end"}
		if errors.Is(worker.Err(), context.DeadlineExceeded) {
			r.Last = &withoutStep
		}
		return r
	}
}

// handle runs the handler between the checks that hold for every call, and says for the
// engine what became of it.
func (k *taskKeeper) handle(worker context.Context, t *tool) task.Result {
	c := k.running
	message, err := t.invoke(c.ctx, c, func() ([]byte, error) { return nil, nil })
	whole := c.run.Close(worker)
	ended := c.run.Ended()
	switch why := context.Cause(worker); {
	case errors.Is(ended, errLost):
		return task.Result{Release: "the claim was lost"}
	case why == task.ErrLost || why == task.ErrCancelled:
		return task.Result{Release: why.Error()}
	case why != nil && whole && (err != nil || ended != nil) && !c.run.Suspended():
		// The worker's time is over, or it stops: the task goes on elsewhere.
		return task.Result{Park: &task.Park{Stopping: !errors.Is(why, context.DeadlineExceeded)}, Last: &withoutStep}
	case ended != nil:
		return failed(c.cutShort(ended))
	case c.run.Suspended() && whole:
		return task.Result{Park: k.park()}
	case c.run.Suspended():
		host.Leaked(worker)
		return task.Result{Release: "a step is still at work"}
	case k.claim.Cleaning():
		return task.Result{Outcome: &task.Outcome{}} // dropped, whatever it is
	case errors.Is(err, thaw.ErrSuspended):
		return failed(c.cutShort(errAskedNothing))
	case err == nil:
		return completed(message)
	}
	o := c.outcomeOf(err)
	if o.failure != nil {
		return failed(o.failure)
	}
	return completed(o.message)
}

// withoutStep is how a task ends that no worker's time suffices for.
var withoutStep = task.Outcome{Status: task.Failed, Message: "The tool ran for the whole of a worker's time without a step being recorded, several times in a row.",
	Data: []byte(`{"code":-32603,"message":"The tool ran for the whole of a worker's time without a step being recorded, several times in a row","data":{"reason":"interrupted"}}`)}

// completed is the end of a task in a result, which may be a tool's own error (T-19, T-21).
func completed(message []byte) task.Result {
	return task.Result{Outcome: &task.Outcome{Status: task.Completed, Data: memberOf(message, "result")}}
}

// failed is the end of a task in an error of the protocol (T-20).
func failed(f *failure) task.Result {
	return task.Result{Outcome: &task.Outcome{Status: task.Failed, Message: f.message, Data: memberOf(f.appendError(nil, []byte("0")), "error")}}
}

// park is what the run waits for. A question that was asked already keeps its key; one with
// other content gets a new one (T-29).
func (k *taskKeeper) park() *task.Park {
	p := &task.Park{Until: k.running.run.Until()}
	log := func(l journal.Logged) { p.Entries = append(p.Entries, l.AppendJSON(nil)) }
	for _, e := range k.running.run.Waits() {
		log(journal.Logged{Entry: e})
	}
	for _, q := range k.running.run.Questions() {
		before, asked := k.asked[q.Key]
		wire := before.wire
		if !asked || before.digest != q.Digest {
			wire = k.freeWire(q.Key)
			log(journal.Logged{Entry: journal.Entry{Key: q.Key, Digest: q.Digest}, Asked: true, Wire: wire})
		}
		data := strictjson.AppendString([]byte(`{"method":`), q.Method)
		data = append(append(append(data, `,"params":`...), withNote(q.Params, q.Note)...), '}')
		p.Questions = append(p.Questions, task.Question{Key: wire, Digest: q.Digest, Data: data})
	}
	if len(p.Questions) > 0 {
		p.Until = time.Time{}
	}
	return p
}

func (k *taskKeeper) freeWire(key string) string {
	wire := key
	for n := 2; k.wires[wire]; n++ {
		wire = key + "~" + strconv.Itoa(n)
	}
	k.wires[wire] = true
	return wire
}

// broke is the end of a task whose handler did not return: it fails at once.
func (k *taskKeeper) broke(value any, stack []byte) task.Result {
	return failed(k.panicked(value, stack))
}

// Judge implements journal.Keeper. Answers of a task were judged when they came.
func (k *taskKeeper) Judge(call.Question, []byte) error { return nil }

// Admit implements journal.Keeper: what counts is what the request declared that became the
// task (T-34).
func (k *taskKeeper) Admit(q call.Question) error {
	if lacks := input.Lacks(q.Method, q.Params, k.meta.capabilities); lacks != nil {
		return &thaw.UnsupportedError{Needs: mcp.ClientCapabilities{Raw: lacks}}
	}
	return nil
}

// Ready implements journal.Keeper.
func (k *taskKeeper) Ready(context.Context) error { return k.lost(k.claim.Begin()) }

// Full implements journal.Keeper: a store takes journals of any size.
func (k *taskKeeper) Full(*journal.Entry, int) error { return nil }

// Keep implements journal.Keeper.
func (k *taskKeeper) Keep(ctx context.Context, e *journal.Entry) error {
	l := journal.Logged{Entry: *e}
	// What was done is written down although the run's own time may be over.
	err := k.claim.Record(context.WithoutCancel(ctx), l.AppendJSON(nil))
	if errors.Is(err, task.ErrTooLarge) {
		k.log(slog.LevelError, "the store does not take so much", slog.String("key", e.Key), slog.Int("bytes", len(e.Data)))
		return internal(reasonStateTooLarge, fmt.Sprintf("%s: the result of step %s has %d bytes, which is more than the store takes", k.name, quoted([]byte(e.Key)), len(e.Data)))
	}
	return k.lost(err)
}

// lost ends the run with a failure that nobody is told: the head says what goes on.
func (k *taskKeeper) lost(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// errLost says that a run has no right to go on, or cannot write down what it does. Nobody
// is told: the head says what goes on.
var errLost = errors.New("the task is no longer this worker's")

// Start implements journal.Keeper: a step begins only if it can end in the time there is, or
// the task goes on elsewhere. The first of a claim begins in any case.
func (k *taskKeeper) Start(first bool) (bool, error) {
	if err := k.claim.Begin(); err != nil {
		return false, k.lost(err)
	}
	deadline, ok := k.worker.Deadline()
	return first || !ok || time.Until(deadline) >= k.step, nil
}

// Wait implements journal.Keeper.
func (k *taskKeeper) Wait(ctx context.Context, d time.Duration) error { return waitInPlace(ctx, d) }

// Recovered implements journal.Keeper.
func (k *taskKeeper) Recovered(key string, value any, stack []byte) error {
	return (*keeper)(k.running).Recovered(key, value, stack)
}

// IdempotencyKey implements journal.Keeper.
func (k *taskKeeper) IdempotencyKey(step string) string { return k.sealedID().IdempotencyKey(step) }

// Now implements journal.Waiter.
func (k *taskKeeper) Now() time.Time { return k.h.now() }

// Durable implements journal.Waiter.
func (k *taskKeeper) Durable() bool { return true }

// Cancelled implements journal.Canceller.
func (k *taskKeeper) Cancelled() time.Time { return k.claim.Cancelled() }

// Stop implements journal.Canceller.
func (k *taskKeeper) Stop() context.Context {
	k.stop(thaw.ErrCancelled)
	return k.ctx
}

// CleanUp implements journal.Canceller: ctx ends with the worker's own time.
func (k *taskKeeper) CleanUp(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(k.worker, func() { cancel(context.Cause(k.worker)) })
	end := func() { stop(); cancel(nil) }
	deadline, ok := k.worker.Deadline()
	if !ok {
		return ctx, end
	}
	ctx, over := context.WithDeadline(ctx, deadline)
	return ctx, func() { over(); end() }
}

// Ends implements journal.Waiter.
func (k *taskKeeper) Ends() time.Time { return k.claim.Head().Expires }

// Promote implements journal.Waiter: it is a task already.
func (k *taskKeeper) Promote() bool { return false }
