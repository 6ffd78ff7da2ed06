package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/dynamostore"
)

// fault is what happens to a request in place of being answered.
type fault struct {
	name    string
	applied bool // it gets there all the same
	answer  func(r *http.Request) (*http.Response, error)
}

// faults are those after which nobody knows, or that may pass.
var faults = func() []fault {
	all := []fault{
		{"a provisioned table is throttled", false, refuse(400, "ProvisionedThroughputExceededException")},
		{"a table paid by the request is throttled", false, refuse(400, "ThrottlingException")},
		{"the account is throttled", false, refuse(400, "RequestLimitExceeded")},
		{"half an answer", true, respond(200, `{"Attributes":{"v":{"N":`)},
	}
	for _, applied := range []bool{false, true} {
		when := map[bool]string{false: ", not applied", true: ", applied"}[applied]
		all = append(all,
			fault{"an internal error" + when, applied, refuse(500, "InternalServerError")},
			fault{"unavailable" + when, applied, refuse(503, "ServiceUnavailable")},
			fault{"502 of a proxy" + when, applied, respond(502, "<html>bad gateway</html>")},
			fault{"a page of a proxy" + when, applied, respond(200, "<html>log in</html>")},
			fault{"the connection breaks" + when, applied, func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }},
			fault{"the connection ends" + when, applied, func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }},
			fault{silence + when, applied, func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}})
	}
	return all
}()

const silence = "no answer"

func refuse(status int, code string) func(*http.Request) (*http.Response, error) {
	return respond(status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"because of the weather"}`, code))
}

func respond(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r}, nil
	}
}

// network is the way to an emulator.
type network struct {
	base http.RoundTripper

	mu       sync.Mutex
	requests int
	// fault, if set, says what happens to request n, counted from 0; nil lets it pass.
	fault func(n int) *fault
	// lost, if set, is called when a request that was applied is about to fail.
	lost func()
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	var f *fault
	if n.fault != nil {
		f = n.fault(n.requests)
	}
	n.requests++
	n.mu.Unlock()
	// What gets there is never broken off: an emulator under load is not what is tested, and
	// Dynalite dies of half a request.
	whole := r.Clone(context.WithoutCancel(r.Context()))
	if f == nil {
		return n.base.RoundTrip(whole)
	}
	if f.applied {
		answer, err := n.base.RoundTrip(whole)
		if err != nil {
			return nil, errors.Join(errors.New("the emulator does not answer"), err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if n.lost != nil {
			n.lost()
		}
	}
	return f.answer(r)
}

// idle is how long a connection is kept for the next request: shorter than emulators keep it. One that
// they close meanwhile would be a fault that nobody has ordered.
const idle = time.Second

// through is a Store behind a network of its own.
func through(t *testing.T, cfg aws.Config, table string, n *network, attempt time.Duration) *dynamostore.Store {
	t.Helper()
	n.base = &http.Transport{IdleConnTimeout: idle} // which httptest does not close, as it does those of the default
	if client, ok := cfg.HTTPClient.(*http.Client); ok {
		n.base = client.Transport
	}
	cfg.HTTPClient = &http.Client{Transport: n}
	s, err := dynamostore.New(cfg, table, &dynamostore.Options{Attempt: attempt})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
