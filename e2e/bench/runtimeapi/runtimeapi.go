// Package runtimeapi is the part of the Lambda Runtime API that a cold start and the calls
// after it need: it hands out one event after the other and takes the answers.
package runtimeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/mcpcall"
	"github.com/thaw-mcp/thaw/e2e/bench/process"
)

// patience bounds one start.
const patience = 20 * time.Second

// Event is the request as a Function URL hands it to the function.
func Event() []byte {
	headers := map[string]string{"host": "abc.lambda-url.eu-west-1.on.aws"}
	for name, lines := range mcpcall.Header() {
		headers[lower(name)] = lines[0]
	}
	b, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": "/mcp", "rawQueryString": "",
		"headers": headers,
		"requestContext": map[string]any{
			"accountId": "anonymous", "apiId": "abc", "domainName": "abc.lambda-url.eu-west-1.on.aws", "domainPrefix": "abc",
			"http":      map[string]any{"method": "POST", "path": "/mcp", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "bench"},
			"requestId": "5b2c7c5e-0b7e-4b1f-8a51-6a1f1f0f0a01", "routeKey": "$default", "stage": "$default",
			"time": "01/Aug/2026:00:00:00 +0000", "timeEpoch": 1785542400000,
		},
		"body": mcpcall.Body, "isBase64Encoded": false,
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// CheckAnswer reports what is wrong with a function's answer to Event.
func CheckAnswer(b []byte) error {
	var answer struct {
		StatusCode int
		Headers    map[string]string
		Body       string
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return fmt.Errorf("%w in %s", err, b)
	}
	return mcpcall.Check(answer.StatusCode, "", []byte(answer.Body))
}

// CheckAny takes any answer: for functions that do not speak HTTP.
func CheckAny(b []byte) error {
	if len(b) == 0 {
		return errors.New("empty answer")
	}
	return nil
}

// arrived is an answer, or what came in its place.
type arrived struct {
	given, at time.Time // when the event was handed out, and when the answer came
	body      []byte
	err       error
}

// api serves one function's life.
type api struct {
	event   []byte
	calls   chan struct{} // a token for each event to be handed out
	given   atomic.Pointer[time.Time]
	answers chan arrived
}

const id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/2018-06-01/runtime/invocation/next":
		select {
		case <-a.calls:
		case <-r.Context().Done():
			return
		}
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(patience).UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:bench")
		h.Set("Content-Type", "application/json")
		now := time.Now()
		a.given.Store(&now)
		_, _ = w.Write(a.event) // the function going away shows as no answer
	case "/2018-06-01/runtime/invocation/" + id + "/response":
		at := time.Now()
		b, err := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		a.report(arrived{at: at, body: b, err: err})
	case "/2020-01-01/extension/register":
		w.Header().Set("Lambda-Extension-Identifier", id)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"functionName":"bench","functionVersion":"$LATEST","handler":"bootstrap"}`)
	case "/2020-01-01/extension/event/next":
		<-r.Context().Done() // no event comes while the function lives
	default:
		b, _ := io.ReadAll(r.Body) // only for the message
		a.report(arrived{err: fmt.Errorf("the function sent %s %s: %s", r.Method, r.URL.Path, b)})
		w.WriteHeader(http.StatusAccepted)
	}
}

func (a *api) report(x arrived) {
	if given := a.given.Load(); given != nil {
		x.given = *given
	}
	select {
	case a.answers <- x:
	default:
	}
}

// Times are what one function took.
type Times struct {
	Start time.Duration   // from its start to its first answer's arrival
	Warm  []time.Duration // of each further call, from the event's going out to its answer's arrival
}

// Measure starts a function and calls it 1 + warm times, one after the other.
func Measure(ctx context.Context, path string, warm int, check func([]byte) error) (Times, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := &api{event: Event(), calls: make(chan struct{}, 1), answers: make(chan arrived, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Times{}, err
	}
	s := &http.Server{Handler: a}
	go func() { _ = s.Serve(l) }() // ends with Close
	defer s.Close()

	a.calls <- struct{}{}
	began := time.Now()
	p, err := process.Start(ctx, path,
		"AWS_LAMBDA_RUNTIME_API="+l.Addr().String(), "AWS_LAMBDA_FUNCTION_NAME=bench", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_REGION=eu-west-1",
		"THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=none")
	if err != nil {
		return Times{}, err
	}
	defer p.Stop()
	answer := func() (arrived, error) {
		select {
		case x := <-a.answers:
			if x.err != nil {
				return x, x.err
			}
			return x, check(x.body)
		case <-p.Ended():
			return arrived{}, p.Died()
		case <-ctx.Done():
			return arrived{}, fmt.Errorf("%s gave no answer: %w", path, ctx.Err())
		}
	}
	first, err := answer()
	if err != nil {
		return Times{}, err
	}
	t := Times{Start: first.at.Sub(began)}
	for range warm {
		a.calls <- struct{}{}
		x, err := answer()
		if err != nil {
			return Times{}, err
		}
		t.Warm = append(t.Warm, x.at.Sub(x.given))
	}
	return t, nil
}
