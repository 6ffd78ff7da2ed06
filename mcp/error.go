package mcp

import "fmt"

// Codes of JSON-RPC errors (spec 0.1).
const (
	CodeParseError         = -32700 // the body is not JSON
	CodeInvalidRequest     = -32600 // JSON, but no valid JSON-RPC request
	CodeMethodNotFound     = -32601 // unknown, removed, or behind a capability that is not advertised
	CodeInvalidParams      = -32602 // bad params; unknown tool, prompt or resource
	CodeInternalError      = -32603
	CodeHeaderMismatch     = -32020 // a mirrored header is missing, malformed or differs from the body
	CodeMissingCapability  = -32021 // the client did not declare what the request needs
	CodeUnsupportedVersion = -32022
)

// Error is a JSON-RPC error. A handler that returns one, wrapped or not, answers with
// it as it stands: nothing in it may be secret. Own codes lie outside -32768 to -32000
// (B-16); within, only the five of JSON-RPC are sent, any other is masked (B-13 to B-15).
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"` // one short sentence (B-11)
	Data    any    `json:"data,omitempty"`
}

// Error gives the message with its code.
func (e *Error) Error() string {
	if e == nil { // the classic typed nil, which is still an error to whoever gets it
		return "a nil *mcp.Error"
	}
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}
