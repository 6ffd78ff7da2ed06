// Package oauth has users log in with a client that knows nothing but the server's URL. But
// for their hands on the provider's pages nobody here wrote what follows the 401: the
// authorization server is panva's oidc-provider, the client the official TypeScript SDK, both
// as they are on npm.
package oauth

import (
	"bufio"
	"context"
	_ "embed"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

var (
	program  string // the conformance fixture, built once for all tests
	packages string // folder of the npm packages

	//go:embed provider.mjs
	providerModule []byte
	//go:embed client.mjs
	clientModule []byte
)

func TestMain(m *testing.M) {
	os.Exit(fixture.Main(m, func(ctx context.Context, folder string) (err error) {
		if program, err = fixture.BuildIn(ctx, folder, fixture.Program); err == nil {
			packages, err = npm.Install(ctx)
		}
		return err
	}))
}

// patience is how long something may take that happens by itself.
const patience = 60 * time.Second

// linesAfter yields what stands behind a word in the lines that begin with it, and reads all
// the others, so that who writes them does not block.
func linesAfter(lines *bufio.Scanner, word string) <-chan string {
	found := make(chan string, 1)
	go func() {
		defer close(found)
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), word+" "); ok {
				found <- text
			}
		}
	}()
	return found
}

// await returns the next of them.
func await(t *testing.T, found <-chan string) string {
	t.Helper()
	select {
	case text, ok := <-found:
		if !ok {
			t.Fatal("the process ended")
		}
		return text
	case <-time.After(patience):
		t.Fatalf("no answer in %v", patience)
	}
	return ""
}
