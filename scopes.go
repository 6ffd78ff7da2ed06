package thaw

import (
	"context"
	"fmt"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/declared"
)

// RequireScopes is nil if the caller has all of scopes; it is for those that depend on the
// arguments, beside the Scopes that a tool, prompt or resource declares. Otherwise return
// its error, which becomes status 403 with a challenge that names them and the declared ones
// or a tool error once the response streams. So ask for everything at once and
// first of all: before any Progress, and before a question or a step, because a refusal after
// the user's answer ends the call, and a step records it. Outside a handler it is ErrNoCall;
// what can be no scope is an error like any other. It is safe for concurrent use.
func RequireScopes(ctx context.Context, scopes ...string) error {
	if err := declared.CheckScopes(scopes); err != nil {
		return fmt.Errorf("thaw: RequireScopes: %w", err)
	}
	c := call.FromContext(ctx)
	if c == nil {
		return ErrNoCall
	}
	return c.RequireScopes(scopes)
}
