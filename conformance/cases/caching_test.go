package cases

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw"
)

var caching = map[string]verdict{
	"B-67": {
		// Nothing is listed for some callers only. A list that takes a token to get is private
		// all the same.
		production: production{identified: true, as: "alice", server: func(s *thaw.Server) {
			s.ListTTL, s.PublicLists = 5*time.Minute, true
			s.Tools = append(s.Tools, thaw.NewTool("admins_only", "Answers ok to admins", func(context.Context, struct{}) (string, error) { return "ok", nil },
				&thaw.ToolOptions{Scopes: []string{"admin"}}))
		}},
		rules: []rule{
			{says: "both lists: cacheScope private", on: []string{"as admin", "as guest"}, holds: all(status(200), complete, hinted, member(`"private"`, "cacheScope"))},
			{
				says:  "discover, read: ttlMs integer, cacheScope one of the two",
				on:    []string{"discover", "read"},
				holds: all(status(200), complete, hinted),
			},
			{says: "tools/call: neither field", on: []string{"tools/call"}, holds: all(status(200), complete, text("x"), without("ttlMs", "cacheScope"))},
			// docs://a is declared with 5 minutes too.
			{says: "300000, not 300", on: []string{"discover", "read"}, holds: member("300000", "ttlMs")},
		},
		scenes: []scene{{
			says: []string{"A list filtered by caller is private, whatever was configured"},
			play: adminsOnly,
		}, {
			says: []string{"stand at the top level of every complete result of the six cacheable operations"},
			play: cacheable,
		}},
	},
}

// hinted wants the two cache hints at the top of a result, and nowhere else.
func hinted(a *answer) error {
	ttl := a.result("ttlMs")
	if n, err := strconv.ParseInt(string(ttl), 10, 64); err != nil || n < 0 {
		return fmt.Errorf("ttlMs is %q, want an integer of 0 or more", ttl)
	}
	if scope := string(a.result("cacheScope")); scope != `"public"` && scope != `"private"` {
		return fmt.Errorf("cacheScope is %q", scope)
	}
	if a.result("_meta", "ttlMs") != nil || a.result("_meta", "cacheScope") != nil {
		return errors.New("the hints stand in _meta")
	}
	return nil
}

// adminsOnly calls what a list for everybody shows and not everybody may call.
func adminsOnly(t *testing.T, s *stage) {
	for user, holds := range map[string]check{
		"admin": all(status(200), complete, text("ok"), ran("admins_only")),
		"guest": all(status(403), challenged("insufficient_scope"), nothingRan),
		"alice": all(status(403), challenged("insufficient_scope"), nothingRan),
	} {
		x := s.call("admins_only", `{}`, "")
		for i := range x.headers {
			if x.headers[i].name == "Authorization" {
				x.headers[i] = bearer(user)
			}
		}
		s.expect(t, x, holds)
	}
}

// cacheable asks all six operations whose results may be cached.
func cacheable(t *testing.T, s *stage) {
	for _, method := range []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		t.Run(method, func(t *testing.T) {
			s.expect(t, s.request(method, "", ""), all(status(200), complete, hinted, member("300000", "ttlMs")))
		})
	}
	t.Run("resources/read", func(t *testing.T) {
		s.expect(t, s.request("resources/read", `"uri":"test://static-text"`, ""), all(status(200), complete, hinted))
	})
}
