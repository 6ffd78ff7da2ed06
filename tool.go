package thaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Tool is a registered tool; make one with NewTool or NewRawTool. It is immutable and
// may be shared by servers.
type Tool struct{ declared declared.Tool }

// HandlerFunc is a handler with its types erased. args are the arguments after
// validation and defaults, one JSON object.
type HandlerFunc func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error)

// Middleware wraps a HandlerFunc. It runs inside validation, deadline and panic
// containment, once per run of the handler. The server logs failures, panics and timeouts
// itself, and an Errorf at Info.
type Middleware func(next HandlerFunc) HandlerFunc

// ToolOptions: each zero value is the protocol's default.
type ToolOptions struct {
	Title          string
	Icons          []mcp.Icon
	ReadOnly       bool // readOnlyHint: changes nothing
	NonDestructive bool // destructiveHint false: only adds
	Idempotent     bool // idempotentHint: twice is as good as once
	ClosedWorld    bool // openWorldHint false: touches nothing outside
	// OutputSchema stands in place of the inferred one. Results are then checked
	// against it.
	OutputSchema json.RawMessage
	// Scopes are what a caller needs, all of them; one that lacks any gets status 403 with a
	// challenge that names them. An anonymous caller has none. The tool is listed
	// for everybody. See RequireScopes for scopes that depend on the arguments.
	Scopes []string
	// Timeout bounds one run; 0 is what the host gives. The handler's ctx ends then, and the
	// client gets its answer whether the handler heeds ctx or not; one that does not goes on
	// for nobody, on Lambda into the next invocation.
	Timeout time.Duration
	// Rate limits calls; nil is none (F-18).
	Rate *Rate
	// StepTime is the longest that a step takes: in a task one begins only if there is so much
	// time left. 0 is 60 s.
	StepTime time.Duration
	// Tasks says when a call becomes a task; TaskTTL for how long the task is kept, from its
	// creation on: 0 is 24 h.
	Tasks   TaskMode
	TaskTTL time.Duration
	// AllowReplay lets a requestState be used again until it expires. Without it that is so
	// only for a tool that is ReadOnly or Idempotent; a server without a store cannot
	// tell.
	AllowReplay bool
	// Revision is to be raised when old journals no longer fit the handler: when steps or
	// questions were renamed or mean something else. From 0 to 2^32-1.
	Revision int
	// MinRevision refuses to continue calls that began below it: their users start again.
	MinRevision int
	Meta        map[string]any // _meta of the tool's definition
}

// Rate is a token bucket for each caller, in this process. A caller is one whatever client
// it uses; anonymous callers share one.
// Burst 0 is PerMinute.
type Rate struct{ PerMinute, Burst int }

// TaskMode says when a call of a tool becomes a task (T-04): work that outlives its request,
// on a server with a store and for a client that knows tasks.
type TaskMode int

// The modes.
const (
	TaskOnDemand TaskMode = iota // where the handler says ContinueAsTask and the client can
	TaskAlways                   // from the start where the client can; inline elsewhere
	TaskRequired                 // from the start; a client that cannot gets -32021 (T-05)
	TaskNever                    // ContinueAsTask does nothing
)

