// Package declared is what the server needs to know of the tools, prompts and
// resources that an author declared, and the author's package keeps to itself.
//
// Everything that costs time is a function that computes once and remembers: a cold
// start must not pay for what its first request does not touch.
package declared

import (
	"context"
	"encoding/json"
	"time"

	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/mcp"
)

// Tool is one tool.
type Tool struct {
	Name string
	// Headers are the mirrored parameters, known since registration.
	Headers []schema.Header
	// Definition is the entry of tools/list.
	Definition func() mcp.Tool
	// Input judges arguments.
	Input func() (schema.Validator, error)
	// Output judges structured content; a nil Validator means that the type vouches for
	// it. OutputAlways reads the schema also where the type vouches.
	Output, OutputAlways func() (schema.Validator, error)
	// Call runs the handler below schema and errors.
	Call func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)

	Scopes           []string      // the caller needs all of them
	Timeout          time.Duration // 0: none of its own
	PerMinute, Burst int           // PerMinute 0: no limit

	Tasks                 TaskMode
	TaskTTL, StepTime     time.Duration
	AllowReplay           bool // a state may be used again
	Revision, MinRevision int
}

// TaskMode says when a call becomes a task; the values are the author package's.
type TaskMode int

// The modes.
const (
	TaskOnDemand TaskMode = iota
	TaskAlways
	TaskRequired
	TaskNever
)

// Prompt is one prompt.
type Prompt struct {
	Definition mcp.Prompt
	// Get takes arguments whose names and presence the server has checked.
	Get      func(ctx context.Context, args map[string]string) ([]mcp.PromptMessage, error)
	Complete map[string]CompleteFunc
	Scopes   []string // the caller needs all of them
}

// CompleteFunc suggests values for one argument.
type CompleteFunc = func(ctx context.Context, prefix string, args map[string]string) ([]string, error)

// Resource is one resource.
type Resource struct {
	Definition mcp.Resource
	Read       func(ctx context.Context) ([]mcp.ResourceContents, error)
	Scopes     []string // the caller needs all of them
	Hints
}

// Template is one family of resources.
type Template struct {
	Definition mcp.ResourceTemplate
	Variables  []string
	// Match returns the values of the template's variables in uri.
	Match    func(uri string) (values map[string]string, ok bool)
	Read     func(ctx context.Context, values map[string]string) ([]mcp.ResourceContents, error)
	Complete map[string]CompleteFunc
	Scopes   []string // the caller needs all of them
	Hints
}

// Hints are the cache hints of a read.
type Hints struct {
	TTL    time.Duration
	Public bool
}
