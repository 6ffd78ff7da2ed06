package mctp

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/pypi"
)

// The OpenAPI documents of our own tools, and of all that the conformance fixture has of schemas,
// are right as a validator of others sees it, which follows every reference.
func TestOpenAPI(t *testing.T) {
	python, err := pypi.Install(t.Context(), "openapi")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(document string) (string, error) {
		cmd := exec.CommandContext(t.Context(), python, "-m", "openapi_spec_validator", "-")
		cmd.Stdin = strings.NewReader(document)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for name, program := range map[string]string{"functions": functions, "fixture": tools} {
		t.Run(name, func(t *testing.T) {
			base := serve(t, program, "THAW_STORE=memory:")
			document := ask(t, "GET", base+"/openapi.json", "").body
			if out, err := validate(document); err != nil {
				t.Errorf("%v: %.2000s", err, out) // which has the whole document
			}
			var d struct{ Paths map[string]any }
			var discovery struct{ Endpoints map[string]string }
			_ = json.Unmarshal([]byte(document), &d) // an empty one fails below
			_ = json.Unmarshal([]byte(ask(t, "GET", base+"/discovery", "").body), &discovery)
			if len(d.Paths) != 1+3*len(discovery.Endpoints) || len(discovery.Endpoints) == 0 {
				t.Errorf("%d paths of %d tools", len(d.Paths), len(discovery.Endpoints))
			}
			// It refuses what is wrong, or all that would say nothing.
			for right, wrong := range map[string]string{`"responses":`: `"answers":`, `"#/components/schemas/TaskResponse"`: `"#/components/schemas/Nothing"`, `"openapi":"3.1.0"`: `"openapi":"7"`} {
				if out, err := validate(strings.ReplaceAll(document, right, wrong)); err == nil {
					t.Errorf("%s in place of %s is right: %s", wrong, right, out)
				}
			}
		})
	}
}

// The tools that the collection of failures describes work over MCTP as they do over MCP.
func TestFixture(t *testing.T) {
	base := serve(t, tools, "THAW_STORE=memory:")
	for name, c := range map[string]struct {
		tool, parameters, status string
		want                     string // of the result
	}{
		"text":                    {"echo", `{"text":"hi"}`, "completed", `{"content":[{"type":"text","text":"hi"}]`},
		"no arguments":            {"noargs", `{}`, "completed", `"text":"ok"`},
		"counts":                  {"counter_add", `{"by":1}`, "completed", `1`},
		"any JSON":                {"anyjson", `{"value":[1,{"a":null}]}`, "completed", `[1,{"a":null}]`},
		"an argument of a header": {"route", `{"region":"eu","priority":1}`, "completed", `eu`},
		"an empty list":           {"empty_slice_field", `{}`, "completed", `[]`},
		"a task's own error":      {"failing_job", `{}`, "failed", `"reason":"tool_error"`},
		"a protocol error":        {"protocol_error_job", `{}`, "failed", `{"error":{"reason":`},
		"a question":              {"ask_name", `{}`, "in_progress", ""},
		"a panic":                 {"panic_nil_map", `{}`, "failed", `"reason":"panic"`},
		"the end of a goroutine":  {"panic_goexit", `{}`, "failed", `"reason":"panic"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, "POST", base+"/"+c.tool, `{"parameters":`+c.parameters+`}`, "Prefer", "wait=8")
			var task struct{ ID, Status string }
			if err := json.Unmarshal([]byte(a.body), &task); err != nil || a.status != http.StatusCreated || task.Status != c.status {
				t.Fatalf("%+v, %v", a, err)
			}
			result := ask(t, "GET", base+"/"+c.tool+"/"+task.ID+"/result", "")
			if c.want == "" {
				if result.status != http.StatusConflict || result.header.Get("X-Task-Input-Required") != "true" {
					t.Errorf("%+v", result)
				}
			} else if result.status != 200 || !strings.Contains(result.body, c.want) {
				t.Errorf("%+v", result)
			}
		})
	}
}
