package lambdahost

import (
	"fmt"
	"net/http"
	"strconv"
)

// JSON-RPC error codes of the answers that this package gives itself.
const (
	codeParseError     = -32700
	codeInvalidRequest = -32600
	codeInternalError  = -32603
)

// refusal is an answer of this package instead of the handler's: a JSON-RPC error
// without id, since the request's was not read. Its message is constant, or built
// from numbers; nothing of the request or of a panic gets into it.
type refusal struct {
	status  int
	code    int
	reason  string // the stable code in error.data.reason
	message string
}

func invalidRequest(reason, message string) *refusal {
	return &refusal{http.StatusBadRequest, codeInvalidRequest, reason, message}
}

var (
	emptyEvent   = invalidRequest("empty_event", "the event is empty")
	internal     = &refusal{http.StatusInternalServerError, codeInternalError, "internal", "internal error"}
	outOfTime    = &refusal{http.StatusGatewayTimeout, codeInternalError, "deadline_exceeded", "the request was not finished in time"}
	jsonResponse = []string{"application/json"}
)

func tooLarge(size, limit int) *refusal {
	return &refusal{http.StatusInternalServerError, codeInternalError, "response_too_large",
		fmt.Sprintf("the response of %d bytes exceeds the platform's limit of %d bytes", size, limit)}
}

func headerTooLarge(size, limit int) *refusal {
	return &refusal{http.StatusInternalServerError, codeInternalError, "response_too_large",
		fmt.Sprintf("the response's header of %d bytes exceeds the platform's limit of %d bytes", size, limit)}
}

func (f *refusal) response(isHead bool) *response {
	res := &response{status: f.status, header: http.Header{"Content-Type": jsonResponse}}
	if isHead {
		return res
	}
	b := append([]byte(nil), `{"jsonrpc":"2.0","error":{"code":`...)
	b = strconv.AppendInt(b, int64(f.code), 10)
	b = append(b, `,"message":`...)
	b = appendString(b, f.message)
	b = append(b, `,"data":{"reason":`...)
	b = appendString(b, f.reason)
	b = append(b, `}}}`...)
	res.body, res.size = b, len(b)
	return res
}
