package serve

import (
	"fmt"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// complete is how a finished result begins (B-07).
const complete = `{"resultType":"complete",`

// beginResult starts the message with the result of a handler that finished, with room for
// n bytes. A result is built in its message, so that it is never copied.
func (c *running) beginResult(n int) []byte {
	b := make([]byte, 0, n+len(c.requestID)+len(c.metaEnd)+160)
	return append(appendEnvelope(b, c.requestID), complete...)
}

// endResult closes the message with serverInfo and the author's own _meta.
func (c *running) endResult(b []byte, own map[string]any) ([]byte, error) {
	if len(own) == 0 {
		return append(append(b, c.metaEnd...), envelopeEnd...), nil
	}
	raw, err := strictjson.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("encode _meta: %w", err)
	}
	b = append(b, `,"_meta":`...)
	if _, taken := own[mcp.MetaServerInfo]; !taken && c.serverInfo != nil {
		b = append(b, '{')
		b = append(b, c.serverInfo...)
		b = append(b, ',')
		raw = raw[1:]
	}
	b = append(b, raw...)
	return append(b, "}"+envelopeEnd...), nil
}
