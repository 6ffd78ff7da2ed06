// Package suite runs the official conformance suite against the fixture on Lambda, and on stores that are not
// the laptop's default.
package suite

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
)

const table = "tasks"

// TestSuite: nothing of it fails, whatever store keeps the tasks.
func TestSuite(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T) []string{
		"memory": func(*testing.T) []string { return []string{"THAW_STORE=memory:"} },
		"dynamodb": func(t *testing.T) []string {
			cloud := ministack.Start(t)
			if _, err := dynamodb.NewFromConfig(cloud.Config()).CreateTable(t.Context(), dynamostore.Table(table)); err != nil {
				t.Fatal(err)
			}
			return append(cloud.Env(), "THAW_STORE=dynamodb:"+table)
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"run", "./conformance/run"}
			for _, pair := range prepare(t) {
				args = append(args, "-env", pair)
			}
			run := exec.CommandContext(t.Context(), "go", args...)
			run.Dir = "../.."
			out, err := run.CombinedOutput()
			if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), " 0 failed") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
