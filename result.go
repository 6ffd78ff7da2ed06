package thaw

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/thaw-mcp/thaw/mcp"
)

// resulter turns a handler's Out into a result; the choice is made once, by type.
type resulter[Out any] struct {
	// structured: Out has an output schema of its own.
	structured bool
	encode     func(Out) (*mcp.CallToolResult, error)
}

// checkResult refuses types of results that would not become what their author means.
func checkResult(t reflect.Type) error {
	content := reflect.TypeFor[mcp.Content]()
	element := t
	if t.Kind() == reflect.Slice && t.Elem() != content {
		element = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[error]():
		return errors.New("an error is returned as the error")
	case element != t && element.Implements(content), reflect.PointerTo(element).Implements(content) && !element.Implements(content):
		return fmt.Errorf("%v is no content: return a pointer, mcp.Content or []mcp.Content", t)
	}
	return nil
}

func resultOf[Out any]() resulter[Out] {
	contentOnly := func(content func(any) []mcp.Content) resulter[Out] {
		return resulter[Out]{encode: func(out Out) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content(out)}, nil
		}}
	}
	switch t := reflect.TypeFor[Out](); t {
	case reflect.TypeFor[string]():
		return contentOnly(func(out any) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: out.(string)}} })
	case reflect.TypeFor[struct{}]():
		return contentOnly(func(any) []mcp.Content { return nil })
	case reflect.TypeFor[[]mcp.Content]():
		return contentOnly(func(out any) []mcp.Content { return out.([]mcp.Content) })
	case reflect.TypeFor[*mcp.CallToolResult](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return resulter[Out]{encode: func(out Out) (*mcp.CallToolResult, error) { return encodeAny(out) }}
	default:
		if t.Implements(reflect.TypeFor[mcp.Content]()) {
			return contentOnly(func(out any) []mcp.Content {
				content, _ := out.(mcp.Content)
				return []mcp.Content{content}
			})
		}
		return resulter[Out]{structured: true, encode: encodeValue[Out]}
	}
}

// encodeAny goes by what out is at run time.
func encodeAny(out any) (*mcp.CallToolResult, error) {
	switch v := out.(type) {
	case *mcp.CallToolResult:
		if v == nil {
			return nil, errors.New("the handler returned neither a result nor an error")
		}
		return v, nil
	case json.RawMessage:
		if len(v) == 0 {
			return nil, errors.New("the handler returned an empty json.RawMessage, which is no JSON value")
		}
	}
	return mcp.StructuredResult(out) // which checks and compacts JSON
}

func encodeValue[Out any](out Out) (*mcp.CallToolResult, error) { return mcp.StructuredResult(out) }
