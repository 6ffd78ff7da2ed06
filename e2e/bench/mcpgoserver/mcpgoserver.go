// Package mcpgoserver is the search tool served by mark3labs/mcp-go in its stateless mode.
package mcpgoserver

import (
	"context"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/thaw-mcp/thaw/e2e/bench/toolset"
)

// One has the search tool alone. Arguments are not validated unless opts say so: that
// library leaves it off by default.
func One(opts ...server.ServerOption) http.Handler {
	s := server.NewMCPServer("bench", "1.0.0", opts...)
	type (
		in  = toolset.SearchIn[toolset.A]
		out = toolset.SearchOut[toolset.A]
	)
	s.AddTool(
		mcp.NewTool("search", mcp.WithDescription("Search the documents of the house"), mcp.WithInputSchema[in](), mcp.WithOutputSchema[out]()),
		mcp.NewStructuredToolHandler(func(ctx context.Context, _ mcp.CallToolRequest, args in) (out, error) {
			return toolset.Search(ctx, args)
		}))
	return server.NewStreamableHTTPServer(s, server.WithStateLess(true))
}

// Validated is One with its arguments and results checked against the schemas.
func Validated() http.Handler {
	return One(server.WithInputSchemaValidation(), server.WithOutputSchemaValidation())
}
