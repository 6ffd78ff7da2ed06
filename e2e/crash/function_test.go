package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// function is one instance of a Lambda function: a process that asks its Runtime API for one
// event after the other. It implements what the process needs of that.
type function struct {
	process *fixture.Process
	time    time.Duration // of an invocation
	asks    chan struct{} // for an event, which it gets next
	events  chan *invocation
	current atomic.Pointer[invocation]
}

type invocation struct {
	id     string
	event  []byte
	answer chan reply
}

type reply struct {
	body []byte
	err  error
}

// functionTime is what an invocation gets if nothing else is said, as much as Lambda gives.
const functionTime = 15 * time.Minute

// function starts a worker, which gets the place's messages and schedule until it dies.
func (p *place) function(t *testing.T, env []string) *fixture.Process {
	t.Helper()
	f := &function{time: p.functionTime, asks: make(chan struct{}), events: make(chan *invocation)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close) // after the process, which would wait for its next event
	cmd := exec.Command(program)
	cmd.Dir = t.TempDir()
	cmd.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"), "AWS_LAMBDA_FUNCTION_NAME=worker",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256")
	f.process = fixture.Launch(t, cmd, nil)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if err := p.feed(t.Context(), f); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { <-fed })
	return f.process
}

var errDied = errors.New("the function died")

// feed is what Lambda does for an instance until that dies: an event source mapping with batch
// size 1, and a schedule. What an instance had when it died stays in the queue, and shows again
// when its visibility timeout ends.
func (p *place) feed(ctx context.Context, f *function) error {
	schedule, err := json.Marshal(events.EventBridgeEvent{Version: "0", ID: "x", DetailType: "Scheduled Event", Source: "aws.scheduler", Detail: json.RawMessage(`"{}"`)})
	if err != nil {
		return err
	}
	for {
		select {
		case <-f.process.Gone():
			return nil
		case <-ctx.Done():
			return nil
		case <-f.asks:
		}
		select {
		case <-f.process.Gone():
			return nil
		case <-ctx.Done():
			return nil
		case <-p.schedule:
			_, err = f.invoke(ctx, schedule)
		case m := <-p.messages:
			_, err = p.queue.Deliver(ctx, []types.Message{m}, f.invoke)
		}
		if err != nil && !errors.Is(err, errDied) {
			return err
		}
	}
}

// poll receives the messages of the place, for whichever worker is free, until the test ends.
func (p *place) poll(t *testing.T) {
	messages := make(chan types.Message)
	p.messages = messages
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for t.Context().Err() == nil {
			received, err := p.queue.Receive(t.Context(), 1, 1)
			if err != nil && t.Context().Err() == nil {
				t.Errorf("receive: %v", err)
				return
			}
			for _, m := range received {
				select {
				case messages <- m:
				case <-t.Context().Done():
				}
			}
		}
	}()
	t.Cleanup(func() { <-ended })
}

// invoke hands an event to the instance.
func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	i := &invocation{id: strconv.FormatInt(time.Now().UnixNano(), 10), event: event, answer: make(chan reply, 1)}
	select {
	case f.events <- i:
	case <-f.process.Gone():
		return nil, errDied
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-i.answer:
		return r.body, r.err
	case <-f.process.Gone():
		return nil, errDied
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHTTP implements the Runtime API.
func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const base = "/2018-06-01/runtime/invocation/"
	if r.URL.Path == base+"next" {
		f.next(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // a part of an answer, from a process that died
	}
	i := f.current.Load()
	w.WriteHeader(http.StatusAccepted)
	switch {
	case i == nil:
	case r.URL.Path == base+i.id+"/response":
		i.answer <- reply{body, nil}
	default: // the function failed, or could not begin
		i.answer <- reply{nil, fmt.Errorf("the function sent %s: %s", r.URL.Path, body)}
	}
}

func (f *function) next(w http.ResponseWriter, r *http.Request) {
	select {
	case f.asks <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	select {
	case i := <-f.events:
		f.current.Store(i)
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(f.time).UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:worker")
		_, _ = w.Write(i.event) // a function that is gone gives no answer
	case <-r.Context().Done():
	}
}
