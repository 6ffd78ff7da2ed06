package mctp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/e2e/internal/emulator"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
	"github.com/thaw-mcp/thaw/e2e/internal/queue"
	"github.com/thaw-mcp/thaw/internal/gatewaysim"
)

// The same client against a function behind a Function URL, whose tasks go through DynamoDB and
// SQS to another function: both under AWS's own emulator of the runtime.
func TestForeignClientOnLambda(t *testing.T) {
	aws := ministack.Start(t)
	table := "tasks"
	client := dynamodb.NewFromConfig(aws.Config())
	if _, err := client.CreateTable(t.Context(), dynamostore.Table(table)); err != nil {
		t.Fatal(err)
	}
	active := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Millisecond, time.Second })
	if err := active.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, time.Minute); err != nil {
		t.Fatal(err)
	}
	messages := queue.New(t, aws.Config(), nil, 0)

	var door http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { door.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	binary := fixture.BuildProgram(t, "github.com/thaw-mcp/thaw/functions/server", "-tags=lambda.norpc")
	function := func(role string) *emulator.Function {
		return emulator.Start(t, binary, append(aws.Env(), "THAW_ROLE="+role, "THAW_MCTP=on", "THAW_AUTH=none", "THAW_STATE_KEY=none", "THAW_STORE=dynamodb:"+table,
			"THAW_DISPATCH=sqs:"+messages.URL, "THAW_PUBLIC_URL="+server.URL+"/mcp", "AWS_LAMBDA_FUNCTION_TIMEOUT=900")...)
	}
	api, worker := function("api"), function("worker")
	door = gatewaysim.FunctionURL(gatewaysim.Buffered(api.Invoke), nil)

	ctx, stop := context.WithCancel(t.Context())
	var pumping sync.WaitGroup
	pumping.Go(func() {
		for ctx.Err() == nil {
			received, err := messages.Receive(ctx, 1, 1)
			if err == nil && len(received) > 0 {
				_, err = messages.Deliver(ctx, received, worker.Invoke)
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	defer func() { stop(); pumping.Wait() }()

	out, err := exec.CommandContext(t.Context(), "python3", "client.py", server.URL, "text_analysis", `{"text":"Hello world","language":"en"}`).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"status": "completed"`) || !strings.Contains(string(out), `"sentiment": "neutral"`) {
		t.Errorf("%v: %s", err, out)
	}
	// A POST whose answer was lost and that is sent again is the same task.
	ids := map[string]bool{}
	for range 2 {
		a := ask(t, "POST", server.URL+"/text_analysis", `{"parameters":{"text":"Hello world"}}`, "Idempotency-Key", "one")
		var task struct{ ID string }
		if err := json.Unmarshal([]byte(a.body), &task); err != nil || a.status != http.StatusCreated {
			t.Errorf("%+v, %v", a, err)
		}
		ids[task.ID] = true
	}
	if len(ids) != 1 {
		t.Errorf("%v", ids)
	}
	if a := ask(t, "HEAD", server.URL+"/text_analysis", ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST, OPTIONS" || a.body != "" {
		t.Errorf("%+v", a)
	}
}
