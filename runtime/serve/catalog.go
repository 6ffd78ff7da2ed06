package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/mctp"
)

// catalog is one thaw.Server made ready to be looked up. It never changes; what it
// resolves lazily it resolves once.
type catalog struct {
	tools     map[string]*tool
	prompts   map[string]*prompt
	resources map[string]*resource
	templates []*resource

	lists    [4]*list
	discover func() ([]byte, error)
	// resolve does now what would be done on first use, and finds what is wrong in it.
	resolve func() error
	// metaEnd is the end of every result: `,"_meta":{…serverInfo…}}`, or "}".
	metaEnd []byte
	// serverInfo is the member alone, for results that have a _meta of their own.
	serverInfo []byte

	name          string
	version       string   // "" where the server does not say who it is
	heading       string   // the server's Title
	basicScopes   []string // those that everything in it needs
	capabilities  mcp.ServerCapabilities
	clientLogging bool
	streams       bool // the host can
	// buffered is what this is to a request that cannot be answered with a stream although the
	// host can stream; nil where the host cannot.
	buffered  *catalog
	documents *documents // of MCTP
}

// tool is a tool with what its calls need.
type tool struct {
	*declared.Tool
	bindings []binding
	handler  thaw.HandlerFunc // in the middleware
	rate     *rateLimit
}

func (t *tool) needs() []string { return t.Scopes }

type prompt struct{ *declared.Prompt }

func (p *prompt) needs() []string { return p.Scopes }

// resource is a fixed resource, or a template.
type resource struct {
	fixed    *declared.Resource
	template *declared.Template
	hints    []byte // `,"ttlMs":0,"cacheScope":"private"`
	scopes   []string
}

func (r *resource) needs() []string { return r.scopes }

