package cases

import (
	"errors"
	"strings"

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

	// Served without authorization here: a token is then of no interest to the server, and
	// the verbs are told from one another all the same.
	"B-61": {rules: []rule{
		{
			says:  "GET/DELETE/PUT with token: 405 + Allow: POST (OPTIONS)",
			on:    []string{"GET with token", "DELETE with session id", "PUT"},
			holds: all(status(405), allows("POST"), nothingRan),
		},
		{says: "HEAD: 401 or 405, empty body", on: []string{"HEAD"}, holds: all(status(405), allows("POST"), noBody)},
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
	}},
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
