package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

const (
	defaultAttempt = 5 * time.Second
	attempts       = 4
	// firstPause doubles from try to try; each is somewhere between none of it and all.
	firstPause = 50 * time.Millisecond
)

// send makes a request, again while its failure may pass. doubt tells that a try before the
// last may have been applied although it failed: then a condition that fails may have been
// made to fail by this very request. The SDK's own retries would not tell.
func (s *Store) send(ctx context.Context, request func(context.Context) error) (doubt bool, err error) {
	for try := 1; ; try++ {
		err := s.once(ctx, request)
		if err == nil || ctx.Err() != nil || try == attempts || !mayPass(err) {
			return doubt, err
		}
		doubt = doubt || !refused(err)
		select {
		case <-time.After(rand.N(firstPause << (try - 1))):
		case <-ctx.Done():
			return doubt, ctx.Err()
		}
	}
}

func (s *Store) once(ctx context.Context, request func(context.Context) error) error {
	attempt, cancel := context.WithTimeout(ctx, s.attempt)
	defer cancel()
	err := request(attempt)
	if err != nil && attempt.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v", s.attempt) // and not a deadline of the caller's
	}
	return err
}

var retryable = retry.IsErrorRetryables(retry.DefaultRetryables)

// mayPass reports whether the same request may succeed later: if DynamoDB did not answer, or
// not in a way that can be read, or told the sender to come back.
func mayPass(err error) bool {
	return !refused(err) || retryable.IsErrorRetryable(err) == aws.TrueTernary
}

// refused reports whether DynamoDB, or what stands before it, did not do what it was asked.
func refused(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	return errors.As(err, &answer) && answer.HTTPStatusCode()/100 == http.StatusBadRequest/100
}

// unmet is the item that did not meet a condition, if err is that. Some that speak DynamoDB's
// protocol leave the item out.
func unmet(err error) (old item, unmet bool) {
	var failed *types.ConditionalCheckFailedException
	if !errors.As(err, &failed) {
		return nil, false
	}
	return failed.Item, true
}

// failed is the error of a request for who called the Store. It keeps the text of err and not
// err itself, but for the end of the caller's own context.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("dynamostore: %s: %w", what, ended)
	}
	text := err.Error()
	var answer smithy.APIError
	if errors.As(err, &answer) {
		text = answer.ErrorCode()
		if text != signatureMismatch {
			text += ": " + answer.ErrorMessage()
		}
	}
	return fmt.Errorf("dynamostore: %s in table %s: %s", what, s.table, text)
}

// signatureMismatch is an answer whose message repeats the request, with the session token in
// its headers.
const signatureMismatch = "InvalidSignatureException"
