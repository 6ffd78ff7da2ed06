// Package wire reads what an MCP server wrote: the messages of an HTTP response, and
// whether they are what the protocol's schema says.
package wire

import (
	"bytes"
	"mime"
)

// Messages are the JSON-RPC messages of a response body, in order. A body that is
// neither JSON nor an event stream has none.
func Messages(contentType string, body []byte) [][]byte {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil
	}
	switch media {
	case "application/json":
		return [][]byte{bytes.TrimSpace(body)}
	case "text/event-stream":
		var messages [][]byte
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				if data = bytes.TrimSpace(data); len(data) > 0 {
					messages = append(messages, data)
				}
			}
		}
		return messages
	}
	return nil
}
