package wire

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

//go:embed schema.cjs
var extract []byte

// Schema is the JSON Schema of the protocol, ready to judge messages of a server. It is
// not safe for concurrent use.
type Schema struct{ compiler *jsonschema.Compiler }

const schemaURL = "mcp:2026-07-28"

// LoadSchema takes the schema from the installed conformance suite, the only package
// that ships it.
func LoadSchema(ctx context.Context) (*Schema, error) {
	folder, err := npm.Install(ctx)
	if err != nil {
		return nil, err
	}
	text, err := npm.Run(ctx, folder, extract)
	if err != nil {
		return nil, fmt.Errorf("take the schema from the conformance suite: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return &Schema{c}, nil
}

// results names the definition of the complete result of each method.
var results = map[string]string{
	"server/discover":          "DiscoverResult",
	"tools/list":               "ListToolsResult",
	"tools/call":               "CallToolResult",
	"prompts/list":             "ListPromptsResult",
	"prompts/get":              "GetPromptResult",
	"resources/list":           "ListResourcesResult",
	"resources/templates/list": "ListResourceTemplatesResult",
	"resources/read":           "ReadResourceResult",
	"completion/complete":      "CompleteResult",
	"subscriptions/listen":     "SubscriptionsListenResult",
}

// failures names the definition of an error with each code; others are plain errors.
var failures = map[int]string{
	-32020: "HeaderMismatchError",
	-32021: "MissingRequiredClientCapabilityError",
	-32022: "UnsupportedProtocolVersionError",
}

// notifications names the definition of each notification of a server.
var notifications = map[string]string{
	"notifications/progress":                   "ProgressNotification",
	"notifications/message":                    "LoggingMessageNotification",
	"notifications/tools/list_changed":         "ToolListChangedNotification",
	"notifications/prompts/list_changed":       "PromptListChangedNotification",
	"notifications/resources/list_changed":     "ResourceListChangedNotification",
	"notifications/resources/updated":          "ResourceUpdatedNotification",
	"notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}

// Validate judges one message that a server sent in answer to a request of a method.
func (s *Schema) Validate(method string, message []byte) error {
	var m struct {
		Method *string
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	switch {
	case m.Method != nil:
		name, ok := notifications[*m.Method]
		if !ok {
			return fmt.Errorf("the protocol has no notification %q of a server", *m.Method)
		}
		return s.validate(name, message)
	case m.Error != nil:
		name, ok := failures[m.Error.Code]
		if !ok {
			name = "JSONRPCErrorResponse"
		}
		return s.validate(name, message)
	}
	if err := s.validate("JSONRPCResultResponse", message); err != nil {
		return err
	}
	// The schema's own unions take any object with a resultType for an input-required
	// result, so the type decides which definition has to hold.
	var result struct{ ResultType string }
	if err := json.Unmarshal(m.Result, &result); err != nil {
		return err
	}
	name, ok := results[method]
	switch {
	case !ok:
		return fmt.Errorf("the protocol has no result of %q", method)
	case result.ResultType == "input_required":
		name = "InputRequiredResult"
	case result.ResultType != "complete":
		return fmt.Errorf("the protocol has no result type %q", result.ResultType)
	}
	return s.validate(name, m.Result)
}

func (s *Schema) validate(name string, text []byte) error {
	definition, err := s.compiler.Compile(schemaURL + "#/$defs/" + name)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if err := definition.Validate(doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