// NewTool makes a tool of a function. Schemas come from In and Out.
//
// A field of In is required unless it has omitempty, omitzero or a default, or is a
// pointer. Unknown members are refused. Tags say more:
//
//	json:"name,omitempty"  as in encoding/json, but names match exactly
//	jsonschema:"text"      what the field is for
//	enum:"a,b"             allowed values of a string, integer or number
//	default:"v"            for an absent member: a string as it stands, otherwise JSON
//	minimum, maximum       of an integer or number
//	minLength, maxLength   of a string, in characters
//	minItems, maxItems     of a slice
//	pattern:"re"           of a string; RE2 syntax, found anywhere unless anchored
//	format:"date-time"     of a string; also date, time, email, uri, uuid, ipv4, ipv6
//	header:"Name"          the client mirrors the argument in the header Mcp-Param-Name
//
// On a slice the tags for strings and numbers apply to its items. A tag that does not fit
// its field is an error; keys that are none of these are somebody else's and ignored.
//
// In is a struct, or a map with string keys. Out decides the result: string,
// mcp.Content and []mcp.Content give content only; struct{} gives empty content;
// *mcp.CallToolResult is the result as it stands; json.RawMessage and any give
// structured content of any shape plus its text; every other type gives structured
// content plus its text, and an output schema inferred from the type.
//
// Errors: see Errorf. NewTool panics, naming the tool, on a bad name, a nil function or
// a wrong tag: these are faults of the program, not of its input. opts may be nil and
// is copied.
func NewTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts *ToolOptions) *Tool {
	if fn == nil {
		panic(fmt.Sprintf("thaw: tool %q: the function is nil", name))
	}
	in, err := schema.Of(reflect.TypeFor[In](), schema.Options{EnumOf: enumOf})
	if err != nil {
		panic(fmt.Sprintf("thaw: tool %q: %v", name, err))
	}
	d := declared.Tool{
		Headers: in.Headers(),
		Input:   func() (schema.Validator, error) { return in.Validator(), nil },
	}
	if err := checkResult(reflect.TypeFor[Out]()); err != nil {
		panic(fmt.Sprintf("thaw: tool %q: result: %v", name, err))
	}
	result := resultOf[Out]()
	var out *schema.Type
	if result.structured {
		if out, err = schema.Of(reflect.TypeFor[Out](), schema.Options{EnumOf: enumOf, Output: true}); err != nil {
			panic(fmt.Sprintf("thaw: tool %q: result: %v", name, err))
		}
		d.OutputAlways = func() (schema.Validator, error) { return out.Validator(), nil }
	}
	d.Call = func(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
		var v In
		if err := strictjson.Unmarshal(args, &v); err != nil {
			// Validation accepts only what decodes; middleware can break that.
			return nil, fmt.Errorf("decode arguments: %w", err)
		}
		r, err := fn(ctx, v)
		if err != nil {
			return nil, err
		}
		return result.encode(r)
	}
	return finish(name, description, d, func() (input, output json.RawMessage) {
		if out != nil {
			output = out.AppendJSON(nil)
		}
		return in.AppendJSON(nil), output
	}, opts)
}

// NewRawTool makes a tool with a hand-written schema. Arguments are checked against it
// and reach fn as they were sent; nothing else is done for fn: no decoding, no
// defaults. The schema is JSON Schema 2020-12, or draft-07 if its $schema says so; no
// other dialect is supported (F-22, F-23). Its root has "type": "object" (F-06), a $ref
// never leaves it (F-24), and patterns are in RE2 syntax.
//
// NewRawTool panics, naming the tool, on a bad name, a nil function or a schema that is
// no JSON object with that root or has a wrong x-mcp-header (M-15 to M-17). A schema
// that is wrong further in is found by Server.Check, or on first use. opts may be nil
// and is copied.
func NewRawTool(name, description string, inputSchema json.RawMessage, fn HandlerFunc, opts *ToolOptions) *Tool {
	if fn == nil {
		panic(fmt.Sprintf("thaw: tool %q: the function is nil", name))
	}
	in, err := strictjson.AppendCompact(nil, inputSchema)
	if err == nil {
		err = schema.CheckInputRoot(in)
	}
	if err != nil {
		panic(fmt.Sprintf("thaw: tool %q: input schema: %v", name, err))
	}
	headers, err := schema.HeadersOf(in)
	if err != nil {
		panic(fmt.Sprintf("thaw: tool %q: input schema: %v", name, err))
	}
	d := declared.Tool{
		Headers: headers,
		Input:   sync.OnceValues(func() (schema.Validator, error) { return schema.Compile(in) }),
		Call:    fn,
	}
	return finish(name, description, d, func() (input, output json.RawMessage) { return in, nil }, opts)
}

