// Package sqsdispatch tells workers of tasks through an Amazon SQS queue, and keeps the
// messages that they work on out of others' sight.
//
// The queue is a standard one: visibility timeout 960 s, retention 14 days, a dead-letter
// queue after 100 receives. Its event source mapping has batch size 1 and reports batch item
// failures; without that report Lambda deletes what a worker wanted to keep. Who sends needs
// sqs:SendMessage, a worker also sqs:ChangeMessageVisibility.
package sqsdispatch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/thaw-mcp/thaw/internal/awsconfig"
	"github.com/thaw-mcp/thaw/task"
)

// sendTime is what a message gets to be sent, the client's own tries included: a request
// waits for it, and the sweep finds what was not sent.
const sendTime = 5 * time.Second

// Scheme opens sqs:URL with the credentials of the process. It calls nobody.
func Scheme() task.DispatchScheme {
	return task.DispatchScheme{
		Name:  "sqs",
		Usage: "sqs:URL of a standard SQS queue",
		Open: func(ctx context.Context, queueURL string) (task.Dispatcher, error) {
			region, err := parse(queueURL)
			if err != nil {
				return nil, err
			}
			cfg, err := awsconfig.Load(ctx)
			if err != nil {
				return nil, fmt.Errorf("AWS configuration: %w", err)
			}
			return newDispatcher(cfg, queueURL, region), nil
		},
	}
}

// Dispatcher sends to one queue. It is safe for concurrent use.
type Dispatcher struct {
	client *sqs.Client
	queue  string // its URL
}

var _ task.Dispatcher = (*Dispatcher)(nil)

// New returns the Dispatcher of the queue with this URL. Where the URL names a region, that
// is the client's, whatever cfg says. It does no I/O.
func New(cfg aws.Config, queueURL string) (*Dispatcher, error) {
	region, err := parse(queueURL)
	if err != nil {
		return nil, err
	}
	return newDispatcher(cfg, queueURL, region), nil
}

func newDispatcher(cfg aws.Config, queueURL, region string) *Dispatcher {
	return &Dispatcher{queue: queueURL, client: sqs.NewFromConfig(cfg, inRegion(region))}
}

func inRegion(region string) func(*sqs.Options) {
	return func(o *sqs.Options) {
		if region != "" {
			o.Region = region
		}
	}
}

const form = "https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"

// parse checks the URL of a queue and returns the region that it names, if any: an emulator's
// names none.
func parse(queueURL string) (region string, err error) {
	u, err := url.Parse(queueURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		strings.Count(strings.Trim(u.Path, "/"), "/") != 1 {
		return "", errors.New("no URL of an SQS queue; allowed is " + form)
	}
	if strings.HasSuffix(u.Path, ".fifo") {
		return "", errors.New("a FIFO queue delays no message of its own; allowed is a standard queue")
	}
	if rest, ok := strings.CutPrefix(u.Hostname(), "sqs."); ok {
		if name, domain, ok := strings.Cut(rest, "."); ok && strings.HasPrefix(domain, "amazonaws.") {
			region = name
		}
	}
	return region, nil
}

// Dispatch implements task.Dispatcher by one SendMessage. Delays are whole seconds, rounded
// up, and at most task.MaxDelay.
func (d *Dispatcher) Dispatch(ctx context.Context, id string, after time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	body := task.Message{ID: id}.Text()
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &d.queue, MessageBody: &body, DelaySeconds: seconds(min(after, task.MaxDelay)),
	})
	if err != nil {
		return failure("sqs:SendMessage", err)
	}
	return nil
}

// seconds rounds up: a message that shows early is kept and shows again, for nothing.
func seconds(d time.Duration) int32 {
	return int32((max(d, 0) + time.Second - 1) / time.Second)
}

// failure says what was asked and what came back, and whether asking again can help.
func failure(what string, err error) error {
	text := err.Error()
	var answer smithy.APIError
	if errors.As(err, &answer) {
		text = answer.ErrorCode() + ": " + answer.ErrorMessage()
		if lasting[answer.ErrorCode()] {
			return fmt.Errorf("%w: %s: %s", task.ErrUndeliverable, what, text)
		}
	}
	return fmt.Errorf("%s: %s", what, text)
}

// lasting are the answers that stay what they are until someone changes the queue, its key,
// the policy or the settings.
var lasting = map[string]bool{
	"AccessDenied":                                true,
	"AccessDeniedException":                       true,
	"QueueDoesNotExist":                           true,
	"AWS.SimpleQueueService.NonExistentQueue":     true, // the name that the same error had
	"InvalidAddress":                              true,
	"InvalidSecurity":                             true,
	"UnsupportedOperation":                        true,
	"AWS.SimpleQueueService.UnsupportedOperation": true,
	"KmsAccessDenied":                             true,
	"KMS.AccessDeniedException":                   true,
	"KmsNotFound":                                 true,
	"KMS.NotFoundException":                       true,
}
