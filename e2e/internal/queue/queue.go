// Package queue has queues of SQS, and stands in for what Lambda puts between a queue and a
// function.
package queue

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

// Queue is a queue of a test's own.
type Queue struct {
	Client   *sqs.Client
	URL, ARN string
}

var queues atomic.Int64

// New makes a queue as the documentation of sqsdispatch wants it. Messages that were
// received most times go to dead, which may be nil.
func New(t testing.TB, cfg aws.Config, dead *Queue, most int) *Queue {
	t.Helper()
	name := fmt.Sprintf("tasks-%d", queues.Add(1))
	attributes := map[string]string{"VisibilityTimeout": "960", "MessageRetentionPeriod": "1209600"}
	if dead != nil {
		attributes["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, dead.ARN, most)
	}
	q := &Queue{Client: sqs.NewFromConfig(cfg)}
	made, err := q.Client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	q.URL = *made.QueueUrl
	has, err := q.Client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &q.URL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		t.Fatal(err)
	}
	q.ARN = has.Attributes["QueueArn"]
	return q
}

// Receive is some messages, ten at most, for which it waits so many seconds.
func (q *Queue) Receive(ctx context.Context, most, seconds int32) ([]types.Message, error) {
	out, err := q.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.URL, WaitTimeSeconds: seconds, MaxNumberOfMessages: most})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// Must is Receive in a test, which wants so many messages.
func (q *Queue) Must(t testing.TB, want int, seconds int32) []types.Message {
	t.Helper()
	messages, err := q.Receive(t.Context(), 10, seconds)
	if err != nil || len(messages) != want {
		t.Fatalf("received %d messages, %v; want %d", len(messages), err, want)
	}
	return messages
}

// event is what Lambda makes of messages for the function.
func (q *Queue) event(messages []types.Message) ([]byte, error) {
	var e events.SQSEvent
	for _, m := range messages {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: *m.MessageId, ReceiptHandle: *m.ReceiptHandle, Body: *m.Body, Attributes: m.Attributes,
			EventSource: "aws:sqs", EventSourceARN: q.ARN, AWSRegion: "eu-central-1",
		})
	}
	return json.Marshal(e)
}

// Invocation hands an event to the function.
type Invocation func(ctx context.Context, event []byte) (answer []byte, err error)

// Hand hands messages over and returns the ids of those that are to be kept.
func (q *Queue) Hand(ctx context.Context, messages []types.Message, invoke Invocation) (kept []string, err error) {
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

// Deliver is what an event source mapping does that reports batch item failures: it hands the
// messages over and deletes those that are not to be kept.
func (q *Queue) Deliver(ctx context.Context, messages []types.Message, invoke Invocation) (kept []string, err error) {
	if kept, err = q.Hand(ctx, messages, invoke); err != nil {
		return nil, err
	}
	for _, m := range messages {
		if slices.Contains(kept, *m.MessageId) {
			continue
		}
		if _, err := q.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &q.URL, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return nil, err
		}
	}
	return kept, nil
}
