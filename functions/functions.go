// Package functions is the list of tools that this repository serves. Each tool is a
// folder below it that imports package thaw and its own library, never where it runs;
// functions/server is the one main.
package functions

import (
	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/provision"
	"github.com/thaw-mcp/thaw/functions/textanalysis"
)

// Deps are what tools need of the place where they run. A tool whose need is nil is not
// served.
type Deps struct {
	Files deletefiles.Files // of delete_files
	Cloud provision.Cloud   // of provision_environment
	// CloudScopes are what callers of provision_environment need.
	CloudScopes []string
}

// Server is what functions/server offers.
func Server(deps Deps) thaw.Server {
	s := thaw.Server{
		Name:         "thaw-functions",
		Title:        "thaw functions",
		Instructions: "Ready-made functions. Each says in its description what it does, and none changes anything before the user has agreed.",
		WebsiteURL:   "https://github.com/thaw-mcp/thaw",
		Tools:        []*thaw.Tool{textanalysis.New()},
	}
	if deps.Files != nil {
		s.Tools = append(s.Tools, deletefiles.New(deps.Files))
	}
	if deps.Cloud != nil {
		s.Tools = append(s.Tools, provision.New(deps.Cloud, deps.CloudScopes...))
	}
	return s
}
