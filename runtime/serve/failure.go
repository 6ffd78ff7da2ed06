package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// failure is a refusal on its way to the client: a JSON-RPC error and its HTTP status.
// docs/errors.md lists every reason.
type failure struct {
	status  int    // 0: 200 (H-25)
	code    int    // of JSON-RPC
	reason  string // stable code in error.data.reason
	message string // one short sentence; nothing of it is secret
	data    []byte // further members of error.data: `"uri":"x"`; or nil
	raw     []byte // error.data as a handler gave it, in place of reason and data
	replay  []byte // a recorded answer from behind its id on, in place of all of these

	allow      string        // header Allow
	challenge  string        // header WWW-Authenticate
	retryAfter time.Duration // header Retry-After, in whole seconds
}

func (f *failure) Error() string { return fmt.Sprintf("%s (%d, %s)", f.message, f.code, f.reason) }

func invalidRequest(message string) *failure {
	return &failure{status: http.StatusBadRequest, code: mcp.CodeInvalidRequest, reason: reasonInvalidRequest, message: "Invalid request: " + message}
}

// invalidParams has status 200: only missing _meta fields have a status of their own (H-25).
func invalidParams(reason, message string) *failure {
	return &failure{code: mcp.CodeInvalidParams, reason: reason, message: message}
}

func headerMismatch(format string, args ...any) *failure {
	return &failure{
		status: http.StatusBadRequest, code: mcp.CodeHeaderMismatch, reason: reasonHeaderMismatch,
		message: "Header mismatch: " + fmt.Sprintf(format, args...),
	}
}

func internal(reason, message string) *failure {
	return &failure{code: mcp.CodeInternalError, reason: reason, message: message}
}

// appendError appends the JSON-RPC error response to the request with this id (nil: none).
func (f *failure) appendError(dst, id []byte) []byte {
	if f.replay != nil {
		return append(append(append(dst, envelopeStart...), id...), f.replay...)
	}
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != nil {
		dst = append(dst, `"id":`...)
		dst = append(dst, id...)
		dst = append(dst, ',')
	}
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(f.code), 10)
	dst = append(dst, `,"message":`...)
	dst = strictjson.AppendString(dst, f.message)
	switch {
	case f.raw != nil:
		dst = append(dst, `,"data":`...)
		dst = append(dst, f.raw...)
	case f.reason != "":
		dst = append(dst, `,"data":{"reason":"`...)
		dst = append(dst, f.reason...)
		dst = append(dst, '"')
		if f.data != nil {
			dst = append(dst, ',')
			dst = append(dst, f.data...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "}}"...)
}

func (f *failure) httpStatus() int {
	if f.status == 0 {
		return http.StatusOK
	}
	return f.status
}

func (f *failure) setHeaders(h http.Header) {
	if f.allow != "" {
		h.Set("Allow", f.allow)
	}
	if f.challenge != "" {
		h.Set("WWW-Authenticate", f.challenge)
	}
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((f.retryAfter+time.Second-1)/time.Second)))
	}
}

// statusOf is the HTTP status that the protocol gives a code, for errors that handlers
// make (spec 0.1).
func statusOf(code int) int {
	switch code {
	case mcp.CodeMissingCapability, mcp.CodeParseError, mcp.CodeInvalidRequest:
		return http.StatusBadRequest
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// reservedCode reports whether a handler must not use a code: -32768 to -32000 belong to
// JSON-RPC and the protocol, but for the five meanings that JSON-RPC gives to all (B-12 to
// B-16). A lack of a capability is an UnsupportedError, which carries its data.
func reservedCode(code int) bool {
	switch code {
	case mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternalError:
		return false
	}
	return -32768 <= code && code <= -32000
}
