package thaw

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/mcp"
)

// Resource is a registered resource; make one with NewResource.
type Resource struct{ declared declared.Resource }

// ResourceTemplate is a registered family of resources; make one with
// NewResourceTemplate.
type ResourceTemplate struct{ declared declared.Template }

// ResourceOptions: each zero value is the protocol's default.
type ResourceOptions struct {
	Title, Description, MIMEType string
	Icons                        []mcp.Icon
	Annotations                  *mcp.Annotations
	Size                         int64         // bytes, for a resource whose size is known
	TTL                          time.Duration // cache hint of a read; 0: stale at once (C-02)
	// Public makes cacheScope "public": any cache may serve it to anyone (C-03). Where callers
	// are identified it is "private" all the same.
	Public bool
	// Scopes are what a caller needs to read it, to complete its variables and to be told that
	// it changed; all of them, as with a tool's.
	Scopes   []string
	Complete map[string]CompleteFunc // by template variable
	Meta     map[string]any          // _meta of the definition
}

// NewResource makes a resource at a fixed URI. An empty URI or MIMEType in the contents
// is filled in. Return ErrNotFound for one that is missing at the moment. NewResource
// panics, naming the resource, on a URI without a scheme, an empty name or a nil
// function. opts may be nil.
func NewResource(uri, name string, fn func(context.Context) ([]mcp.ResourceContents, error), opts *ResourceOptions) *Resource {
	fail := func(format string, args ...any) {
		panic(fmt.Sprintf("thaw: resource %q: %s", uri, fmt.Sprintf(format, args...)))
	}
	if err := checkURI(uri); err != nil {
		fail("%v", err)
	}
	if name == "" {
		fail("the name is empty")
	}
	if fn == nil {
		fail("the function is nil")
	}
	var o ResourceOptions
	if opts != nil {
		o = *opts
	}
	if err := checkIcons(o.Icons); err != nil {
		fail("%v", err)
	}
	if err := declared.CheckScopes(o.Scopes); err != nil {
		fail("Scopes: %v", err)
	}
	if o.Complete != nil {
		fail("only templates have variables to complete")
	}
	return &Resource{declared.Resource{
		Definition: mcp.Resource{
			URI: uri, Name: name, Title: o.Title, Description: o.Description, Icons: slices.Clone(o.Icons),
			MIMEType: o.MIMEType, Size: o.Size, Annotations: o.Annotations, Meta: maps.Clone(o.Meta),
		},
		Read:   fn,
		Scopes: slices.Clone(o.Scopes),
		Hints:  declared.Hints{TTL: max(o.TTL, 0), Public: o.Public},
	}}
}

// checkURI holds RFC 3986 as far as a client would refuse the list over it (F-38).
func checkURI(uri string) error {
	if u, err := url.Parse(uri); err != nil || u.Scheme == "" {
		return errors.New("want an absolute URI")
	}
	for _, c := range []byte(uri) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return errors.New("want a URI of RFC 3986: percent-encode what is not ASCII")
		}
	}
	return nil
}

// Definition is the resource as resources/list gives it.
func (r *Resource) Definition() mcp.Resource { return r.declared.Definition }

// Declared is for runtime/serve; its type cannot be named outside this module.
func (r *Resource) Declared() *declared.Resource { return &r.declared }

// NewResourceTemplate makes a family of resources. In is a struct of strings whose json
// names are the variables of the RFC 6570 template of levels 1 to 3. Values arrive
// percent-decoded, so one may hold a slash, and are the client's: a variable used as a path
// needs the author's check (F-39). A variable that the URI leaves out is "". Return
// ErrNotFound for what does not exist. NewResourceTemplate panics, naming the template,
// on a template that does not parse or has a modifier (:n, *) or a variable twice,
// variables and fields that differ, an empty name or a nil function. opts may be nil.
func NewResourceTemplate[In any](uriTemplate, name string, fn func(context.Context, In) ([]mcp.ResourceContents, error), opts *ResourceOptions) *ResourceTemplate {
	fail := func(format string, args ...any) {
		panic(fmt.Sprintf("thaw: resource template %q: %s", uriTemplate, fmt.Sprintf(format, args...)))
	}
	template, err := parseTemplate(uriTemplate)
	if err != nil {
		fail("%v", err)
	}
	if name == "" {
		fail("the name is empty")
	}
	if fn == nil {
		fail("the function is nil")
	}
	fields, err := stringFields(reflect.TypeFor[In]())
	if err != nil {
		fail("%v", err)
	}
	for _, f := range fields {
		if !template.has(f.name) {
			fail("field %q is no variable of the template", f.name)
		}
	}
	if len(fields) != len(template.variables) {
		fail("its variables are %q, its fields fewer", template.variables)
	}
	var o ResourceOptions
	if opts != nil {
		o = *opts
	}
	if err := checkIcons(o.Icons); err != nil {
		fail("%v", err)
	}
	if err := declared.CheckScopes(o.Scopes); err != nil {
		fail("Scopes: %v", err)
	}
	complete, err := completions(o.Complete, fields)
	if err != nil {
		fail("%v", err)
	}
	return &ResourceTemplate{declared.Template{
		Definition: mcp.ResourceTemplate{
			URITemplate: uriTemplate, Name: name, Title: o.Title, Description: o.Description, Icons: slices.Clone(o.Icons),
			MIMEType: o.MIMEType, Annotations: o.Annotations, Meta: maps.Clone(o.Meta),
		},
		Variables: template.variables,
		Match:     template.values,
		Read: func(ctx context.Context, values map[string]string) ([]mcp.ResourceContents, error) {
			return fn(ctx, fillStrings[In](fields, values))
		},
		Complete: complete,
		Scopes:   slices.Clone(o.Scopes),
		Hints:    declared.Hints{TTL: max(o.TTL, 0), Public: o.Public},
	}}
}

// Definition is the template as resources/templates/list gives it.
func (t *ResourceTemplate) Definition() mcp.ResourceTemplate { return t.declared.Definition }

// Declared is for runtime/serve; its type cannot be named outside this module.
func (t *ResourceTemplate) Declared() *declared.Template { return &t.declared }
