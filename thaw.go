// Package thaw is all that an author of tools writes against.
//
// A tool is one function, func(ctx, In) (Out, error), made with [NewTool]; prompts and
// resources are made the same way. Everything else a handler can do is a function of
// this package on the ctx it was given: [Progress], [Logger], [CallInfoFrom]. The
// package knows no cloud and no HTTP: where a server runs is the business of the main
// that hands it to runtime/serve.
package thaw

import (
	"errors"
	"fmt"
	"time"

	"github.com/thaw-mcp/thaw/mcp"
)

// Server is what one deployment offers: data, no behaviour. Lists keep the order of
// the slices (F-03).
type Server struct {
	Name         string // required
	Version      string // "": the main module's version as built
	Title        string
	Description  string
	Instructions string // guidance that helps a model use the server (V-08)
	WebsiteURL   string
	Icons        []mcp.Icon

	Tools             []*Tool
	Prompts           []*Prompt
	Resources         []*Resource
	ResourceTemplates []*ResourceTemplate

	// Middleware wraps every tool handler, the first outermost.
	Middleware []Middleware

	// ListTTL is the cache hint of the lists and of server/discover (C-01). 0 is 5
	// minutes; negative is stale at once.
	ListTTL time.Duration
	// PublicLists makes the lists' cacheScope "public": any cache may serve them to
	// anyone (C-03). Default private, and private wherever callers are identified.
	PublicLists bool
	// ClientLogging lets handlers send log messages to clients that ask for them, and
	// advertises it.
	//
	// Deprecated: logging is deprecated by the protocol (SEP-2577, earliest removal
	// 2027-07-28). It works until then.
	ClientLogging bool
	// OmitServerInfo leaves serverInfo out of results (B-28).
	OmitServerInfo bool
}

// Check resolves every schema now, looks for names used twice and joins all it finds
// wrong. Servers that resolve lazily find the same faults on first use.
func (s Server) Check() error {
	var errs []error
	if s.Name == "" {
		errs = append(errs, errors.New("the server has no Name"))
	}
	if err := checkIcons(s.Icons); err != nil {
		errs = append(errs, err)
	}
	names := map[string]bool{}
	unique := func(kind, name string) {
		if names[kind+" "+name] {
			errs = append(errs, fmt.Errorf("%s %q is declared twice", kind, name))
		}
		names[kind+" "+name] = true
	}
	for i, t := range s.Tools {
		if t == nil {
			errs = append(errs, fmt.Errorf("tool %d is nil", i))
			continue
		}
		unique("tool", t.declared.Name)
		if _, err := t.declared.Input(); err != nil {
			errs = append(errs, fmt.Errorf("tool %q: input schema: %w", t.declared.Name, err))
		}
		if _, err := t.declared.OutputAlways(); err != nil {
			errs = append(errs, fmt.Errorf("tool %q: output schema: %w", t.declared.Name, err))
		}
	}
	for i, p := range s.Prompts {
		if p == nil {
			errs = append(errs, fmt.Errorf("prompt %d is nil", i))
			continue
		}
		unique("prompt", p.declared.Definition.Name)
	}
	for i, r := range s.Resources {
		if r == nil {
			errs = append(errs, fmt.Errorf("resource %d is nil", i))
			continue
		}
		unique("resource", r.declared.Definition.URI)
	}
	for i, t := range s.ResourceTemplates {
		if t == nil {
			errs = append(errs, fmt.Errorf("resource template %d is nil", i))
			continue
		}
		unique("resource template", t.declared.Definition.URITemplate)
	}
	return errors.Join(errs...)
}

// Choice is a value and what a person reads in its place. A named string type with a
// method Enum() []Choice becomes an enum in schemas.
type Choice struct{ Value, Title string }
