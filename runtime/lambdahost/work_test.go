package lambdahost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
)

// worker is an app that works on tasks: what becomes of one is in its id.
type worker struct {
	mu      sync.Mutex
	ran     []string
	swept   int
	failing error
	shown   map[string]time.Duration // by receipt
	log     bytes.Buffer
}

func (w *worker) invoker() *Invoker {
	w.shown = map[string]time.Duration{}
	return InvokerOf(host.App{
		HTTP: http.NotFoundHandler(), RunTask: w.run, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Sweep: func(context.Context) error {
			if w.swept++; w.swept == 3 {
				panic("at the third")
			}
			return w.failing
		},
	}, &Options{Visibility: func(_ context.Context, queueARN, receipt string, d time.Duration) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.shown[receipt+" of "+queueARN] = d
		return w.failing
	}})
}

func (w *worker) run(ctx context.Context, id string) (ack bool, after time.Duration) {
	w.mu.Lock()
	w.ran = append(w.ran, id)
	w.mu.Unlock()
	switch id {
	case "busy":
		return false, 40 * time.Second
	case "panics":
		panic("a panic")
	case "exits":
		runtime.Goexit()
	case "leaks":
		host.Leaked(ctx)
		return false, 30 * time.Second
	case "long":
		if err := host.VisibilityFrom(ctx)(ctx, 70*time.Second); err != nil {
			return false, 0
		}
	}
	return true, 0
}

const queueARN = "arn:aws:sqs:eu-west-1:111122223333:tasks"

