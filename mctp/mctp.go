// Package mctp is the form of the Model Context Task Protocol 0.1: paths, JSON and headers. It
// does nothing; runtime/serve answers with it, over the same tools and tasks as MCP.
//
//	GET  /discovery           {"endpoints":{NAME: URL, …}}
//	POST URL                  {"parameters":{…}} -> {"id","status","createdAt"}
//	HEAD URL/ID               X-Task-Status
//	GET  URL/ID               {"id","status","createdAt"}
//	GET  URL/ID/result        {"task":{"id","status","createdAt"},"result":{…}}
//	GET  /openapi.json        the same as OpenAPI 3.1, with the schemas of the tools
//
// A task's status is made of what MCP says of it:
//
//	MCP                                  MCTP
//	working, no worker has begun         pending
//	working                              in_progress
//	input_required                       in_progress, with X-Task-Input-Required: true
//	completed                            completed
//	completed, the result is an error    failed
//	failed                               failed
//	cancelled                            failed, its error has the reason "cancelled"
//
// What a failed task answers as its result has one member, error, with reason and message, and
// after an error of the tool's own with its content.
package mctp

import (
	"cmp"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Paths that no tool can have the name of.
const (
	PathDiscovery = "discovery"
	PathOpenAPI   = "openapi.json"
)

// Headers.
const (
	HeaderStatus         = "X-Task-Status"
	HeaderInputRequired  = "X-Task-Input-Required" // "true", or absent
	HeaderIdempotencyKey = "Idempotency-Key"
)

// MaxIdempotencyKey bounds an Idempotency-Key, in bytes.
const MaxIdempotencyKey = 255

// Reserved reports whether a tool of this name could not be reached: something else is there.
// Whether a path is another's does not depend on its case.
func Reserved(name string) bool {
	switch strings.ToLower(name) {
	case "mcp", PathDiscovery, PathOpenAPI, ".well-known", "health", "healthz", ".", "..", "":
		return true
	}
	return false
}

// Status of a task.
type Status string

// The four statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Failed     Status = "failed"
)

// Ended reports whether nothing more happens to the task.
func (s Status) Ended() bool { return s == Completed || s == Failed }

// Task is a TaskResponse.
type Task struct {
	ID      string
	Status  Status
	Created time.Time
}

// AppendJSON appends the TaskResponse.
func (t Task) AppendJSON(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"id":`...), t.ID)
	b = strictjson.AppendString(append(b, `,"status":`...), string(t.Status))
	b = t.Created.UTC().AppendFormat(append(b, `,"createdAt":"`...), "2006-01-02T15:04:05.000Z07:00")
	return append(b, `"}`...)
}

// AppendResult appends the TaskResultResponse of t with result, a JSON object.
func (t Task) AppendResult(b, result []byte) []byte {
	b = t.AppendJSON(append(b, `{"task":`...))
	return append(append(append(b, `,"result":`...), result...), '}')
}

// Endpoint is a tool and where its tasks are created.
type Endpoint struct{ Name, URL string }

// AppendDiscovery appends the DiscoveryResponse. Names are unique.
func AppendDiscovery(b []byte, endpoints []Endpoint) []byte {
	b = append(b, `{"endpoints":{`...)
	for i, e := range endpoints {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, e.Name)
		b = strictjson.AppendString(append(b, ':'), e.URL)
	}
	return append(b, "}}"...)
}

// Result is the result of a task that is completed, of the JSON of an MCP CallToolResult: its
// structured content if that is an object, else an object with its content.
func Result(call []byte) []byte {
	structured := member(call, "structuredContent")
	if strictjson.Kind(structured) == '{' {
		return structured
	}
	b := append([]byte(`{"content":`), orEmpty(member(call, "content"))...)
	if structured != nil {
		b = append(append(b, `,"structuredContent":`...), structured...)
	}
	return append(b, '}')
}

// IsError reports whether the JSON of an MCP CallToolResult is an error of the tool.
func IsError(call []byte) bool { return strictjson.Kind(member(call, "isError")) == 't' }

// ToolError is the result of a task whose tool ended in an error, of the JSON of an MCP
// CallToolResult: the text of its content is the message. reason is "" for the tool's own errors.
func ToolError(reason string, call []byte) []byte {
	content := orEmpty(member(call, "content"))
	var text []string
	for block := range strictjson.Elements(content) {
		if t, ok := strictjson.String(member(block, "text")); ok {
			text = append(text, t)
		}
	}
	b := Error(cmp.Or(reason, "tool_error"), strings.Join(text, "\n"))
	return append(append(append(b[:len(b)-len("}}")], `,"content":`...), content...), "}}"...)
}

// ProtocolError is the result of a task that failed, of the JSON of an MCP error.
func ProtocolError(failure []byte) []byte {
	message, _ := strictjson.String(member(failure, "message"))
	reason, _ := strictjson.String(member(member(failure, "data"), "reason"))
	return Error(cmp.Or(reason, "failed"), message)
}

// Error is the result of a task that failed.
func Error(reason, message string) []byte {
	b := strictjson.AppendString([]byte(`{"error":{"reason":`), reason)
	return append(strictjson.AppendString(append(b, `,"message":`...), message), "}}"...)
}

// member is a member of what may be no object: the data of an error is its author's.
func member(value []byte, name string) []byte {
	if strictjson.Kind(value) != '{' {
		return nil
	}
	return strictjson.Member(value, name)
}

func orEmpty(list []byte) []byte {
	if strictjson.Kind(list) != '[' {
		return []byte("[]")
	}
	return list
}
