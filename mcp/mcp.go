// Package mcp holds the wire types, method names and codes of the Model Context
// Protocol, revision 2026-07-28. It is a leaf without behaviour: what a type can do
// is be written as JSON and read back.
package mcp

// Version is the protocol revision these types describe. Versions are opaque: compare
// them for equality only (V-04).
const Version = "2026-07-28"

// Methods of requests (spec 0.3).
const (
	MethodDiscover              = "server/discover"
	MethodListTools             = "tools/list"
	MethodCallTool              = "tools/call"
	MethodListPrompts           = "prompts/list"
	MethodGetPrompt             = "prompts/get"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
	MethodReadResource          = "resources/read"
	MethodComplete              = "completion/complete"
	MethodListen                = "subscriptions/listen"

	// Of the extension Tasks (T-24, T-28, T-36).
	MethodGetTask    = "tasks/get"
	MethodUpdateTask = "tasks/update"
	MethodCancelTask = "tasks/cancel"

	// What a client is asked inside a result.
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// Notifications a server sends (spec 0.3, L-08).
const (
	NotificationProgress         = "notifications/progress"
	NotificationMessage          = "notifications/message"
	NotificationAcknowledged     = "notifications/subscriptions/acknowledged"
	NotificationToolsChanged     = "notifications/tools/list_changed"
	NotificationPromptsChanged   = "notifications/prompts/list_changed"
	NotificationResourcesChanged = "notifications/resources/list_changed"
	NotificationResourceUpdated  = "notifications/resources/updated"
	NotificationTask             = "notifications/tasks"
)

// Keys of _meta (spec 0.2). The three trace keys have no prefix, by exception.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
	MetaTraceParent        = "traceparent"
	MetaTraceState         = "tracestate"
	MetaBaggage            = "baggage"
)

// HTTP headers that mirror the body (group M). Names compare without regard to case.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderParamPrefix     = "Mcp-Param-"
)

// Implementation names a program: serverInfo and clientInfo.
type Implementation struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	WebsiteURL  string `json:"websiteUrl,omitempty"`
	Icons       []Icon `json:"icons,omitempty"`
}

// Icon is a picture for people. Src is an HTTPS or data: URI; clients refuse others (B-36).
type Icon struct {
	Src      string   `json:"src"`
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"` // "48x48", "any"
	Theme    string   `json:"theme,omitempty"` // "light", "dark"
}

// Role is who speaks in a prompt message, or whom an annotation addresses.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Annotations are hints on a content block or a resource (F-37).
type Annotations struct {
	Audience     []Role   `json:"audience,omitempty"`
	Priority     *float64 `json:"priority,omitempty"`     // 0 to 1; nil: not said
	LastModified string   `json:"lastModified,omitempty"` // ISO 8601
}
