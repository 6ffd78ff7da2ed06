// Package sqs has tasks worked on through a queue: messages that leave the process, a worker
// that is a Lambda function, and what SQS does between them.
package sqs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/e2e/internal/emulator"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
	"github.com/thaw-mcp/thaw/e2e/internal/queue"
)

// deployment is the conformance fixture as it is deployed: an api and a worker, which is a
// function, two processes that share nothing but a table and a queue.
type deployment struct {
	*client
	queue  *queue.Queue
	worker *emulator.Function
}

func deploy(t *testing.T) *deployment {
	t.Helper()
	s := ministack.Start(t)
	const table = "tasks"
	if _, err := dynamodb.NewFromConfig(s.Config()).CreateTable(t.Context(), dynamostore.Table(table)); err != nil {
		t.Fatal(err)
	}
	q := queue.New(t, s.Config(), nil, 0)
	program := fixture.Build(t)
	env := append(s.Env(), "THAW_AUTH=none", "THAW_STATE_KEY=none", "THAW_STORE=dynamodb:"+table, "THAW_DISPATCH=sqs:"+q.URL)
	worker := emulator.Start(t, program, append(slices.Clone(env), "THAW_ROLE=worker", "AWS_LAMBDA_FUNCTION_TIMEOUT=120")...)
	url := fixture.ServeIn(t, t.TempDir(), program, append(slices.Clone(env), "THAW_ROLE=api")...)
	return &deployment{&client{url}, q, worker}
}

// poll is the event source mapping, with batch size 1, until the returned function is called,
// which says how many messages it delivered.
func (d *deployment) poll(t *testing.T) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	delivered := 0
	var polling sync.WaitGroup
	polling.Go(func() {
		for ctx.Err() == nil {
			messages, err := d.queue.Receive(ctx, 10, 1)
			if err != nil && ctx.Err() == nil {
				t.Errorf("receive: %v", err)
				return
			}
			for m := range slices.Chunk(messages, 1) {
				if _, err := d.queue.Deliver(ctx, m, d.worker.Invoke); err != nil && ctx.Err() == nil {
					t.Errorf("deliver: %v", err)
					return
				}
				delivered++
			}
		}
	})
	t.Cleanup(func() { cancel(); polling.Wait() })
	return func() int { cancel(); polling.Wait(); return delivered }
}

// Tasks that sleep, ask and fail are worked on by messages alone.
func TestTasksThroughTheQueue(t *testing.T) {
	d := deploy(t)
	stop := d.poll(t)

	slow := d.create(t, "slow_compute", map[string]any{"seconds": 2, "label": "x"})
	asking := d.create(t, "confirm_delete", map[string]any{"filename": "a.txt"})
	fails := d.create(t, "protocol_error_job", map[string]any{})

	if r := d.await(t, asking, "input_required"); r.InputRequests["confirm"] == nil {
		t.Errorf("%+v", r)
	}
	d.ask(t, "tasks/update", asking, map[string]any{"taskId": asking, "inputResponses": map[string]any{
		"confirm": map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}}})
	if r := d.await(t, asking, "completed"); r.text() != "a.txt: deletion confirmed true" {
		t.Errorf("%+v", r)
	}
	if r := d.await(t, slow, "completed"); r.text() != "computed x in 2 s" {
		t.Errorf("%+v", r)
	}
	d.await(t, fails, "failed")
	// One for each create, one for the sleep, one for the answer; a poll may have healed a
	// slow one.
	if n := stop(); n < 5 || n > 10 {
		t.Errorf("%d messages", n)
	}
}

