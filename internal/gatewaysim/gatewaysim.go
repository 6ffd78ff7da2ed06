// Package gatewaysim is the front doors of a Lambda function without a cloud, for tests: each is
// an http.Handler that makes the event of its kind of a request, invokes a function with it, and
// makes the response of what the function answers, by the rules and with the limits that AWS
// documents. Where the documentation is silent the comments say what was seen in the field.
//
// What is not simulated: authorizers, CORS settings, routes and models (every path leads to the
// function), custom domains but for a REST API's base path, compression, caches, access logs, and
// rates.
package gatewaysim

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// Lambda is what doors invoke: a *lambdasim.Function, or Buffered.
type Lambda interface {
	Invoke(ctx context.Context, event []byte) ([]byte, error)
	InvokeStream(ctx context.Context, event []byte) (*lambdasim.Stream, error)
}

// Buffered is a function that can be invoked in the buffered way only.
type Buffered func(ctx context.Context, event []byte) ([]byte, error)

// Invoke implements Lambda.
func (f Buffered) Invoke(ctx context.Context, event []byte) ([]byte, error) { return f(ctx, event) }

// InvokeStream implements Lambda.
func (f Buffered) InvokeStream(context.Context, []byte) (*lambdasim.Stream, error) {
	return nil, errors.New("this function cannot be invoked with a stream")
}

// failure is a response that a door gives itself.
type failure struct {
	status int
	body   string
	kind   string // its content type
}

func (f failure) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", f.kind)
	w.WriteHeader(f.status)
	_, _ = io.WriteString(w, f.body)
}

// message is a failure in the form of API Gateway.
func message(status int, text string) failure {
	return failure{status, `{"message": "` + text + `"}`, "application/json"}
}

// readBody reads a request's body up to the door's limit.
func readBody(r *http.Request, limit int64) (body []byte, tooLarge bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r.Body, limit+1))
	return body, int64(len(body)) > limit, err
}
