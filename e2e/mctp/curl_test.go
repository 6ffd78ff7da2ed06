package mctp

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// curl runs curl and returns what it printed.
func curl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "curl", append([]string{"--silent", "--show-error", "--fail-with-body", "--max-time", "20"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// The exchanges of the protocol's document, and the one that users will try, by curl.
func TestExchanges(t *testing.T) {
	base := serve(t, functions)
	endpoint := base + "/text_analysis"
	var discovery struct{ Endpoints map[string]string }
	if err := json.Unmarshal([]byte(curl(t, base+"/discovery")), &discovery); err != nil || discovery.Endpoints["text_analysis"] != endpoint {
		t.Fatalf("%v, %v", discovery, err)
	}
	var task struct{ ID, Status, CreatedAt string }
	made := curl(t, endpoint, "--header", "Content-Type: application/json", "--data", `{"parameters":{"text":"Hello world","language":"en"}}`)
	if err := json.Unmarshal([]byte(made), &task); err != nil {
		t.Fatalf("%s, %v", made, err)
	}
	head := ""
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(head, "\r\nX-Task-Status: completed\r\n"); <-time.After(100 * time.Millisecond) {
		if head = curl(t, "--head", endpoint+"/"+task.ID); !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || time.Now().After(deadline) {
			t.Fatalf("%s", head)
		}
	}
	if got := curl(t, endpoint+"/"+task.ID); got != strings.Replace(made, task.Status, "completed", 1) {
		t.Errorf("%s, and then %s", made, got)
	}
	var result struct {
		Task   map[string]string
		Result struct {
			Sentiment string
			Score     *float64
		}
	}
	text := curl(t, endpoint+"/"+task.ID+"/result")
	if err := json.Unmarshal([]byte(text), &result); err != nil || result.Task["id"] != task.ID || result.Task["status"] != "completed" ||
		result.Task["createdAt"] != task.CreatedAt || result.Result.Sentiment == "" || result.Result.Score == nil {
		t.Errorf("%s, %v", text, err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(task.ID) {
		t.Errorf("id %s", task.ID)
	}
	t.Logf("%s%s%s", made, head, text)
}