func (h *Handler) compile(s thaw.Server) (*catalog, error) {
	if s.Name == "" {
		return nil, errors.New("the server has no Name")
	}
	// What takes a credential to get is for nobody else, whatever the author said (C-06).
	shared := len(h.auth) == 0
	s.PublicLists = s.PublicLists && shared
	c := &catalog{
		name:          s.Name,
		tools:         make(map[string]*tool, len(s.Tools)),
		prompts:       make(map[string]*prompt, len(s.Prompts)),
		resources:     make(map[string]*resource, len(s.Resources)),
		clientLogging: clientLogging(&s),
		streams:       h.host.Streaming,
		metaEnd:       []byte("}"),
		documents:     &documents{},
	}
	if !s.OmitServerInfo {
		if s.Version == "" {
			s.Version = buildVersion()
		}
		c.version, c.heading = s.Version, s.Title
		info, err := strictjson.Marshal(mcp.Implementation{Name: s.Name, Version: s.Version, Title: s.Title,
			Description: s.Description, WebsiteURL: s.WebsiteURL, Icons: s.Icons})
		if err != nil {
			return nil, fmt.Errorf("serverInfo: %w", err)
		}
		c.serverInfo = append([]byte(`"`+mcp.MetaServerInfo+`":`), info...)
		c.metaEnd = append(append([]byte(`,"_meta":{`), c.serverInfo...), "}}"...)
	}
	if err := h.addTools(c, &s); err != nil {
		return nil, err
	}
	// The lists are read again when they are first asked for, and the author's slices stay
	// the author's.
	s.Prompts, s.Resources, s.ResourceTemplates = slices.Clone(s.Prompts), slices.Clone(s.Resources), slices.Clone(s.ResourceTemplates)
	var errs []error
	for i, p := range s.Prompts {
		if p == nil {
			return nil, fmt.Errorf("prompt %d is nil", i)
		}
		d := p.Declared()
		if c.prompts[d.Definition.Name] != nil {
			errs = append(errs, fmt.Errorf("prompt %q is declared twice", d.Definition.Name))
		}
		c.prompts[d.Definition.Name] = &prompt{d}
	}
	for i, r := range s.Resources {
		if r == nil {
			return nil, fmt.Errorf("resource %d is nil", i)
		}
		d := r.Declared()
		if c.resources[d.Definition.URI] != nil {
			errs = append(errs, fmt.Errorf("resource %q is declared twice", d.Definition.URI))
		}
		c.resources[d.Definition.URI] = &resource{fixed: d, hints: hints(d.TTL, d.Public && shared), scopes: d.Scopes}
	}
	for i, t := range s.ResourceTemplates {
		if t == nil {
			return nil, fmt.Errorf("resource template %d is nil", i)
		}
		d := t.Declared()
		if slices.ContainsFunc(c.templates, func(r *resource) bool {
			return r.template.Definition.URITemplate == d.Definition.URITemplate
		}) {
			errs = append(errs, fmt.Errorf("resource template %q is declared twice", d.Definition.URITemplate))
		}
		c.templates = append(c.templates, &resource{template: d, hints: hints(d.TTL, d.Public && shared), scopes: d.Scopes})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.basicScopes = c.commonScopes()
	h.addLists(c, &s)
	before := h.catalog.Load()
	c.capabilities = h.capabilitiesOf(&s, before, c.streams)
	c.discover = sync.OnceValues(func() ([]byte, error) { return c.encodeDiscover(&s) })
	if c.streams {
		if before != nil {
			before = before.buffered
		}
		c.buffered = c.withoutStreams(&s, h.capabilitiesOf(&s, before, false))
	}
	c.resolve = func() error {
		errs := []error{s.Check()}
		for _, l := range c.lists {
			_, err := l.first()
			errs = append(errs, err)
		}
		_, err := c.discover()
		return errors.Join(append(errs, err)...)
	}
	return c, nil
}

// withoutStreams is c as a request sees it that cannot be answered with a stream: some doors of one
// function take streams and some do not, and so may the middleware in front of some paths.
func (c *catalog) withoutStreams(s *thaw.Server, capabilities mcp.ServerCapabilities) *catalog {
	b := *c
	b.streams, b.capabilities = false, capabilities
	b.discover = sync.OnceValues(func() ([]byte, error) { return b.encodeDiscover(s) })
	return &b
}

// addTools fills c.tools and leaves in s the tools that are served.
func (h *Handler) addTools(c *catalog, s *thaw.Server) error {
	var served []*thaw.Tool
	var errs []error
	known := map[string]bool{}
	for i, t := range s.Tools {
		if t == nil {
			return fmt.Errorf("tool %d is nil", i)
		}
		d := t.Declared()
		if d.Name == "" {
			return fmt.Errorf("tool %d was not made by NewTool or NewRawTool", i)
		}
		if known[d.Name] {
			errs = append(errs, fmt.Errorf("tool %q is declared twice", d.Name))
		}
		known[d.Name] = true
		if len(h.only) > 0 && !slices.Contains(h.only, d.Name) {
			continue
		}
		if h.mctp && mctp.Reserved(d.Name) {
			errs = append(errs, fmt.Errorf("tool %q: the name is reserved where MCTP is served (THAW_MCTP=on)", d.Name))
		}
		served = append(served, t)
		entry := &tool{Tool: d, bindings: bindingsOf(d.Headers), handler: d.Call}
		for i := range s.Middleware {
			n := len(s.Middleware) - 1 - i
			if s.Middleware[n] != nil {
				entry.handler = s.Middleware[n](entry.handler)
			}
			if s.Middleware[n] == nil || entry.handler == nil {
				return fmt.Errorf("middleware %d is nil, or returned nil for tool %q", n, d.Name)
			}
		}
		if d.PerMinute > 0 {
			entry.rate = h.rateOf(d)
		}
		c.tools[d.Name] = entry
	}
	for _, name := range h.only {
		if !known[name] {
			errs = append(errs, fmt.Errorf("tool %q is to be served and is not declared", name))
		}
	}
	s.Tools = served
	return errors.Join(errs...)
}

// rateOf keeps a tool's limit over a Replace, or every Replace would be a free burst.
func (h *Handler) rateOf(d *declared.Tool) *rateLimit {
	if before := h.catalog.Load(); before != nil {
		if t := before.tools[d.Name]; t != nil && t.Tool == d {
			return t.rate
		}
	}
	return newRateLimit(d.PerMinute, d.Burst)
}

// clientLogging reads a switch that is deprecated by the protocol and served until it is
// gone (D-03).
func clientLogging(s *thaw.Server) bool {
	//lint:ignore SA1019 see above
	return s.ClientLogging
}

// capabilitiesOf advertises exactly what answers (V-09). Changes are told only where a
// process lives on and can stream (L-15).
func (h *Handler) capabilitiesOf(s *thaw.Server, last *catalog, streams bool) mcp.ServerCapabilities {
	live := h.host.Resident && streams
	var c mcp.ServerCapabilities
	completes := false
	// What was offered once stays offered, empty if need be: clients keep what discover
	// said.
	var before mcp.ServerCapabilities
	if last != nil {
		before = last.capabilities
	}
	if len(s.Tools) > 0 || before.Tools != nil {
		c.Tools = &mcp.ListCapability{ListChanged: live}
	}
	if len(s.Prompts) > 0 || before.Prompts != nil {
		c.Prompts = &mcp.ListCapability{ListChanged: live}
	}
	if len(s.Resources)+len(s.ResourceTemplates) > 0 || before.Resources != nil {
		c.Resources = &mcp.ResourceCapability{ListChanged: live, Subscribe: live}
	}
	for _, p := range s.Prompts {
		completes = completes || len(p.Declared().Complete) > 0
	}
	for _, t := range s.ResourceTemplates {
		completes = completes || len(t.Declared().Complete) > 0
	}
	if completes || before.Completions != nil {
		c.Completions = &struct{}{}
	}
	if h.engine != nil {
		c.Extensions = map[string]json.RawMessage{tasksExtension: json.RawMessage("{}")} // T-01
	}
	if clientLogging(s) && streams || before.Logging != nil {
		c.Logging = &struct{}{}
	}
	return c
}

func (c *catalog) encodeDiscover(s *thaw.Server) ([]byte, error) {
	b, err := strictjson.Marshal(struct {
		ResultType        string                 `json:"resultType"`
		SupportedVersions []string               `json:"supportedVersions"`
		Capabilities      mcp.ServerCapabilities `json:"capabilities"`
		Instructions      string                 `json:"instructions,omitempty"`
	}{"complete", []string{mcp.Version}, c.capabilities, s.Instructions})
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], listHints(s)...)
	return append(b, c.metaEnd...), nil
}

// buildVersion is the version of the main module, for servers that state none.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
