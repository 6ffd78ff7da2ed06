package dynamostore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// answered is an error as the SDK makes it of an answer.
func answered(status int, err error) error {
	return &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "UpdateItem", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
	}}
}

func code(status int, code string) error {
	return answered(status, &smithy.GenericAPIError{Code: code, Message: "because of the weather"})
}

var (
	throttled = code(400, "ThrottlingException")
	broken    = code(500, "InternalServerError")
	condition = answered(400, &types.ConditionalCheckFailedException{})
)

// errSilence is a request that DynamoDB does not answer.
var errSilence = errors.New("errSilence")

func TestSend(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []error // the last one again and again
		tries   int
		doubt   bool
		want    error
		most    time.Duration
	}{
		{"answered", []error{nil}, 1, false, nil, 0},
		{"throttled once", []error{throttled, nil}, 2, false, nil, 50 * time.Millisecond},
		{"throttled three times", []error{throttled, throttled, throttled, nil}, 4, false, nil, 350 * time.Millisecond},
		{"throttled", []error{throttled}, 4, false, throttled, 350 * time.Millisecond},
		{"throttled, then a condition failed", []error{throttled, condition}, 2, false, condition, 50 * time.Millisecond},
		{"a provisioned table", []error{code(400, "ProvisionedThroughputExceededException"), nil}, 2, false, nil, 50 * time.Millisecond},
		{"a limit of the account", []error{code(400, "RequestLimitExceeded"), nil}, 2, false, nil, 50 * time.Millisecond},
		{"failed once", []error{broken, nil}, 2, true, nil, 50 * time.Millisecond},
		{"failed", []error{broken}, 4, true, broken, 350 * time.Millisecond},
		{"failed, then a condition failed", []error{broken, condition}, 2, true, condition, 50 * time.Millisecond},
		{"503 of a proxy", []error{answered(503, errors.New("not JSON")), nil}, 2, true, nil, 50 * time.Millisecond},
		{"half an answer", []error{answered(200, &smithy.DeserializationError{Err: io.ErrUnexpectedEOF}), nil}, 2, true, nil, 50 * time.Millisecond},
		{"connection reset", []error{&smithyhttp.RequestSendError{Err: io.EOF}, nil}, 2, true, nil, 50 * time.Millisecond},
		{"nobody answers at first", []error{errSilence, nil}, 2, true, nil, 5*time.Second + 50*time.Millisecond},
		{"nobody answers", []error{errSilence}, 4, true, errSilence, 20*time.Second + 350*time.Millisecond},
		{"a condition failed", []error{condition}, 1, false, condition, 0},
		{"denied", []error{code(400, "AccessDeniedException")}, 1, false, code(400, "AccessDeniedException"), 0},
		{"no such table", []error{answered(400, &types.ResourceNotFoundException{})}, 1, false, answered(400, &types.ResourceNotFoundException{}), 0},
		{"wrong", []error{code(400, "ValidationException")}, 1, false, code(400, "ValidationException"), 0},
		{"403 of a proxy", []error{answered(403, errors.New("not JSON"))}, 1, false, answered(403, errors.New("not JSON")), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began, tries := &Store{table: "tasks", attempt: defaultAttempt}, time.Now(), 0
				doubt, err := s.send(t.Context(), func(ctx context.Context) error {
					answer := c.answers[min(tries, len(c.answers)-1)]
					tries++
					if answer == errSilence {
						<-ctx.Done()
						return &smithy.CanceledError{Err: ctx.Err()}
					}
					return answer
				})
				if tries != c.tries || doubt != c.doubt {
					t.Errorf("%d tries, doubt %t; want %d, %t", tries, doubt, c.tries, c.doubt)
				}
				switch {
				case c.want == errSilence:
					if err == nil || err.Error() != "no answer within 5s" {
						t.Errorf("%v, want errSilence", err)
					}
				case c.want == nil || err == nil:
					if c.want != err {
						t.Errorf("%v, want %v", err, c.want)
					}
				case err.Error() != c.want.Error():
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(began); took > c.most {
					t.Errorf("took %v, want %v at most", took, c.most)
				}
			})
		})
	}
}

func TestSendPausesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, took := &Store{attempt: defaultAttempt}, map[time.Duration]bool{}
		for range 20 {
			began := time.Now()
			if _, err := s.send(t.Context(), func(context.Context) error { return throttled }); err != throttled {
				t.Fatal(err)
			}
			took[time.Since(began)] = true
		}
		if len(took) < 10 {
			t.Errorf("20 requests that were throttled took %d different times: they would come back together", len(took))
		}
	})
}

func TestSendEndsWithItsContext(t *testing.T) {
	for _, c := range []struct {
		name  string
		try   func(ctx context.Context) error
		end   time.Duration
		tries int
		want  error
	}{
		{"no answer", func(ctx context.Context) error { <-ctx.Done(); return &smithy.CanceledError{Err: ctx.Err()} }, time.Second, 1, context.DeadlineExceeded},
		{"no answer, the second time", func(ctx context.Context) error { <-ctx.Done(); return &smithy.CanceledError{Err: ctx.Err()} }, 7 * time.Second, 2, context.DeadlineExceeded},
		{"in a pause", func(context.Context) error { return throttled }, time.Nanosecond, 1, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.end)
				defer cancel()
				s, began, tries := &Store{table: "tasks", attempt: defaultAttempt}, time.Now(), 0
				_, err := s.send(ctx, func(ctx context.Context) error { tries++; return c.try(ctx) })
				if tries != c.tries || !errors.Is(err, c.want) || !errors.Is(s.failed(ctx, "commit", err), c.want) || time.Since(began) != c.end {
					t.Errorf("%d tries, %v after %v; want %d, %v", tries, err, time.Since(began), c.tries, c.want)
				}
			})
		})
	}
}

func TestFailed(t *testing.T) {
	const secret = "x-amz-security-token:wJalrXUt"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"an answer", throttled, "dynamostore: commit in table tasks: ThrottlingException: because of the weather"},
		{"no answer", errors.New("no answer within 5s"), "dynamostore: commit in table tasks: no answer within 5s"},
		{"a deadline of somebody else's", &smithy.CanceledError{Err: context.DeadlineExceeded}, "dynamostore: commit in table tasks: canceled, context deadline exceeded"},
		{"an answer that repeats the request", answered(400, &smithy.GenericAPIError{Code: "InvalidSignatureException", Message: "The Canonical String should have been " + secret}),
			"dynamostore: commit in table tasks: InvalidSignatureException"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := (&Store{table: "tasks"}).failed(t.Context(), "commit", c.err)
			if err.Error() != c.want || strings.Contains(err.Error(), "wJalrXUt") {
				t.Errorf("%v, want %s", err, c.want)
			}
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("%v looks like the end of the caller's context", err)
			}
		})
	}
}
