package differential

// difference says that another implementation answers some rows otherwise than thaw, and
// why thaw means to. The ids in why are those of the protocol duties behind it.
type difference struct {
	of      string // the other implementation
	rows    []string
	outcome string
	why     string
	// sometimes: the other is not sure of its answer itself, and may give thaw's too.
	sometimes bool
}

const served = "200 result(content resultType structuredContent)"

var differences = []difference{
	// V-21: a 400 whose body is no JSON-RPC error sends good clients into legacy mode.
	{of: isGoSDK, outcome: "400 text", why: "V-21 B-12: a body that is no request gets a JSON-RPC error, not plain text", rows: []string{
		"not JSON", "empty body", "byte order mark", "nested too deep", "batch", "empty batch", "scalar", "null",
		"id is null", "id is a boolean", "id is an object", "request without an id", "jsonrpc 1.0", "no jsonrpc", "method is a number", "no params"}},
	{of: isGoSDK, outcome: "405 text", why: "0.1: refusals before the body have a JSON-RPC error too, so that every client can show a reason", rows: []string{
		"GET", "GET, modern", "DELETE", "PUT"}},
	{of: isMCPGo, outcome: "405 text", why: "0.1: as above", rows: []string{"GET, modern", "DELETE"}},
	{of: isMCPGo, outcome: "404 text", why: "H-12: what is not POST is 405", rows: []string{"PUT"}},
	{of: isMCPGo, outcome: "200 open stream", why: "H-12: there are no sessions, so nothing to GET; that library serves older revisions too", rows: []string{"GET"}},
	{of: isGoSDK, outcome: "403 text", why: "0.1: as above", rows: []string{"foreign Host"}},
	{of: isMCPGo, outcome: "403 text", why: "0.1: as above", rows: []string{"foreign Host"}},
	{of: isGoSDK, outcome: "413 text", why: "0.1: as above", rows: []string{"body too large"}},
	{of: isGoSDK, outcome: "415 text", why: "H-07: a wrong Content-Type is refused with a JSON-RPC body", rows: []string{"Content-Type text/plain"}},
	{of: isMCPGo, outcome: "400 text", why: "H-07 V-21: 415, with a JSON-RPC body", rows: []string{"Content-Type text/plain"}},

	// B-05: an error whose request has no readable id has none either; null is no id.
	{of: isMCPGo, outcome: "400 -32700 id null", why: "B-05: never id null", rows: []string{
		"not JSON", "empty body", "trailing bytes", "two bodies", "byte order mark"}},
	{of: isMCPGo, outcome: "400 -32700 id null", why: "B-05 B-12: JSON that is no request is -32600; never id null", rows: []string{
		"batch", "empty batch", "scalar", "method is a number"}},
	{of: isMCPGo, outcome: "400 -32602 id null", why: "B-05 B-12: JSON that is no request is -32600; never id null", rows: []string{"null"}},
	{of: isMCPGo, outcome: "202 empty", why: "B-03: null is no id; the sender of a request waits for an answer", rows: []string{"id is null", "request without an id"}},
	{of: isGoSDK, outcome: "202 empty", why: "B-20: clients send no responses; one is refused", rows: []string{"response"}},
	{of: isMCPGo, outcome: "202 empty", why: "B-20: as above", rows: []string{"response"}},
	{of: isGoSDK, outcome: served, why: "B-03: a fraction is no id, and this one comes back as 7 only by chance of rounding", rows: []string{"id is a fraction"}},
	{of: isMCPGo, outcome: served + " id 7.5", why: "B-03: a fraction is no id", rows: []string{"id is a fraction"}},
	{of: isMCPGo, outcome: served + " id true", why: "B-03: a boolean is no id", rows: []string{"id is a boolean"}},
	{of: isMCPGo, outcome: served + " id {}", why: "B-03: an object is no id", rows: []string{"id is an object"}},
	{of: isGoSDK, outcome: served + " id 9007199254740992", why: "B-04: ids are echoed as the bytes they came as, not through float64", rows: []string{"id is beyond 2^53"}},
	{of: isMCPGo, outcome: served + " id 9007199254740992", why: "B-04: as above", rows: []string{"id is beyond 2^53"}},

	// Strict JSON: two readers on the way must not see two different requests.
	{of: isGoSDK, outcome: served, why: "H-06 B-12: one body holds one message and nothing after it", rows: []string{"trailing bytes", "two bodies"}},
	{of: isGoSDK, outcome: "200 result(content resultType)", why: "B-01: messages are UTF-8; mending bytes changes what was asked", rows: []string{"invalid UTF-8"}},
	{of: isMCPGo, outcome: "200 result(content resultType)", why: "B-01: as above", rows: []string{"invalid UTF-8"}},
	{of: isGoSDK, outcome: served, why: "B-12: duplicate members are refused; a gateway may have read the other one", rows: []string{"duplicate member", "duplicate method"}},
	{of: isMCPGo, outcome: served, why: "B-12: as above", rows: []string{"duplicate member", "duplicate method"}},
	{of: isMCPGo, outcome: "200 isError(content resultType)", why: "F-26: nesting is bounded before anything walks it", rows: []string{"nested too deep"}},
	{of: isGoSDK, outcome: "202 empty", why: "B-12: names are exact; a message without a method is no notification", rows: []string{"member in another case"}},
	{of: isMCPGo, outcome: served, why: "B-12: names are exact, here as in gateways", rows: []string{"member in another case"}},

	// Older revisions: thaw serves 2026-07-28 alone until its translation layer is on.
	{of: isGoSDK, outcome: "200 result(content structuredContent)", why: "V-02: only served versions are served; that library serves older ones too", rows: []string{"older version, modern request"}},
	{of: isMCPGo, outcome: "200 result(content structuredContent)", why: "V-02: as above", rows: []string{"older version, modern request"}},
	{of: isGoSDK, outcome: "200 result(capabilities protocolVersion serverInfo)", why: "V-19: initialize without modern headers is -32020 on a server of this revision alone", rows: []string{"initialize, legacy"}},
	{of: isMCPGo, outcome: "200 result(capabilities protocolVersion serverInfo)", why: "V-19: as above", rows: []string{"initialize, legacy"}},
	{of: isGoSDK, outcome: "400 text", why: "H-13: Last-Event-ID is ignored", rows: []string{"Last-Event-ID"}},
	{of: isMCPGo, outcome: "400 -32020", why: "H-13: as above", rows: []string{"Last-Event-ID"}},

	// Lenient about what the client can read (H-07).
	{of: isGoSDK, outcome: "400 text", why: "H-07: what a client accepts narrows the answer, it does not refuse the request", rows: []string{
		"Accept absent", "Accept JSON alone", "Accept event streams alone"}},
	{of: isGoSDK, outcome: "415 text", why: "H-07: an absent Content-Type is no wrong one", rows: []string{"no Content-Type"}},
	{of: isMCPGo, outcome: "400 text", why: "H-07: as above", rows: []string{"no Content-Type"}},
	{of: isGoSDK, outcome: "400 text", why: "H-10: header rules for notifications are not defined, so none is demanded", rows: []string{"notification without Mcp headers"}},

	// Header mirroring.
	{of: isGoSDK, outcome: "400 -32020", why: "M-08: Mcp-Name has the encoded form too", rows: []string{"encoded Mcp-Name"}},
	{of: isGoSDK, outcome: "400 -32020", why: "M-22: an empty value is a value", rows: []string{"mirrored parameter, empty"}},
	{of: isGoSDK, outcome: served, why: "M-24: several lines of one mirrored header are refused", rows: []string{"Mcp-Method twice", "Mcp-Name twice"}},
	{of: isMCPGo, outcome: served, why: "M-24: as above", rows: []string{"Mcp-Method twice", "Mcp-Name twice"}},
	{of: isGoSDK, outcome: "200 result(content resultType)", why: "M-24: as above", rows: []string{"mirrored parameter twice"}},
	{of: isMCPGo, outcome: "200 result(content resultType)", why: "M-24: as above", rows: []string{"mirrored parameter twice"}},
	{of: isGoSDK, outcome: "400 -32602", why: "M-03: characters that a header may not hold are -32020, before the look-up", rows: []string{"Mcp-Name, raw bytes"}},
	{of: isMCPGo, outcome: "400 -32602", why: "M-03: as above", rows: []string{"Mcp-Name, raw bytes"}},

	// H-25: an ordinary JSON-RPC error is 200; a 400 reads as a legacy server.
	{of: isGoSDK, outcome: "400 -32602", why: "H-25: status 200", rows: []string{
		"unknown tool", "unknown prompt", "missing resource", "missing resource of a template", "bad cursor", "cursor is a number",
		"completion of a bad ref", "completion without an argument"}},
	{of: isMCPGo, outcome: "400 -32602", why: "H-25: as above", rows: []string{"unknown tool", "unknown prompt", "missing resource"}},
	{of: isMCPGo, outcome: "400 -32600", why: "H-25 B-12: bad params are -32602", rows: []string{"prompt argument is a number", "cursor is a number", "completion of a bad ref"}},
	{of: isGoSDK, outcome: "400 -32020", why: "F-29 M-03: the header agrees with the body; it is the argument that is wrong", rows: []string{"prompt argument is a number"}},

	// What the features say.
	{of: isMCPGo, outcome: "200 isError(content resultType)", why: "F-22: 3.0 is an integer in JSON Schema", rows: []string{"integer written 3.0"}},
	{of: isGoSDK, outcome: "200 isError(content resultType)", why: "F-15: arguments that are no object make no CallToolRequest", rows: []string{"arguments is an array"}},
	{of: isMCPGo, outcome: "200 isError(content resultType)", why: "F-15: as above", rows: []string{"arguments is an array"}},
	{of: isGoSDK, outcome: "400 -32020", why: "F-15 B-44: no header can repeat a name that is no string, so it is the name that is wrong", rows: []string{"name is a number"}},
	{of: isMCPGo, outcome: "400 -32020", why: "F-15: as above", rows: []string{"name is a number"}},
	{of: isGoSDK, outcome: "200 result(messages resultType)", why: "F-29: a prompt's description is given with its messages", rows: []string{"get prompt"}},
	{of: isMCPGo, outcome: "200 result(messages resultType)", why: "F-29: as above", rows: []string{"get prompt"}},
	{of: isGoSDK, outcome: "200 result(messages resultType)", why: "F-30: a missing required argument is refused", rows: []string{"prompt argument missing"}},
	{of: isMCPGo, outcome: "200 result(messages resultType)", why: "F-30: as above", rows: []string{"prompt argument missing"}},
	{of: isMCPGo, outcome: "200 -32603", why: "F-33: a missing resource is -32602, under a template too", rows: []string{"missing resource of a template"}},
	{of: isMCPGo, outcome: "200 result(cacheScope resultType tools ttlMs)", why: "F-45: an invalid cursor is refused", rows: []string{"bad cursor"}},
	{of: isGoSDK, outcome: served, why: "F-50: an unknown log level is refused", rows: []string{"bad log level"}},
	{of: isMCPGo, outcome: served, why: "F-50: as above", rows: []string{"bad log level"}},
	{of: isGoSDK, outcome: served, why: "0.2: a progress token is a string or an integer", rows: []string{"progress token is an object"}},
	{of: isMCPGo, outcome: served, why: "0.2: as above", rows: []string{"progress token is an object"}},
	{of: isGoSDK, outcome: "200 result(completion resultType)", why: "F-42: an unknown prompt is refused", rows: []string{"completion of an unknown prompt"}},
	{of: isMCPGo, outcome: "200 result(completion resultType)", why: "F-42: as above; so is a completion of nothing", rows: []string{"completion of an unknown prompt", "completion without an argument"}},
	{of: isMCPGo, outcome: "200 result(content resultType)", why: "F-46: that library drops a notification that races with the result", rows: []string{"progress"}, sometimes: true},

	// Who may connect, and how much.
	{of: isGoSDK, outcome: served, why: "H-02: a foreign Origin is refused unless allowed", rows: []string{"foreign Origin"}},
	{of: isMCPGo, outcome: served, why: "H-02: as above", rows: []string{"foreign Origin"}},
	{of: isGoSDK, outcome: served, why: "H-07: a body that says it is compressed is not taken as it stands", rows: []string{"Content-Encoding gzip"}},
	{of: isMCPGo, outcome: served, why: "H-07: as above", rows: []string{"Content-Encoding gzip"}},
	{of: isMCPGo, outcome: "200 result(content resultType)", why: "S-12: bodies have a limit", rows: []string{"body too large"}},
	{of: isGoSDK, outcome: served, why: "M-28: headers have a limit of their own", rows: []string{"headers too large"}},
	{of: isMCPGo, outcome: served, why: "M-28: as above", rows: []string{"headers too large"}},
}
