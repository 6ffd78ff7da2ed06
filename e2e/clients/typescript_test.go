package clients

import (
	"context"
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

//go:embed typescript.cjs
var visit []byte

// typescriptClient is the official TypeScript client, run by Node.
func typescriptClient(t *testing.T, packages, endpoint string) *report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := npm.Run(ctx, packages, visit, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return &r
}
