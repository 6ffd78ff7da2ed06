package lambdahost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// tasks is how a program works on tasks; its zero value does not.
type tasks struct {
	run        func(ctx context.Context, id string) (ack bool, after time.Duration)
	sweep      func(ctx context.Context) error
	visibility func(ctx context.Context, queueARN, receipt string, d time.Duration) error
}

// work is an event about tasks: the records of a queue, a schedule, or a task's message.
type work struct {
	records  []record
	schedule bool
	message  task.Message
}

// record is what this package reads of a message that was received from SQS.
type record struct {
	MessageID string `json:"messageId"`
	Receipt   string `json:"receiptHandle"`
	Body      string `json:"body"`
	Source    string `json:"eventSource"`
	QueueARN  string `json:"eventSourceARN"`
}

// decodeWork reads payload, which is no HTTP request. Unknown members are skipped, and a
// name counts only in its exact spelling.
func decodeWork(payload []byte) (w work, ok bool) {
	var e struct {
		Records    []record `json:"Records"`
		Source     string   `json:"source"`
		DetailType string   `json:"detail-type"`
	}
	if err := jsonv2.Unmarshal(payload, &e); err != nil {
		return work{}, false
	}
	switch {
	case len(e.Records) > 0:
		for _, r := range e.Records {
			// A failure without an id would be one of the whole batch.
			if r.Source != "aws:sqs" || r.MessageID == "" {
				return work{}, false
			}
		}
		return work{records: e.Records}, true
	case e.DetailType == "Scheduled Event" && (e.Source == "aws.events" || e.Source == "aws.scheduler"):
		return work{schedule: true}, true
	}
	m, err := task.ParseMessage(string(payload))
	return work{message: m}, err == nil
}

// work does what an event about tasks asks for. Its time is the invocation's whole: the app
// keeps a reserve of its own.
func (i *Invoker) work(ctx context.Context, payload []byte, w work) ([]byte, error) {
	if i.tasks.run == nil || i.tasks.sweep == nil {
		return nil, unknownEvent(payload, "not an HTTP request, and this program works on no tasks")
	}
	var leaked atomic.Bool
	ctx = host.WithLeaked(ctx, func() { leaked.Store(true) })
	answer := []byte("{}")
	switch {
	case len(w.records) > 0:
		answer = i.receive(ctx, w.records)
	case w.schedule:
		if err := i.sweep(ctx); err != nil {
			return nil, err // the invocation fails: it is tried again, and counted
		}
	default:
		// What is not done now is found by the sweep: to fail would bring the same message
		// again, and nobody waits for the answer.
		i.runTask(ctx, w.message.ID)
	}
	if leaked.Load() {
		return nil, &LeakError{}
	}
	return answer, nil
}

// LeakError says that a handler goes on which could not be ended, and would wake in the next
// invocation: the process has to be replaced. Nothing is lost: the invocation fails as a whole, so
// that its messages are kept, and of a task that was done a message says nothing new.
type LeakError struct{}

func (*LeakError) Error() string {
	return "a task's handler does not end although its time is over: the process is replaced"
}

// atOnce bounds the records that one invocation works on at a time. The mapping's batch size
// should be 1.
const atOnce = 10

// batchResponse is the answer to an SQS event.
type batchResponse struct {
	Failures []batchFailure `json:"batchItemFailures"` // never null, which would be a failure of the whole batch
}

type batchFailure struct {
	ID string `json:"itemIdentifier"`
}

// receive works on each record and answers with those that are kept.
func (i *Invoker) receive(ctx context.Context, records []record) []byte {
	done := make([]bool, len(records))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for n, r := range records {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			done[n] = i.record(ctx, r)
		})
	}
	all.Wait()
	answer := batchResponse{Failures: []batchFailure{}}
	for n, r := range records {
		if !done[n] {
			answer.Failures = append(answer.Failures, batchFailure{r.MessageID})
		}
	}
	b, _ := json.Marshal(answer) // strings always marshal
	return b
}

// record reports whether the message is done with.
func (i *Invoker) record(ctx context.Context, r record) (ack bool) {
	m, err := task.ParseMessage(r.Body)
	if err != nil {
		// It goes to the dead letters in its time, where somebody finds it.
		i.logger().ErrorContext(ctx, "lambda: a message of the queue is kept", "message", r.MessageID, "error", err.Error())
		return false
	}
	if ctx.Err() != nil {
		return false // no time is left to begin it
	}
	show := i.visibility(r)
	if show != nil {
		ctx = host.WithVisibility(ctx, show)
	}
	ack, after := i.runTask(ctx, m.ID)
	if ack || show == nil {
		return ack
	}
	if err := show(ctx, after); err != nil {
		i.logger().WarnContext(ctx, "lambda: a message shows again later than it should", "message", r.MessageID, "error", err.Error())
	}
	return false
}

// visibility is that of a record's message; nil if nobody can change it.
func (i *Invoker) visibility(r record) host.Visibility {
	if i.tasks.visibility == nil {
		return nil
	}
	return func(ctx context.Context, d time.Duration) error {
		return i.tasks.visibility(ctx, r.QueueARN, r.Receipt, d)
	}
}

// afterBreak is when a message shows again whose task could not be looked at.
const afterBreak = time.Minute

// runTask calls the app. A panic keeps the message, as the death of the process would.
func (i *Invoker) runTask(ctx context.Context, id string) (ack bool, after time.Duration) {
	after = afterBreak
	defer i.survive(ctx, "a task")
	return i.tasks.run(ctx, id)
}

var errBroken = errors.New("the sweep panicked")

func (i *Invoker) sweep(ctx context.Context) (err error) {
	err = errBroken
	defer i.survive(ctx, "the sweep")
	return i.tasks.sweep(ctx)
}

// survive keeps a panic from ending the runtime loop. It is deferred.
func (i *Invoker) survive(ctx context.Context, what string) {
	if v := recover(); v != nil {
		i.logger().LogAttrs(ctx, slog.LevelError, "lambda: "+what+" panicked", slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
	}
}
