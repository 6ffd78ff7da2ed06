package thaw

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/mcp"
)

// Progress reports done of total (0: unknown) to a client that asked for it (F-46).
// Reports that do not rise above the last one are left out (F-47), and so are reports
// in too quick a succession, but for the last. To a client that does not read it may block
// for 30 s, or until the call's time is over, after which the stream is given up. It is safe for concurrent use. Outside a
// handler it does nothing, and so it does while the handler runs again over what it has done
// before.
func Progress(ctx context.Context, done, total float64, message string) {
	if c := call.FromContext(ctx); c != nil {
		c.Progress(done, total, message)
	}
}

// Logger writes to the operator's log, with the call's id, its tool and its trace. It is
// silent while the handler runs again over what it has done before. It is never nil; outside a
// handler it is slog.Default.
func Logger(ctx context.Context) *slog.Logger {
	if c := call.FromContext(ctx); c != nil {
		return c.Logger()
	}
	return slog.Default()
}

// ClientLogger writes notifications/message to a client that set a logLevel, on a server
// with ClientLogging; elsewhere it discards. Never write secrets or internals to it
// (F-51). It is never nil.
//
// Deprecated: logging is deprecated by the protocol (SEP-2577, earliest removal
// 2027-07-28); use Logger and OpenTelemetry.
func ClientLogger(ctx context.Context) *slog.Logger {
	if c := call.FromContext(ctx); c != nil {
		return c.ClientLogger()
	}
	return slog.New(slog.DiscardHandler)
}

// CallInfo describes the running call.
type CallInfo struct {
	// ID names the call in the operator's log; a reference that a client reads is its
	// beginning.
	ID string
	// Tool is the name of the tool or prompt, or the URI of the resource.
	Tool string
	// TaskID is the task's, "" in a plain call.
	TaskID string
	// Principal is who calls; changing its Scopes or Claims has no effect on later calls.
	Principal Principal
	// Round counts the requests of the call from 1; a call that asks has more than one.
	Round int
	// Attempt counts from 1 how often workers have taken the task up; 1 in a plain call.
	Attempt int
	// Revision is the tool's when the call began.
	Revision int
	// ClientName is what the client calls itself: for logs, never for decisions (B-27).
	ClientName string
	// Capabilities are those this request declared (B-29).
	Capabilities mcp.ClientCapabilities
	// Meta is the request's _meta, as it was sent. Nothing of the HTTP request is in it.
	Meta json.RawMessage
}

// Principal is the verified caller. Who it is are Scheme, Issuer, Subject and Tenant
// together: a Subject alone may be somebody else's elsewhere. Anonymous is Scheme "none"
// and nothing else. Scheme "local" is whoever runs the program's own command call.
type Principal struct {
	Scheme                          string // jwt, apikey, iam, gateway, local, none, or an author's own
	Issuer, Subject, Tenant, Client string
	Scopes                          []string
	Claims                          map[string]any // as the credential had them; for reading
}

// CallInfoFrom describes the call; zero outside a handler.
func CallInfoFrom(ctx context.Context) CallInfo {
	if c := call.FromContext(ctx); c != nil {
		if info, ok := c.Info().(CallInfo); ok {
			return info
		}
	}
	return CallInfo{}
}
