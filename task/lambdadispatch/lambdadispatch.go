// Package lambdadispatch tells workers of tasks by invoking an AWS Lambda function
// asynchronously. There is no queue to run: a message may be lost or doubled, and cannot be
// delayed, so what waits, and what was lost, is found by the sweep alone, which a schedule has
// to trigger, each minute. Set the function's MaximumRetryAttempts to 0, and its recursive
// loop detection to Allow where it continues its own tasks. Who sends needs
// lambda:InvokeFunction.
package lambdadispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"

	"github.com/thaw-mcp/thaw/internal/awsconfig"
	"github.com/thaw-mcp/thaw/task"
)

// sendTime is what a message gets to be sent, the client's own tries included.
const sendTime = 5 * time.Second

// Scheme opens lambda:FUNCTION with the credentials of the process. It calls nobody.
func Scheme() task.DispatchScheme {
	return task.DispatchScheme{
		Name:  "lambda",
		Usage: "lambda:FUNCTION, a name or an ARN, invoked asynchronously; what waits is found by a scheduled sweep",
		Open: func(ctx context.Context, function string) (task.Dispatcher, error) {
			region, err := parse(function)
			if err != nil {
				return nil, err
			}
			cfg, err := awsconfig.Load(ctx)
			if err != nil {
				return nil, fmt.Errorf("AWS configuration: %w", err)
			}
			return newDispatcher(cfg, function, region), nil
		},
	}
}

// Dispatcher invokes one function. It is safe for concurrent use.
type Dispatcher struct {
	client   *lambda.Client
	function string
}

var _ task.Dispatcher = (*Dispatcher)(nil)

// New returns the Dispatcher of a function: NAME, NAME:ALIAS, or an ARN of either, whose
// region is then the client's, whatever cfg says. It does no I/O.
func New(cfg aws.Config, function string) (*Dispatcher, error) {
	region, err := parse(function)
	if err != nil {
		return nil, err
	}
	return newDispatcher(cfg, function, region), nil
}

func newDispatcher(cfg aws.Config, function, region string) *Dispatcher {
	return &Dispatcher{function: function, client: lambda.NewFromConfig(cfg, func(o *lambda.Options) {
		if region != "" {
			o.Region = region
		}
	})}
}

// isFunction says whether text is NAME or NAME:ALIAS. A regular expression with these
// bounds is compiled at every cold start, for 0.4 ms.
func isFunction(text string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	name, alias, aliased := strings.Cut(text, ":")
	return 1 <= len(name) && len(name) <= 64 && strings.Trim(name, allowed) == "" &&
		(!aliased || 1 <= len(alias) && len(alias) <= 128 && strings.Trim(alias, allowed) == "")
}

// parse checks what names a function and returns the region that it names, if any.
func parse(function string) (region string, err error) {
	if isFunction(function) {
		return "", nil
	}
	a, err := arn.Parse(function)
	name, ok := strings.CutPrefix(a.Resource, "function:")
	if err != nil || a.Service != "lambda" || a.Region == "" || a.AccountID == "" || !ok || !isFunction(name) {
		return "", errors.New("no function; allowed are NAME, NAME:ALIAS and arn:aws:lambda:REGION:ACCOUNT:function:NAME[:ALIAS]")
	}
	return a.Region, nil
}

// Dispatch implements task.Dispatcher by one asynchronous invocation. A message to be delayed
// is not sent: the sweep finds its task when it is due.
func (d *Dispatcher) Dispatch(ctx context.Context, id string, after time.Duration) error {
	if after > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	_, err := d.client.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &d.function, InvocationType: types.InvocationTypeEvent, Payload: []byte(task.Message{ID: id}.Text()),
	})
	if err != nil {
		return failure(err)
	}
	return nil
}

// failure says what came back, and whether asking again can help.
func failure(err error) error {
	text := err.Error()
	var answer smithy.APIError
	if errors.As(err, &answer) {
		text = answer.ErrorCode() + ": " + answer.ErrorMessage()
		if lasting[answer.ErrorCode()] {
			return fmt.Errorf("%w: lambda:Invoke: %s", task.ErrUndeliverable, text)
		}
	}
	return fmt.Errorf("lambda:Invoke: %s", text)
}

// lasting are the answers that stay what they are until someone changes the function, the
// policy or the settings.
var lasting = map[string]bool{
	"AccessDenied":                   true,
	"AccessDeniedException":          true,
	"ResourceNotFoundException":      true,
	"InvalidParameterValueException": true,
}
