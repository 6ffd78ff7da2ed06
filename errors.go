package thaw

import (
	"errors"
	"fmt"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/mcp"
)

// What a handler's error becomes, through wrapping and errors.Join; the first that fits:
//
//   - misuse, and what could not be recorded: error -32603, its key and places in the log;
//   - ErrSuspended: the client is asked, or the task waits, whatever else there is;
//   - RequireScopes' error: status 403 with a challenge, or, in a tool whose response streams
//     already, a result with isError;
//   - *mcp.Error: that JSON-RPC error, as it stands;
//   - *UnsupportedError: error -32021 with the capabilities needed; ErrUnsupported alone
//     is a lack of the deployment and masked as error -32603;
//   - ErrNotFound, from a resource: error -32602 with its URI;
//   - Errorf: in a tool a result with isError and this text, which the model reads;
//     elsewhere error -32603 with this text;
//   - anything else: the same without the text. The client reads "NAME failed
//     (reference XXXX)", the operator's log has the text under that reference.
//
// Only an Errorf's own text is ever sent; what it is wrapped in is for the log.
//
// NewTool, NewPrompt and NewResource hand errors on as they are; what becomes of them is
// decided in one place, when the call ends.
var (
	// ErrSuspended says that the client is asked, or a task waits. Return it at once; wrapping is fine. A
	// handler that swallows it is suspended all the same, and nothing further starts.
	ErrSuspended = call.ErrSuspended
	// ErrDeclined says that the user refused what a question asked for. Returned as it is the
	// model reads that.
	ErrDeclined error = &toolError{text: "the user declined"}
	// ErrDismissed says that the user closed a question without an answer. Returned as it is
	// the model reads that.
	ErrDismissed error = &toolError{text: "the user dismissed the question"}
	// ErrCancelled says that the client has cancelled the task. The step or wait that would have
	// brought it further returns it, and it is the cause of the handler's ctx, which has ended
	// then. After that steps run and are kept again, also on this ctx, to clean up; waits
	// return ErrCancelled, and what the handler returns is dropped.
	ErrCancelled = call.ErrCancelled
	// ErrNoCall says that a ctx is not one that a handler was given, or that the handler has
	// returned.
	ErrNoCall = call.ErrNoCall
	// ErrUnsupported matches every *UnsupportedError.
	ErrUnsupported = errors.New("thaw: not supported")
	// ErrNotFound says that a resource does not exist (F-33).
	ErrNotFound = errors.New("thaw: not found")
)

// UnsupportedError says which client capabilities are needed; they go into
// data.requiredCapabilities (B-31). It matches ErrUnsupported.
type UnsupportedError struct{ Needs mcp.ClientCapabilities }

// Error names the capabilities needed.
func (e *UnsupportedError) Error() string {
	if e == nil {
		return "a nil *thaw.UnsupportedError"
	}
	return fmt.Sprintf("thaw: the client lacks capabilities: %s", e.Needs.Raw)
}

// Is reports whether target is ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// toolError is an error whose text was written for the caller.
type toolError struct {
	text   string
	cause  error
	hidden bool // the text does not say the cause
}

func (e *toolError) Error() string {
	if e.cause == nil || !e.hidden {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

func (e *toolError) Unwrap() error { return e.cause }

// ClientText is the part that the caller reads.
func (e *toolError) ClientText() string { return e.text }

// Errorf makes a tool error whose text the model reads as it stands. A cause given
// with %w is wrapped, and its text is then part of what the model reads: use
// WrapErrorf to keep it to the log.
func Errorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &toolError{text: err.Error(), cause: err}
}

// WrapErrorf is Errorf with a cause that only the log sees.
func WrapErrorf(cause error, format string, args ...any) error {
	return &toolError{text: fmt.Sprintf(format, args...), cause: cause, hidden: true}
}
