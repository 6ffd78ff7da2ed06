// Package functions is the list of tools that this repository serves. Each tool is a
// folder below it that imports package thaw and its own library, never where it runs;
// functions/server is the one main.
package functions

import (
	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/functions/textanalysis"
)

// Server is what functions/server offers.
func Server() thaw.Server {
	return thaw.Server{
		Name:         "thaw-functions",
		Title:        "thaw functions",
		Instructions: "Ready-made functions that need no set-up. Each works on what it is given and keeps nothing.",
		WebsiteURL:   "https://github.com/thaw-mcp/thaw",
		Tools: []*thaw.Tool{
			textanalysis.New(),
		},
	}
}
