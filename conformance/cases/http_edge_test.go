package cases

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/runtime/serve"
)

var httpEdge = map[string]verdict{
	"B-60": {
		production: production{options: func(o *serve.Options) { o.AllowedOrigins = []string{"https://app.example.com"} }},
		rules: []rule{
			{says: "first and third: 200", on: []string{"Cloud Run host, no Origin"}, holds: all(status(200), complete)},
			{
				says:  "first and third: 200",
				on:    []string{"allowed origin"},
				holds: all(status(200), complete, hasHeader("Access-Control-Allow-Origin", "https://app.example.com")),
			},
			{
				says:  "foreign, null, look-alike, other port: 403",
				on:    []string{"foreign origin", "origin null", "look-alike", "other port"},
				holds: all(status(403), nothingRan, noHeader("Access-Control-Allow-Origin")),
			},
			{says: "health check independent of Host", on: []string{"private IP host (health check)"}, holds: status(200)},
		},
	},

	"B-57": {
		production: production{identified: true, options: func(o *serve.Options) {
			o.BasePath, o.PublicURLs = "/prod", []string{"https://mcp.example.com/prod/mcp"}
		}},
		rules: []rule{
			{says: "401 with WWW-Authenticate", on: []string{"no token"}, holds: all(status(401), challenged(""), nothingRan)},
			{
				says: "metadata: 200, application/json, authorization_servers non-empty, resource == public URL, no auth asked",
				on:   []string{"metadata, path form", "metadata, root", "metadata below the stage", "metadata with a bad token"},
				holds: all(status(200), hasHeader("Content-Type", "application/json"), noHeader("WWW-Authenticate"),
					documented("https://mcp.example.com/prod/mcp")),
			},
			{says: "response to the event has the header under that name", on: []string{"no token"}, holds: func(a *answer) error {
				const metadata = "https://mcp.example.com/prod/.well-known/oauth-protected-resource/prod/mcp"
				return hasHeader("WWW-Authenticate", `Bearer resource_metadata="`+metadata+`"`)(a)
			}},
		},
	},

	"B-61": {production: production{identified: true}, rules: []rule{
		{says: "GET without token: 401 + WWW-Authenticate", on: []string{"GET without token"}, holds: all(status(401), challenged(""), nothingRan)},
		{says: "Auth first: 401 with challenge.", on: []string{"GET without token", "PUT"}, holds: all(status(401), challenged(""), nothingRan)},
		{
			says:  "GET/DELETE/PUT with token: 405 + Allow: POST (OPTIONS)",
			on:    []string{"GET with token", "DELETE with session id"},
			holds: all(status(405), allows("POST"), nothingRan),
		},
		{says: "HEAD: 401 or 405, empty body", on: []string{"HEAD"}, holds: all(status(401), challenged(""), noBody)},
		{
			says:  "POST: 200, no Mcp-Session-Id in the response",
			on:    []string{"POST with session id and Last-Event-ID"},
			holds: all(status(200), complete),
		},
		{
			says:  "Mcp-Session-Id and Last-Event-ID are ignored and never echoed.",
			on:    []string{"GET with token", "DELETE with session id", "HEAD", "PUT", "POST with session id and Last-Event-ID"},
			holds: all(noHeader("Mcp-Session-Id"), noHeader("Last-Event-Id")),
		},
	}, scenes: []scene{{
		says: []string{"With a token: 405 and Allow. HEAD has no body."},
		play: func(t *testing.T, s *stage) {
			for _, verb := range []string{"PUT", "HEAD", "PATCH"} {
				x := s.post(nil)
				x.method = verb
				s.expect(t, x, all(status(405), allows("POST"), nothingRan))
			}
		},
	}}},
}

// documented wants protected resource metadata (RFC 9728) of a resource.
func documented(resource string) check {
	return func(a *answer) error {
		var d struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		if !decode(a.body, &d) || d.Resource != resource || !slices.Equal(d.Servers, []string{issuer}) {
			return fmt.Errorf("the document is of %q at %q", d.Resource, d.Servers)
		}
		return nil
	}
}

// allows wants an Allow header with a method (RFC 9110, 15.5.6).
func allows(method string) check {
	return func(a *answer) error {
		for item := range strings.SplitSeq(a.header.Get("Allow"), ",") {
			if strings.TrimSpace(item) == method {
				return nil
			}
		}
		return errors.New("Allow does not list " + method)
	}
}
