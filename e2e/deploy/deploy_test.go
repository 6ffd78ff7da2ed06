package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/thaw-mcp/thaw/task"
)

// FastMCP's client at what sam deploy has put there, behind each front door, with an API key.
func TestDeploy(t *testing.T) {
	account := open(t)
	a := account.build(t, project(t))

	t.Run("function-url", func(t *testing.T) {
		s := a.deploy(t, "thaw", "Auth=apikey", "FilesBucket="+files, "EnvironmentsBucket="+environments)
		api := s.door(t, "McpUrl", "ApiFunction")
		t.Run("call", func(t *testing.T) { call(t, api, "text_analysis", "provision_environment") })
		t.Run("two rounds on two instances", func(t *testing.T) { twoRounds(t, s) })
		t.Run("task", func(t *testing.T) { runTask(t, api) })
		t.Run("cancel", func(t *testing.T) { cancelTask(t, api) })
	})
	t.Run("http-api", func(t *testing.T) {
		s := a.deploy(t, "thaw-http", "Auth=apikey", "FrontDoor=http-api", "FilesBucket="+files)
		call(t, s.door(t, "McpUrl", "ApiFunction"), "text_analysis")
		twoRounds(t, s)
	})
	t.Run("rest-api", func(t *testing.T) {
		// The emulator's REST API knows no streams.
		s := a.deploy(t, "thaw-rest", "Auth=apikey", "FrontDoor=rest-api", "Streaming=off", "FilesBucket="+files)
		call(t, s.door(t, "McpUrl", "ApiFunction"), "text_analysis")
		twoRounds(t, s)
	})
	t.Run("a new server", func(t *testing.T) {
		s := account.build(t, newServer(t)).deploy(t, "thaw-new", "Auth=apikey")
		alice := s.door(t, "McpUrl", "ApiFunction").client(t, "alice")
		if want := []string{"greet"}; !slices.Equal(alice.tools, want) {
			t.Errorf("the tools are %q, want %q", alice.tools, want)
		}
		if got := alice.do(t, told{What: "call", Tool: "greet", Arguments: map[string]any{"name": "Ada"}}); string(got.Result) != `{"greeting": "Hello, Ada!"}` {
			t.Errorf("%+v", got)
		}
	})
}

// call lists and calls, and is turned away without a key.
func call(t *testing.T, d *door, tools ...string) {
	t.Helper()
	if got := d.status(t); got != 401 {
		t.Errorf("without a key it is %d, want 401", got)
	}
	alice := d.client(t, "alice")
	if !slices.Equal(alice.tools, tools) {
		t.Errorf("the tools are %q, want %q", alice.tools, tools)
	}
	got := alice.do(t, told{What: "call", Tool: "text_analysis", Arguments: map[string]any{"text": "I love it"}})
	if !strings.Contains(string(got.Result), `"sentiment": "positive"`) {
		t.Error(got)
	}
}

// twoRounds has the function that is a tool of its own ask on one cold instance and act on the
// next one.
func twoRounds(t *testing.T, s *stack) {
	t.Helper()
	s.put(t, files, "a.txt", "b.txt")
	d := s.door(t, "FilesMcpUrl", "FilesFunction")
	alice := d.client(t, "alice")
	if want := []string{"delete_files"}; !slices.Equal(alice.tools, want) {
		t.Errorf("the tools are %q, want %q", alice.tools, want)
	}
	d.fresh(t)
	asked := alice.do(t, told{What: "call", Tool: "delete_files", Arguments: map[string]any{"files": []string{"a.txt"}}})
	if want := "Delete 1 file?\n\"a.txt\""; asked.Asked != want {
		t.Fatalf("%v, want the question %q", asked, want)
	}
	d.fresh(t)
	if got := alice.answer(t, nil); string(got.Result) != `{"deleted": ["a.txt"]}` {
		t.Error(got)
	}
	if left := s.list(t, files, ""); !slices.Equal(left, []string{"b.txt"}) {
		t.Errorf("%q are left, want b.txt", left)
	}
}

