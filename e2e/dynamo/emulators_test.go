// Package dynamo holds dynamostore to its contract on emulators of DynamoDB, none of which is
// right about everything, and through a network that fails.
package dynamo

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/e2e/internal/dynalite"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
	"github.com/thaw-mcp/thaw/e2e/internal/moto"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/storetest"
)

type emulator struct {
	name  string
	start func(testing.TB) aws.Config
}

// emulators are those that speak DynamoDB's protocol. None throttles, and none is slow or
// loses an answer; that is made here, in the client's transport.
var emulators = []emulator{
	{"ministack", func(tb testing.TB) aws.Config { return ministack.Start(tb).Config() }},
	{"moto", func(tb testing.TB) aws.Config {
		cfg := moto.Start(tb).Config()
		// It looks at a condition and writes in two steps, so that of two requests at once
		// both may win.
		cfg.HTTPClient = &http.Client{Transport: &oneAtATime{}}
		return cfg
	}},
	// It has no TimeToLive, and returns no item that did not meet a condition.
	{"dynalite", func(tb testing.TB) aws.Config { return dynalite.Start(tb).Config() }},
}

type oneAtATime struct{ mu sync.Mutex }

func (o *oneAtATime) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}

// onEach runs a test on each emulator.
func onEach(t *testing.T, run func(t *testing.T, cfg aws.Config)) {
	for _, e := range emulators {
		t.Run(e.name, func(t *testing.T) { run(t, e.start(t)) })
	}
}

func emulatorNamed(name string) emulator {
	return emulators[slices.IndexFunc(emulators, func(e emulator) bool { return e.name == name })]
}

var tables atomic.Int64

// newTable makes a table and returns its name.
func newTable(tb testing.TB, cfg aws.Config) string {
	tb.Helper()
	name := fmt.Sprintf("tasks-%d", tables.Add(1))
	client := dynamodb.NewFromConfig(cfg)
	if _, err := client.CreateTable(tb.Context(), dynamostore.Table(name)); err != nil {
		tb.Fatal(err)
	}
	active := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, time.Second })
	if err := active.Wait(tb.Context(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		tb.Fatal(err)
	}
	return name
}

func backend(cfg aws.Config) storetest.Backend {
	return func(tb testing.TB) func() task.Store {
		table := newTable(tb, cfg)
		return func() task.Store { return open(tb, cfg, table) }
	}
}
