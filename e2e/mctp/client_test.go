package mctp

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
)

// A client that is written only from the protocol's document, in another language, discovers,
// submits, polls by HEAD and fetches: a quick task and one that takes its time.
func TestForeignClient(t *testing.T) {
	quick, slow := serve(t, functions), serve(t, killed)
	for name, c := range map[string]struct {
		base, tool, parameters string
		status                 string
		waits                  bool
		want                   func(result map[string]any) bool
	}{
		"quick":  {quick, "text_analysis", `{"text":"Hello world","language":"en"}`, "completed", false, func(r map[string]any) bool { return r["sentiment"] != nil && r["score"] != nil }},
		"slow":   {slow, "square", `{"n":12,"naps":15}`, "completed", true, func(r map[string]any) bool { return r["square"] == 144.0 }},
		"failed": {slow, "square", `{"n":-1,"naps":15}`, "failed", true, func(r map[string]any) bool { return r["error"].(map[string]any)["message"] == "n is negative" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "python3", "client.py", c.base, c.tool, c.parameters).CombinedOutput()
			var got struct {
				Seen   []string
				Polls  int
				Status string
				Result map[string]any
			}
			if err != nil || json.Unmarshal(out, &got) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got.Status != c.status || !c.want(got.Result) || c.waits && (got.Polls < 2 || !slices.Contains(got.Seen, "in_progress")) {
				t.Errorf("%s", out)
			}
		})
	}
}
