package crash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
	"github.com/thaw-mcp/thaw/e2e/internal/moto"
	"github.com/thaw-mcp/thaw/e2e/internal/queue"
	"github.com/thaw-mcp/thaw/task"
)

// sweepEvery stands for the minute of the schedule that has a worker look for due tasks.
const sweepEvery = 2 * time.Second

func onMiniStack(t *testing.T) func(t *testing.T) *place {
	s := ministack.Start(t)
	return onAWS(s.Config(), s.Env())
}

func onMoto(t *testing.T) func(t *testing.T) *place {
	s := moto.Start(t)
	to, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(oneAtATime(to))
	t.Cleanup(front.Close)
	s.Endpoint = front.URL
	return onAWS(s.Config(), s.Env())
}

var tables atomic.Int64

// onAWS makes places of processes that answer clients and of workers that are functions, with
// a table and a queue of their own.
func onAWS(cfg aws.Config, env []string) func(t *testing.T) *place {
	return func(t *testing.T) *place {
		t.Helper()
		p := newPlace(t)
		table := fmt.Sprintf("tasks-%d", tables.Add(1))
		client := dynamodb.NewFromConfig(cfg)
		if _, err := client.CreateTable(t.Context(), dynamostore.Table(table)); err != nil {
			t.Fatal(err)
		}
		active := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, time.Second })
		if err := active.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, time.Minute); err != nil {
			t.Fatal(err)
		}
		p.roles = []string{roleAPI, roleWorker}
		p.queue = queue.New(t, cfg, nil, 0)
		p.env = append(append(p.env, env...), "THAW_STORE=dynamodb:"+table, "THAW_DISPATCH=sqs:"+p.queue.URL)
		p.open = func(t *testing.T) task.Store {
			s, err := dynamostore.New(cfg, table, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		tick := time.NewTicker(sweepEvery)
		t.Cleanup(tick.Stop)
		p.schedule = tick.C
		p.poll(t)
		return p
	}
}

// oneAtATime stands in front of Moto, which looks at a condition and writes in two steps, so
// that of two requests at once both may win.
func oneAtATime(to *url.URL) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(to)
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a part of a request, whose sender was killed
		}
		// A whole one is brought to its end although its sender may be dead: it would go on
		// beside the next one.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB") {
			mu.Lock()
			defer mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	})
}