// Of a batch, what is done with goes and the rest stays: the message of a task that sleeps,
// which shows again when that is due and not after the queue's 16 minutes, and one that is not
// ours. A message that comes twice changes nothing.
func TestPartOfABatch(t *testing.T) {
	d := deploy(t)
	asking := d.create(t, "confirm_delete", map[string]any{"filename": "a.txt"})
	first := d.queue.Must(t, 1, 5)
	slow := d.create(t, "slow_compute", map[string]any{"seconds": 15, "label": "y"})
	second := d.queue.Must(t, 1, 5)
	if _, err := d.queue.Deliver(t.Context(), second, d.worker.Invoke); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"hunter2", *second[0].Body} {
		if _, err := d.queue.Client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &d.queue.URL, MessageBody: &body}); err != nil {
			t.Fatal(err)
		}
	}
	others := d.queue.Must(t, 2, 5)
	kept, err := d.queue.Deliver(t.Context(), slices.Concat(first, others), d.worker.Invoke)
	want := []string{*others[0].MessageId, *others[1].MessageId}
	slices.Sort(kept)
	slices.Sort(want)
	if err != nil || !slices.Equal(kept, want) {
		t.Fatalf("kept %q, %v; want %q", kept, err, want)
	}
	if kept, err := d.queue.Hand(t.Context(), first, d.worker.Invoke); err != nil || len(kept) > 0 {
		t.Errorf("the same message once more: kept %q, %v", kept, err)
	}
	if s := d.get(t, asking); s.Status != "input_required" {
		t.Errorf("%+v", s)
	}
	if s := d.get(t, slow); s.Status != "working" {
		t.Errorf("%+v", s)
	}
	// What comes now is the message that waited with the task, and the one that was kept.
	shown := map[string]bool{}
	for len(shown) < 2 {
		messages, err := d.queue.Receive(t.Context(), 10, 20)
		if err != nil || len(messages) == 0 {
			t.Fatalf("shown are %v, and then %d messages, %v", shown, len(messages), err)
		}
		for m := range slices.Chunk(messages, 1) { // at once one would meet the other's lease
			shown[*m[0].MessageId] = true
			if kept, err := d.queue.Deliver(t.Context(), m, d.worker.Invoke); err != nil || len(kept) > 0 {
				t.Errorf("kept %q, %v", kept, err)
			}
		}
	}
	if !shown[kept[0]] && !shown[kept[1]] {
		t.Errorf("shown are %v, none of which was kept: %q", shown, kept)
	}
	if s := d.get(t, slow); s.Status != "completed" || s.text() != "computed y in 15 s" {
		t.Errorf("%+v", s)
	}
}

// A message that was lost is made up for by the schedule.
func TestScheduledSweep(t *testing.T) {
	d := deploy(t)
	id := d.create(t, "slow_compute", map[string]any{"seconds": 0})
	lost := d.queue.Must(t, 1, 5)
	if _, err := d.queue.Client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &d.queue.URL, ReceiptHandle: lost[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	schedule, err := json.Marshal(events.EventBridgeEvent{Version: "0", ID: "x", DetailType: "Scheduled Event", Source: "aws.scheduler", Detail: json.RawMessage(`"{}"`)})
	if err != nil {
		t.Fatal(err)
	}
	// A message has half a minute to have an effect before another is sent.
	for range 15 {
		if answer, err := d.worker.Invoke(t.Context(), schedule); err != nil || string(answer) != "{}" {
			t.Fatalf("%s, %v", answer, err)
		}
		messages, err := d.queue.Receive(t.Context(), 10, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			continue
		}
		if *messages[0].Body != *lost[0].Body {
			t.Errorf("%s, want %s", *messages[0].Body, *lost[0].Body)
		}
		if _, err := d.queue.Deliver(t.Context(), messages, d.worker.Invoke); err != nil {
			t.Fatal(err)
		}
		if s := d.get(t, id); s.Status != "completed" {
			t.Errorf("%+v", s)
		}
		return
	}
	t.Error("no sweep sent the message again")
}

// A worker serves nothing over HTTP but that it lives.
func TestWorkerOverHTTP(t *testing.T) {
	d := deploy(t)
	answer, err := d.worker.Invoke(t.Context(), []byte(`{"version":"2.0","rawPath":"/mcp","headers":{"content-type":"application/json"},"requestContext":{"http":{"method":"POST","path":"/mcp"}},"body":"{}"}`))
	if err != nil || !strings.Contains(string(answer), `"statusCode":404`) {
		t.Errorf("%s, %v", answer, err)
	}
	answer, err = d.worker.Invoke(t.Context(), []byte(`{"version":"2.0","rawPath":"/health","requestContext":{"http":{"method":"GET","path":"/health"}}}`))
	if err != nil || !strings.Contains(string(answer), `"statusCode":200`) {
		t.Errorf("%s, %v", answer, err)
	}
}