// begin calls provision_environment, and goes as far as the question that its task asks.
func begin(t *testing.T, d *door, c *client) (id, network string) {
	t.Helper()
	d.fresh(t)
	if got := c.do(t, told{What: "call", Tool: "provision_environment", Arguments: map[string]any{"region": "eu-west1"}}); got.Asked != "What is to be built in eu-west1?" {
		t.Fatal(got)
	}
	d.fresh(t)
	got := c.answer(t, map[string]any{"size": "small", "count": 2})
	question, network, ok := strings.Cut(got.Asked, "network: ")
	if !ok || !strings.HasPrefix(question, "Start machines in eu-west1?") {
		t.Fatal(got)
	}
	// FastMCP names what a task asks task-ID-KEY.
	id, ok = strings.CutSuffix(strings.TrimPrefix(got.Request, "task-"), "-approve")
	if !ok {
		t.Fatal(got)
	}
	if there := d.list(t, environments, network); len(there) != 1 {
		t.Errorf("%q are there while the user is asked, want the network alone", there)
	}
	return id, network
}

// runTask has a task go through the queue to its result, and nobody else see it.
func runTask(t *testing.T, d *door) {
	alice, bob := d.client(t, "alice"), d.client(t, "bob")
	id, network := begin(t, d, alice)

	const unknown = "00000000-0000-8000-8000-000000000000"
	none := bob.do(t, told{What: "status", Task: unknown})
	if none.Error == "" {
		t.Fatalf("a task that is not there: %v", none)
	}
	for _, what := range []string{"status", "cancel"} {
		if got := bob.do(t, told{What: what, Task: id}); got.Error != none.Error {
			t.Errorf("%s of another's task: %v, want %q", what, got, none.Error)
		}
	}
	if got := d.client(t, "alice").do(t, told{What: "status", Task: id}); got.Status != "input_required" {
		t.Errorf("the task is %v, want input_required", got)
	}

	d.fresh(t)
	got := alice.answer(t, map[string]any{"confirm": true})
	if want := fmt.Sprintf(`{"network": %q, "machines": ["machine-1", "machine-2"], "healthy": true}`, network); string(got.Result) != want {
		t.Errorf("%v, want %s", got, want)
	}
	want := []string{network + "/machine-1.json", network + "/machine-2.json", network + "/network.json"}
	if there := d.list(t, environments, network); !slices.Equal(there, want) {
		t.Errorf("%q were made, want %q", there, want)
	}

	// A dead letter of a task that has ended is done with.
	queue := sqs.NewFromConfig(d.Config())
	url, text := d.outputs["DeadLetterQueueUrl"], task.Message{ID: id}.Text()
	if _, err := queue.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &text}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dead letter is gone", func() bool {
		left, err := queue.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			t.Fatal(err)
		}
		return left.Attributes["ApproximateNumberOfMessages"] == "0" && left.Attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
	})
}

// cancelTask has a task that waits for its user cleaned up after.
func cancelTask(t *testing.T, d *door) {
	alice := d.client(t, "alice")
	id, network := begin(t, d, alice)
	other := d.client(t, "alice") // the same caller elsewhere
	if got := other.do(t, told{What: "cancel", Task: id}); got.Error != "" {
		t.Fatal(got)
	}
	if got := other.do(t, told{What: "status", Task: id}); got.Status != "cancelled" {
		t.Errorf("the task is %v, want cancelled", got)
	}
	if got := alice.answer(t, map[string]any{"confirm": true}); !strings.Contains(got.Error, "cancelled") {
		t.Errorf("the one who waits is told %v", got)
	}
	eventually(t, "the network is removed", func() bool { return len(d.list(t, environments, network)) == 0 })
}

// eventually asks every now and then whether it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}