// sqsEvent is an event of AWS's own type.
func sqsEvent(t testing.TB, bodies ...string) []byte {
	t.Helper()
	var e events.SQSEvent
	for i, body := range bodies {
		n := string(rune('a' + i))
		e.Records = append(e.Records, events.SQSMessage{MessageId: "m-" + n, ReceiptHandle: "r-" + n, Body: body, EventSource: "aws:sqs", EventSourceARN: queueARN, AWSRegion: "eu-west-1"})
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func body(id string) string { return task.Message{ID: id}.Text() }

// Each record is judged on its own, and those to be kept are named (tasks rule 4).
func TestRecords(t *testing.T) {
	for _, c := range []struct {
		name   string
		bodies []string
		kept   []string
		shown  map[string]time.Duration
	}{
		{"done", []string{body("done")}, nil, nil},
		{"kept until it is due", []string{body("busy")}, []string{"m-a"}, map[string]time.Duration{"r-a": 40 * time.Second}},
		{"hidden while it is worked on", []string{body("long")}, nil, map[string]time.Duration{"r-a": 70 * time.Second}},
		{"a panic", []string{body("panics")}, []string{"m-a"}, map[string]time.Duration{"r-a": time.Minute}},
		{"a goroutine ended", []string{body("exits")}, []string{"m-a"}, nil},
		{"no message of ours", []string{"hunter2"}, []string{"m-a"}, nil},
		{"some of a batch", []string{body("done"), body("busy"), body("done"), "hunter2"}, []string{"m-b", "m-d"}, map[string]time.Duration{"r-b": 40 * time.Second}},
		{"more than at once", slices.Repeat([]string{body("done")}, 25), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w worker
			answer, err := w.invoker().Invoke(t.Context(), sqsEvent(t, c.bodies...))
			want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
			for _, id := range c.kept {
				want.BatchItemFailures = append(want.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
			}
			text, _ := json.Marshal(want)
			if err != nil || string(answer) != string(text) {
				t.Errorf("%s, %v; want %s", answer, err, text)
			}
			if len(w.shown) != len(c.shown) {
				t.Errorf("shown %v", w.shown)
			}
			for receipt, d := range c.shown {
				if w.shown[receipt+" of "+queueARN] != d {
					t.Errorf("shown %v, want %s after %s", w.shown, receipt, d)
				}
			}
			if strings.Contains(w.log.String(), "hunter2") {
				t.Errorf("a body in the log: %s", w.log.String())
			}
		})
	}
}

// What cannot be hidden stays until the queue's own timeout; what has no time left does not
// begin.
func TestRecordsAtTheEnd(t *testing.T) {
	w := worker{failing: errors.New("denied")}
	answer, err := w.invoker().Invoke(t.Context(), sqsEvent(t, body("busy")))
	if err != nil || string(answer) != `{"batchItemFailures":[{"itemIdentifier":"m-a"}]}` || !strings.Contains(w.log.String(), "denied") {
		t.Errorf("%s, %v, log %s", answer, err, w.log.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w = worker{}
	answer, err = w.invoker().Invoke(ctx, sqsEvent(t, body("done")))
	if err != nil || string(answer) != `{"batchItemFailures":[{"itemIdentifier":"m-a"}]}` || w.ran != nil {
		t.Errorf("%s, %v, ran %q", answer, err, w.ran)
	}
}

// The event that AWS's own module keeps names no task of ours: it is kept.
func TestForeignRecord(t *testing.T) {
	var w worker
	answer, err := w.invoker().Invoke(t.Context(), awsFixtures(t, "events")["sqs-event.json"])
	if err != nil || string(answer) != `{"batchItemFailures":[{"itemIdentifier":"MessageID_1"}]}` || w.ran != nil {
		t.Errorf("%s, %v, ran %q", answer, err, w.ran)
	}
}

func TestSweeps(t *testing.T) {
	w := worker{}
	i := w.invoker()
	for _, source := range []string{"aws.events", "aws.scheduler"} {
		e, err := json.Marshal(events.EventBridgeEvent{Version: "0", ID: "x", DetailType: "Scheduled Event", Source: source, Detail: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		w.failing = nil
		before := w.swept
		if answer, err := i.Invoke(t.Context(), e); err != nil || string(answer) != "{}" || w.swept != before+1 {
			t.Errorf("%s: %s, %v, swept %d", source, answer, err, w.swept)
		}
	}
	schedule := []byte(`{"version":"0","detail-type":"Scheduled Event","source":"aws.scheduler","detail":"{}"}`)
	if answer, err := i.Invoke(t.Context(), schedule); !errors.Is(err, errBroken) || answer != nil {
		t.Errorf("a panic: %s, %v", answer, err)
	}
	w.failing = errors.New("no store")
	if answer, err := i.Invoke(t.Context(), schedule); !errors.Is(err, w.failing) || answer != nil {
		t.Errorf("a failure: %s, %v", answer, err)
	}
}

// An asynchronous invocation is a message without a queue.
func TestDirectMessage(t *testing.T) {
	var w worker
	for _, id := range []string{"done", "busy", "panics"} {
		if answer, err := w.invoker().Invoke(t.Context(), []byte(body(id))); err != nil || string(answer) != "{}" {
			t.Errorf("%s: %s, %v", id, answer, err)
		}
	}
	if !slices.Equal(w.ran, []string{"done", "busy", "panics"}) {
		t.Errorf("ran %q", w.ran)
	}
}

// A handler that cannot be ended fails its invocation, after the last word on each message
// (tasks rule 10).
func TestLeak(t *testing.T) {
	for name, payload := range map[string][]byte{"a record": sqsEvent(t, body("done"), body("leaks")), "a message": []byte(body("leaks"))} {
		var w worker
		i := w.invoker()
		answer, err := i.Invoke(t.Context(), payload)
		var leak *LeakError
		if !errors.As(err, &leak) || answer != nil {
			t.Errorf("%s: %s, %v", name, answer, err)
		}
		if shown := w.shown["r-b of "+queueARN]; name == "a record" && shown != 30*time.Second {
			t.Errorf("shown %v", w.shown)
		}
		if _, err := i.Invoke(t.Context(), []byte(body("done"))); err != nil {
			t.Errorf("%s: the next invocation: %v", name, err)
		}
	}
}

// Everything else stays an unknown event, and so is an event about tasks where nobody works.
func TestNoWork(t *testing.T) {
	var w worker
	for name, payload := range awsFixtures(t, "events") {
		if requestFixtures[name] != nil || name == "sqs-event.json" {
			continue
		}
		if answer, err := w.invoker().Invoke(t.Context(), payload); !isUnknown(err) {
			t.Errorf("%s: %s, %v", name, answer, err)
		}
	}
	for _, payload := range []string{
		`{"Records":[]}`, `{"Records":[{"eventSource":"aws:sqs"}]}`, `{"Records":[{"eventSource":"aws:s3","messageId":"x"}]}`,
		`{"Records":[{"eventSource":"aws:sqs","messageId":"x"},{"eventSource":"aws:s3","messageId":"y"}]}`,
		`{"records":[{"eventSource":"aws:sqs","messageId":"x"}]}`, `{"Records":[{"EventSource":"aws:sqs","messageId":"x"}]}`,
		`{"detail-type":"Scheduled Event","source":"my.app"}`, `{"detail-type":"Object Created","source":"aws.events"}`, `{"type":"thaw.task"}`,
	} {
		if answer, err := w.invoker().Invoke(t.Context(), []byte(payload)); !isUnknown(err) {
			t.Errorf("%s: %s, %v", payload, answer, err)
		}
	}
	if w.ran != nil || w.swept > 0 {
		t.Errorf("ran %q, swept %d", w.ran, w.swept)
	}
	for _, payload := range []string{string(sqsEvent(t, body("x"))), `{"detail-type":"Scheduled Event","source":"aws.events"}`, body("x")} {
		_, err := newTestInvoker(http.NotFoundHandler()).Invoke(t.Context(), []byte(payload))
		if !isUnknown(err) || !strings.Contains(err.Error(), "works on no tasks") {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func isUnknown(err error) bool {
	var unknown *UnknownEventError
	return errors.As(err, &unknown)
}

// FuzzWork: whatever the payload, a program that works on tasks gives an answer that the
// sender can read, fails with a typed error, or runs a task that the payload names.
func FuzzWork(f *testing.F) {
	for _, payload := range awsFixtures(f, "events") {
		f.Add(payload)
	}
	f.Add(sqsEvent(f, body("done"), body("busy"), "x"))
	f.Add([]byte(body("done")))
	f.Add([]byte(`{"detail-type":"Scheduled Event","source":"aws.events"}`))
	f.Add([]byte(`{"Records":[{"eventSource":"aws:sqs","messageId":"x","body":null}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var w worker
		answer, err := w.invoker().Invoke(t.Context(), payload)
		if err != nil {
			if !isUnknown(err) || answer != nil || w.ran != nil {
				t.Errorf("%s, %v, ran %q", answer, err, w.ran)
			}
			return
		}
		if !json.Valid(answer) {
			t.Errorf("no JSON: %q", answer)
		}
		if bytes.HasPrefix(answer, []byte(`{"batchItemFailures":`)) {
			var kept struct {
				BatchItemFailures []struct{ ItemIdentifier string }
			}
			if err := json.Unmarshal(answer, &kept); err != nil || kept.BatchItemFailures == nil {
				t.Errorf("%s: %v", answer, err)
			}
			for _, k := range kept.BatchItemFailures {
				if k.ItemIdentifier == "" {
					t.Errorf("a failure of the whole batch: %s", answer)
				}
			}
		}
	})
}
