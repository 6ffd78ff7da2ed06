package lambdahost

import (
	"fmt"
	"strings"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// door is the kind of front door an event came through. It decides how the event
// is read and in which form the answer is written.
type door int

const (
	noDoor      door = iota
	restAPI          // API Gateway REST API
	httpAPI1         // API Gateway HTTP API, payload format 1.0
	httpAPI2         // API Gateway HTTP API, payload format 2.0
	functionURL      // Lambda Function URL; payload format 2.0
	albSingle        // Application Load Balancer, one value a header
	albMulti         // Application Load Balancer, lists of values
)

// streams reports whether a door of that kind takes a stream, if it is set up to. Of the others
// an HTTP API and a load balancer invoke a function in the buffered way only: the frames of a
// stream would be the body of a malformed answer.
func (d door) streams() bool { return d == functionURL || d == restAPI }

// field is one line of a header or one parameter of a query.
type field struct{ name, value string }

// fields is a member that holds names and values. The zero value is a member that
// is missing or null.
type fields struct {
	list    []field
	present bool
}

// event is what this package reads of a front door's event. All its strings are
// independent of the payload they were decoded from.
type event struct {
	version    string
	httpMethod string // payload 1.0 and ALB
	path       string // payload 1.0 and ALB
	hasPath    bool
	rawPath    string // payload 2.0
	rawQuery   string // payload 2.0

	headers, multiHeaders fields
	query, multiQuery     fields
	cookies               []string // payload 2.0

	body     string // the JSON string, quotes and escapes included; "" if missing or null
	isBase64 bool

	context    requestContext
	authorizer bool // the event asks an authorizer for a policy
	empty      bool // null, or an object without members
	badText    bool // a string has an escape for half a surrogate pair
}

// requestContext is what this package reads of the member of that name.
type requestContext struct {
	elb        bool
	http       bool
	webSocket  bool
	httpMethod string // payload 2.0
	stage      string
	domain     string
	sourceIP   string
	apiID      string
	authorizer authorizer
	signer     host.IAMCaller // payload 1.0
}

// door tells the kind of the event by what it carries. Events that merely resemble
// a request (an authorizer's or a WebSocket's have a method and headers too) come
// first: answering those like a request would look like success to their sender.
func (e *event) door() door {
	c := &e.context
	switch {
	case e.authorizer || c.webSocket:
		return noDoor
	case c.elb:
		if e.httpMethod == "" || !e.hasPath {
			return noDoor
		}
		if e.multiHeaders.present {
			return albMulti
		}
		return albSingle
	case e.version == "2.0":
		if !c.http || c.httpMethod == "" {
			return noDoor
		}
		if strings.Contains(c.domain, ".lambda-url.") {
			return functionURL
		}
		return httpAPI2
	case e.httpMethod != "" && e.hasPath:
		if e.version == "1.0" { // REST APIs send no version
			return httpAPI1
		}
		return restAPI
	}
	return noDoor
}

// UnknownEventError says that an event is neither an HTTP request that a front door
// known to this package sent, nor about a task of a program that works on tasks. The invocation fails with it, on purpose: whoever
// sends other events (a queue, a schedule, an authorizer) takes any answer for
// success, so a 4xx proxy response would lose the event without a trace, while a
// failed invocation is retried, dead-lettered and counted.
type UnknownEventError struct {
	// Members are the names of the event's top-level members, in their order; nil
	// if the event is not a JSON object. Long names are cut, long lists too.
	Members []string

	reason string
}

// Error names the members seen, never a value.
func (e *UnknownEventError) Error() string {
	s := "unknown event: " + e.reason
	if len(e.Members) > 0 {
		s += fmt.Sprintf(" (members %q)", e.Members)
	}
	return s + "; known are API Gateway REST and HTTP API, Function URL and Application Load Balancer requests, and of a program that works on tasks SQS messages and schedules"
}

// Bounds of what an error repeats of an event.
const (
	maxMembers    = 20
	maxMemberName = 40
)

func unknownEvent(payload []byte, reason string) *UnknownEventError {
	return &UnknownEventError{Members: memberNames(payload), reason: reason}
}