// finish adds what both kinds of tool have in common. d.OutputAlways may be nil.
func finish(name, description string, d declared.Tool, schemas func() (input, output json.RawMessage), opts *ToolOptions) *Tool {
	if err := checkName(name); err != nil {
		panic(fmt.Sprintf("thaw: tool %q: %v", name, err))
	}
	o := &noOptions
	if opts != nil {
		copied := *opts
		copied.Icons, copied.Meta = slices.Clone(opts.Icons), maps.Clone(opts.Meta)
		o = &copied
	}
	if err := checkIcons(o.Icons); err != nil {
		panic(fmt.Sprintf("thaw: tool %q: %v", name, err))
	}
	if err := declared.CheckScopes(o.Scopes); err != nil {
		panic(fmt.Sprintf("thaw: tool %q: Scopes: %v", name, err))
	}
	if o.Timeout < 0 {
		panic(fmt.Sprintf("thaw: tool %q: Timeout is negative", name))
	}
	if o.Rate != nil {
		if o.Rate.PerMinute <= 0 || o.Rate.Burst < 0 {
			panic(fmt.Sprintf("thaw: tool %q: Rate needs PerMinute above 0 and Burst of 0 or more", name))
		}
		d.PerMinute, d.Burst = o.Rate.PerMinute, o.Rate.Burst
		if d.Burst == 0 {
			d.Burst = d.PerMinute
		}
	}
	d.Output = noValidator
	if d.OutputAlways == nil {
		d.OutputAlways = noValidator
	}
	if o.OutputSchema != nil {
		out, err := strictjson.AppendCompact(nil, o.OutputSchema)
		if err != nil {
			panic(fmt.Sprintf("thaw: tool %q: output schema: %v", name, err))
		}
		inferred := schemas
		schemas = func() (json.RawMessage, json.RawMessage) {
			input, _ := inferred()
			return input, out
		}
		d.Output = sync.OnceValues(func() (schema.Validator, error) { return schema.Compile(out) })
		d.OutputAlways = d.Output
	}
	for _, revision := range []int{o.Revision, o.MinRevision} {
		if revision < 0 || int64(revision) > math.MaxUint32 {
			panic(fmt.Sprintf("thaw: tool %q: a revision is from 0 to 2^32-1", name))
		}
	}
	if o.MinRevision > o.Revision {
		panic(fmt.Sprintf("thaw: tool %q: MinRevision is above Revision", name))
	}
	if o.StepTime < 0 || o.TaskTTL < 0 {
		panic(fmt.Sprintf("thaw: tool %q: StepTime and TaskTTL are not negative", name))
	}
	if o.Tasks < TaskOnDemand || o.Tasks > TaskNever {
		panic(fmt.Sprintf("thaw: tool %q: Tasks is none of the modes", name))
	}
	d.Tasks, d.TaskTTL, d.StepTime = declared.TaskMode(o.Tasks), o.TaskTTL, o.StepTime
	if d.TaskTTL == 0 {
		d.TaskTTL = defaultTaskTTL
	}
	if d.StepTime == 0 {
		d.StepTime = defaultStepTime
	}
	d.AllowReplay = o.AllowReplay || o.ReadOnly || o.Idempotent
	d.Revision, d.MinRevision = o.Revision, o.MinRevision
	d.Name, d.Timeout, d.Scopes = name, o.Timeout, slices.Clone(o.Scopes)
	d.Definition = sync.OnceValue(func() mcp.Tool {
		input, output := schemas()
		return mcp.Tool{
			Name:         name,
			Title:        o.Title,
			Description:  description,
			Icons:        o.Icons,
			InputSchema:  input,
			OutputSchema: output,
			Annotations:  o.annotations(),
			Meta:         o.Meta,
		}
	})
	return &Tool{d}
}

const (
	defaultTaskTTL  = 24 * time.Hour
	defaultStepTime = 60 * time.Second
)

var noOptions ToolOptions

func noValidator() (schema.Validator, error) { return nil, nil }

func (o *ToolOptions) annotations() *mcp.ToolAnnotations {
	if !o.ReadOnly && !o.NonDestructive && !o.Idempotent && !o.ClosedWorld {
		return nil
	}
	a := &mcp.ToolAnnotations{ReadOnlyHint: o.ReadOnly, IdempotentHint: o.Idempotent}
	if o.NonDestructive {
		a.DestructiveHint = new(bool)
	}
	if o.ClosedWorld {
		a.OpenWorldHint = new(bool)
	}
	return a
}

// checkName holds F-05.
func checkName(name string) error {
	if len(name) == 0 || len(name) > 128 {
		return errors.New("a name has 1 to 128 characters")
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.') {
			return errors.New("a name has only the characters A-Z a-z 0-9 . _ -")
		}
	}
	return nil
}

// checkIcons refuses what clients would not load (B-36).
func checkIcons(icons []mcp.Icon) error {
	for _, icon := range icons {
		scheme, _, _ := strings.Cut(icon.Src, ":")
		if scheme != "https" && scheme != "http" && scheme != "data" {
			return fmt.Errorf("icon %q is no https, http or data URI", icon.Src)
		}
	}
	return nil
}

// Definition is the tool as tools/list gives it. Schemas are resolved on first use.
func (t *Tool) Definition() mcp.Tool { return t.declared.Definition() }

// Call runs the handler once with ctx, below schema and errors: args are not checked
// and an error comes back as the handler gave it.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
	return t.declared.Call(ctx, args)
}

// Declared is for runtime/serve; its type cannot be named outside this module.
func (t *Tool) Declared() *declared.Tool { return &t.declared }

// enumOf finds the Enum method that makes a named string type an enum.
func enumOf(t reflect.Type) ([]schema.Choice, bool) {
	e, ok := reflect.Zero(t).Interface().(interface{ Enum() []Choice })
	if !ok {
		return nil, false
	}
	var choices []schema.Choice
	for _, c := range e.Enum() {
		choices = append(choices, schema.Choice(c))
	}
	return choices, true
}
