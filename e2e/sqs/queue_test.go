// Package sqs has tasks worked on through a queue: messages that leave the process, a worker
// that is a Lambda function, and what SQS does between them.
package sqs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// queue is a queue of a test's own.
type queue struct {
	client   *sqs.Client
	url, arn string
}

var queues atomic.Int64

// newQueue makes a queue as the documentation of sqsdispatch wants it. Messages that were
// received most times go to dead, which may be nil.
func newQueue(t testing.TB, cfg aws.Config, dead *queue, most int) *queue {
	t.Helper()
	name := fmt.Sprintf("tasks-%d", queues.Add(1))
	attributes := map[string]string{"VisibilityTimeout": "960", "MessageRetentionPeriod": "1209600"}
	if dead != nil {
		attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, dead.arn, most)
	}
	q := &queue{client: sqs.NewFromConfig(cfg)}
	made, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	q.url = *made.QueueUrl
	has, err := q.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		t.Fatal(err)
	}
	q.arn = has.Attributes["QueueArn"]
	return q
}

// receive is up to ten messages, for which it waits so many seconds.
func (q *queue) receive(ctx context.Context, seconds int32) ([]types.Message, error) {
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, WaitTimeSeconds: seconds, MaxNumberOfMessages: 10})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// must is receive in a test, which wants so many messages.
func (q *queue) must(t *testing.T, want int, seconds int32) []types.Message {
	t.Helper()
	messages, err := q.receive(t.Context(), seconds)
	if err != nil || len(messages) != want {
		t.Fatalf("received %d messages, %v; want %d", len(messages), err, want)
	}
	return messages
}

// event is what Lambda makes of messages for the function.
func (q *queue) event(messages []types.Message) ([]byte, error) {
	var e events.SQSEvent
	for _, m := range messages {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			EventSource: "aws:sqs", EventSourceARN: q.arn, AWSRegion: "eu-central-1",
		})
	}
	return json.Marshal(e)
}

// invocation hands an event to the function.
type invocation func(ctx context.Context, event []byte) (answer []byte, err error)

// hand hands messages over and returns the ids of those that are to be kept.
func (q *queue) hand(ctx context.Context, messages []types.Message, invoke invocation) (kept []string, err error) {
	event, err := q.event(messages)
	if err != nil {
		return nil, err
	}
	answer, err := invoke(ctx, event)
	if err != nil {
		return nil, err
	}
	var response events.SQSEventResponse
	if err := json.Unmarshal(answer, &response); err != nil || response.BatchItemFailures == nil {
		return nil, fmt.Errorf("the function answers %s (%v)", answer, err)
	}
	for _, f := range response.BatchItemFailures {
		kept = append(kept, f.ItemIdentifier)
	}
	return kept, nil
}

// deliver is what an event source mapping does that reports batch item failures: it hands the
// messages over and deletes those that are not to be kept.
func (q *queue) deliver(ctx context.Context, messages []types.Message, invoke invocation) (kept []string, err error) {
	if kept, err = q.hand(ctx, messages, invoke); err != nil {
		return nil, err
	}
	for _, m := range messages {
		if slices.Contains(kept, *m.MessageId) {
			continue
		}
		if _, err := q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return nil, err
		}
	}
	return kept, nil
}
