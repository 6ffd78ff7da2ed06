package mctp

import (
	"net/http"
	"strconv"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// ContentTypeProblem is the media type of a Problem.
const ContentTypeProblem = "application/problem+json"

// Problem is what a request is refused with (RFC 9457).
type Problem struct {
	Status int
	Reason string // a stable code: docs/errors.md lists them
	Detail string // one short sentence; nothing of it is secret
	Errors []Violation
}

// Violation is one thing that is wrong with the parameters.
type Violation struct {
	Pointer string // JSON Pointer below parameters
	Detail  string
}

// AppendJSON appends the problem. Its type is about:blank, so its title is what HTTP calls the
// status.
func (p *Problem) AppendJSON(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"title":`...), http.StatusText(p.Status))
	b = strconv.AppendInt(append(b, `,"status":`...), int64(p.Status), 10)
	b = strictjson.AppendString(append(b, `,"detail":`...), p.Detail)
	b = strictjson.AppendString(append(b, `,"reason":`...), p.Reason)
	for i, v := range p.Errors {
		if i == 0 {
			b = append(b, `,"errors":[`...)
		} else {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, `{"pointer":`...), v.Pointer)
		b = append(strictjson.AppendString(append(b, `,"detail":`...), v.Detail), '}')
		if i == len(p.Errors)-1 {
			b = append(b, ']')
		}
	}
	return append(b, '}')
}
