package serve

import (
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// operation is a method of the protocol.
type operation struct {
	// served says whether the method's server capability is advertised (V-09).
	served func(*catalog) bool
	// mirrors gives the member of params that Mcp-Name repeats; nil: none (M-02, M-05).
	mirrors func(*params) (value []byte, member string)
	// params judges the members that the method reads; nil: none.
	params func(*request) *failure
	// lookup finds what the request is about; nil: nothing.
	lookup func(*request) *failure
	// extension says that the method is that of the extension Tasks.
	extension bool
	// asks says that it may answer input_required.
	asks bool
	// run answers.
	run func(*request)
}

var operations map[string]*operation

func init() {
	always := func(*catalog) bool { return true }
	tools := func(c *catalog) bool { return c.capabilities.Tools != nil }
	prompts := func(c *catalog) bool { return c.capabilities.Prompts != nil }
	resources := func(c *catalog) bool { return c.capabilities.Resources != nil }
	name := func(p *params) ([]byte, string) { return p.name, "name" }
	taskID := func(p *params) ([]byte, string) { return p.taskID, "taskId" }
	uri := func(p *params) ([]byte, string) { return p.uri, "uri" }
	operations = map[string]*operation{
		mcp.MethodDiscover:              {served: always, run: serveDiscover},
		mcp.MethodListTools:             {served: tools, params: checkCursor, run: serveList(listTools)},
		mcp.MethodCallTool:              {served: tools, mirrors: name, params: checkCallParams, lookup: lookupTool, asks: true, run: serveTool},
		mcp.MethodListPrompts:           {served: prompts, params: checkCursor, run: serveList(listPrompts)},
		mcp.MethodGetPrompt:             {served: prompts, mirrors: name, params: checkCallParams, lookup: lookupPrompt, asks: true, run: servePrompt},
		mcp.MethodListResources:         {served: resources, params: checkCursor, run: serveList(listResources)},
		mcp.MethodListResourceTemplates: {served: resources, params: checkCursor, run: serveList(listTemplates)},
		mcp.MethodReadResource:          {served: resources, mirrors: uri, params: checkReadParams, lookup: lookupResource, asks: true, run: serveRead},
		mcp.MethodComplete: {served: func(c *catalog) bool { return c.capabilities.Completions != nil },
			params: checkCompleteParams, lookup: lookupCompletion, run: serveComplete},
		mcp.MethodGetTask:    {served: (*catalog).servesTasks, extension: true, mirrors: taskID, params: checkTaskParams, run: serveGetTask},
		mcp.MethodUpdateTask: {served: (*catalog).servesTasks, extension: true, mirrors: taskID, params: checkUpdateParams, run: serveUpdateTask},
		mcp.MethodCancelTask: {served: (*catalog).servesTasks, extension: true, mirrors: taskID, params: checkTaskParams, run: serveCancelTask},
		mcp.MethodListen:     {served: servesListen, params: checkListenParams, run: serveListen},
	}
}

func serveDiscover(q *request) {
	b, err := q.cat.discover()
	if err != nil {
		q.failInternal("encode server/discover", err)
		return
	}
	q.out.result(q.msg.id, b)
}

func checkCursor(q *request) *failure {
	if c := q.msg.params.cursor; c != nil && strictjson.Kind(c) != '"' {
		return invalidParams(reasonInvalidCursor, "Invalid params: cursor must be a string")
	}
	return nil
}

// checkCallParams holds for tools/call and prompts/get. Arguments left out are {} (F-14),
// and so is null: nothing else could be meant.
func checkCallParams(q *request) *failure {
	p := &q.msg.params
	if strictjson.Kind(p.name) != '"' {
		return invalidParams(reasonInvalidParams, "Invalid params: name must be a string")
	}
	switch strictjson.Kind(p.arguments) {
	case '{':
		q.args = p.arguments
	case 0, 'n':
		q.args = []byte("{}")
	default:
		return invalidParams(reasonInvalidParams, "Invalid params: arguments must be an object")
	}
	return checkResponses(q)
}

// checkResponses holds for what may ask.
func checkResponses(q *request) *failure {
	if r := q.msg.params.inputResponses; r != nil && strictjson.Kind(r) != '{' {
		return invalidParams(reasonInvalidParams, "Invalid params: inputResponses must be an object")
	}
	return nil
}

func checkReadParams(q *request) *failure {
	if strictjson.Kind(q.msg.params.uri) != '"' {
		return invalidParams(reasonInvalidParams, "Invalid params: uri must be a string")
	}
	q.args = []byte("{}")
	return checkResponses(q)
}

func lookupTool(q *request) *failure {
	name, _ := strictjson.String(q.msg.params.name)
	t := q.cat.tools[name]
	if t == nil {
		return invalidParams(reasonUnknownTool, "Unknown tool "+quoted([]byte(name))+"; tools/list has the names")
	}
	q.target = t
	return nil
}

func lookupPrompt(q *request) *failure {
	name, _ := strictjson.String(q.msg.params.name)
	p := q.cat.prompts[name]
	if p == nil {
		return invalidParams(reasonUnknownPrompt, "Unknown prompt "+quoted([]byte(name))+"; prompts/list has the names")
	}
	q.target = p
	return nil
}
