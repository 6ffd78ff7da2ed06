package serve

import (
	"bytes"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// message is one JSON-RPC message, taken apart but not judged. Every slice aliases the
// body, which belongs to this request alone. A nil slice is an absent member.
type message struct {
	id     []byte // as sent; nil: none, or none that could be read
	method string
	params params
	meta   meta
}

// params are the members of params that any method reads, raw. Unknown members are
// ignored, never folded into known ones (B-14 of the case list).
type params struct {
	raw       []byte // the object; nil: absent or no object
	name      []byte
	uri       []byte
	arguments []byte
	cursor    []byte
	ref       []byte
	argument  []byte
	context   []byte
	filter    []byte // "notifications" of subscriptions/listen

	inputResponses []byte
	requestState   []byte
	taskID         []byte

	absentOrNull bool
}

// meta are the members of params._meta that the protocol gives a meaning, raw.
type meta struct {
	raw           []byte
	version       []byte
	capabilities  []byte
	clientInfo    []byte
	logLevel      []byte
	progressToken []byte
	traceparent   []byte
	tracestate    []byte
	baggage       []byte
}

// parse takes body apart. On a failure m.id is set if it could be read (B-04, B-05).
// notification says that the message has no id member at all.
func parse(body []byte, maxDepth int) (m message, notification bool, f *failure) {
	if err := strictjson.Check(body, maxDepth); err != nil {
		return m, false, &failure{status: 400, code: mcp.CodeParseError, reason: reasonParseError, message: "Parse error: " + err.Error()}
	}
	body = strictjson.Trim(body)
	switch strictjson.Kind(body) {
	case '{':
	case '[':
		return m, false, invalidRequest("the body is a batch; send one request or notification")
	default:
		return m, false, invalidRequest("the body is no JSON object")
	}
	var id, version, method, rawParams []byte
	answer := false
	for name, value := range strictjson.Members(body) {
		switch string(name) {
		case "jsonrpc":
			version = value
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			rawParams = value
		case "result", "error":
			answer = true
		}
	}
	if isID(id) {
		m.id = escapeSeparators(id)
	}
	switch {
	case string(version) != `"2.0"`:
		return m, false, invalidRequest(`member "jsonrpc" must be "2.0"`)
	case id != nil && m.id == nil:
		return m, false, invalidRequest(`member "id" must be a string or an integer`)
	case method == nil && answer:
		return m, false, invalidRequest("the body is a response; clients send requests and notifications only")
	case strictjson.Kind(method) != '"':
		return m, false, invalidRequest(`member "method" must be a string`)
	}
	m.method, _ = strictjson.String(method)
	m.takeParams(rawParams)
	return m, id == nil, nil
}

func (m *message) takeParams(raw []byte) {
	p := &m.params
	if strictjson.Kind(raw) != '{' {
		p.absentOrNull = raw == nil || raw[0] == 'n'
		return
	}
	p.raw = raw
	for name, value := range strictjson.Members(raw) {
		switch string(name) {
		case "_meta":
			m.takeMeta(value)
		case "name":
			p.name = value
		case "uri":
			p.uri = value
		case "arguments":
			p.arguments = value
		case "cursor":
			p.cursor = value
		case "ref":
			p.ref = value
		case "argument":
			p.argument = value
		case "context":
			p.context = value
		case "notifications":
			p.filter = value
		case "inputResponses":
			p.inputResponses = value
		case "taskId":
			p.taskID = value
		case "requestState":
			p.requestState = value
		}
	}
}

func (m *message) takeMeta(raw []byte) {
	if strictjson.Kind(raw) != '{' {
		return
	}
	m.meta.raw = raw
	for name, value := range strictjson.Members(raw) {
		switch string(name) {
		case mcp.MetaProtocolVersion:
			m.meta.version = value
		case mcp.MetaClientCapabilities:
			m.meta.capabilities = value
		case mcp.MetaClientInfo:
			m.meta.clientInfo = value
		case mcp.MetaLogLevel:
			m.meta.logLevel = value
		case mcp.MetaProgressToken:
			m.meta.progressToken = value
		case mcp.MetaTraceParent:
			m.meta.traceparent = value
		case mcp.MetaTraceState:
			m.meta.tracestate = value
		case mcp.MetaBaggage:
			m.meta.baggage = value
		}
	}
}

// isID reports whether value can be an id: a string, or an integer written as one
// (B-03). It is also the rule for progress tokens.
func isID(value []byte) bool {
	switch strictjson.Kind(value) {
	case '"':
		return true
	case '0':
		return !bytes.ContainsAny(value, ".eE")
	}
	return false
}

// escapeSeparators rewrites a value that holds U+2028 or U+2029 raw, which some readers
// of event streams take for line ends. The value stays the same JSON.
func escapeSeparators(value []byte) []byte {
	if !bytes.Contains(value, []byte("\xe2\x80")) {
		return value
	}
	escaped, err := strictjson.AppendCompact(nil, value)
	if err != nil {
		return value
	}
	return escaped
}

// memberOf is a member of a value that may be no object; nil if there is none.
func memberOf(value []byte, name string) []byte {
	if strictjson.Kind(value) != '{' {
		return nil
	}
	return strictjson.Member(value, name)
}
