// Package thawserver is the tool set served by thaw.
package thawserver

import (
	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/e2e/bench/toolset"
)

// One has the search tool alone.
func One() thaw.Server {
	return thaw.Server{Name: "bench", Version: "1.0.0", Tools: []*thaw.Tool{search[toolset.A]("search")}}
}

// Fifty has fifty tools; search is the last.
func Fifty() thaw.Server {
	s := thaw.Server{Name: "bench", Version: "1.0.0"}
	s.Tools = append(s.Tools, ten[toolset.E]("_e")...)
	s.Tools = append(s.Tools, ten[toolset.D]("_d")...)
	s.Tools = append(s.Tools, ten[toolset.C]("_c")...)
	s.Tools = append(s.Tools, ten[toolset.B]("_b")...)
	s.Tools = append(s.Tools, ten[toolset.A]("")...)
	return s
}

func search[K any](name string) *thaw.Tool {
	return thaw.NewTool(name, "Search the documents of the house", toolset.Search[K], nil)
}

func ten[K any](suffix string) []*thaw.Tool {
	return []*thaw.Tool{
		thaw.NewTool("invoices"+suffix, "List a customer's invoices", toolset.Invoices[K], nil),
		thaw.NewTool("ticket"+suffix, "Open a support ticket", toolset.Ticket[K], nil),
		thaw.NewTool("query"+suffix, "Run a report", toolset.Query[K], nil),
		thaw.NewTool("message"+suffix, "Send a message", toolset.Message[K], nil),
		thaw.NewTool("weather"+suffix, "Weather forecast for a place", toolset.Weather[K], nil),
		thaw.NewTool("job"+suffix, "Schedule a job", toolset.Job[K], nil),
		thaw.NewTool("user"+suffix, "Look a user up", toolset.User[K], nil),
		thaw.NewTool("order"+suffix, "Place an order", toolset.Order[K], nil),
		thaw.NewTool("convert"+suffix, "Convert an amount of money", toolset.Convert[K], nil),
		search[K]("search" + suffix),
	}
}
