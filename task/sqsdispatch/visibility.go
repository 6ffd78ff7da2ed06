package sqsdispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/thaw-mcp/thaw/internal/awsconfig"
)

// maxVisibility is the longest that a message is hidden at once.
const maxVisibility = 12 * time.Hour

// Visibility changes for how long received messages stay hidden. Its zero value has the
// credentials of the process, which it reads at first use. It is safe for concurrent use.
type Visibility struct {
	load   func(context.Context) (aws.Config, error) // nil: awsconfig.Load
	mu     sync.Mutex
	client *sqs.Client
}

// NewVisibility returns a Visibility with this configuration. It does no I/O.
func NewVisibility(cfg aws.Config) *Visibility {
	return &Visibility{load: func(context.Context) (aws.Config, error) { return cfg, nil }}
}

// Change shows the received message with this receipt to others after d from now, and not
// before: in whole seconds, rounded up, and at most 12 hours. The queue is named by its ARN,
// as events name it.
func (v *Visibility) Change(ctx context.Context, queueARN, receipt string, d time.Duration) error {
	a, err := arn.Parse(queueARN)
	if err != nil || a.Service != "sqs" || a.Region == "" || a.AccountID == "" || a.Resource == "" {
		return errors.New("sqs:ChangeMessageVisibility: no ARN of an SQS queue")
	}
	client, err := v.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	queue := urlOf(a)
	_, err = client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &queue, ReceiptHandle: &receipt, VisibilityTimeout: seconds(min(d, maxVisibility)),
	}, inRegion(a.Region))
	if err != nil {
		return failure("sqs:ChangeMessageVisibility", err)
	}
	return nil
}

func (v *Visibility) open(ctx context.Context) (*sqs.Client, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.client != nil {
		return v.client, nil
	}
	load := v.load
	if load == nil {
		load = awsconfig.Load
	}
	cfg, err := load(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	v.client = sqs.NewFromConfig(cfg)
	return v.client, nil
}

// urlOf is the URL of a queue, of which the service reads the path: where a request goes is
// decided by the client's region and endpoint.
func urlOf(a arn.ARN) string {
	domain := "amazonaws.com"
	if a.Partition == "aws-cn" {
		domain += ".cn"
	}
	return "https://sqs." + a.Region + "." + domain + "/" + a.AccountID + "/" + a.Resource
}
