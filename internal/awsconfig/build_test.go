//go:build !lambda.norpc

package awsconfig

import (
	"os/exec"
	"strings"
	"testing"
)

// TestBuildForLambda runs the tests of that build, and holds what it is for.
func TestBuildForLambda(t *testing.T) {
	const tag = "lambda.norpc"
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-tags", tag, ".").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tag, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dependency := range strings.Lines(string(out)) {
		if strings.HasPrefix(dependency, "github.com/aws/aws-sdk-go-v2/config") || strings.HasPrefix(dependency, "github.com/aws/aws-sdk-go-v2/service/") {
			t.Errorf("links %s", strings.TrimSpace(dependency))
		}
	}
}
