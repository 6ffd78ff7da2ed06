// Package gosdkserver is the tool set served by the official Go SDK in its stateless
// mode, the one in which it speaks MCP 2026-07-28 over HTTP.
package gosdkserver

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/thaw-mcp/thaw/e2e/bench/toolset"
)

// One has the search tool alone.
func One() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	add(s, "search", "Search the documents of the house", toolset.Search[toolset.A])
	return handler(s)
}

// Fifty has fifty tools.
func Fifty() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	ten[toolset.E](s, "_e")
	ten[toolset.D](s, "_d")
	ten[toolset.C](s, "_c")
	ten[toolset.B](s, "_b")
	ten[toolset.A](s, "")
	return handler(s)
}

func handler(s *mcp.Server) http.Handler {
	// JSONResponse: a plain answer is the quicker of the two that it can give.
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

func add[In, Out any](s *mcp.Server, name, description string, fn func(context.Context, In) (Out, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			out, err := fn(ctx, in)
			return nil, out, err
		})
}

func ten[K any](s *mcp.Server, suffix string) {
	add(s, "invoices"+suffix, "List a customer's invoices", toolset.Invoices[K])
	add(s, "ticket"+suffix, "Open a support ticket", toolset.Ticket[K])
	add(s, "query"+suffix, "Run a report", toolset.Query[K])
	add(s, "message"+suffix, "Send a message", toolset.Message[K])
	add(s, "weather"+suffix, "Weather forecast for a place", toolset.Weather[K])
	add(s, "job"+suffix, "Schedule a job", toolset.Job[K])
	add(s, "user"+suffix, "Look a user up", toolset.User[K])
	add(s, "order"+suffix, "Place an order", toolset.Order[K])
	add(s, "convert"+suffix, "Convert an amount of money", toolset.Convert[K])
	add(s, "search"+suffix, "Search the documents of the house", toolset.Search[K])
}
