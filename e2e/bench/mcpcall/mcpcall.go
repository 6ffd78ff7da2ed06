// Package mcpcall is the one request that everything is measured with: a tools/call of
// the search tool, as a client of MCP 2026-07-28 sends it.
package mcpcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Tool is the name of the tool that is called.
const Tool = "search"

// Body is the request's body.
const Body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},` +
	`"name":"search","arguments":{"query":"stock transfer between \"north\" and \"south\"","limit":3,` +
	`"tags":["logistics","stock","2026"],` +
	`"filter":{"author":"mira.k","language":"en","minScore":40,"published":true}}}}`

// Host is what the request names as its server; it is served on a loopback bind.
const Host = "localhost:8080"

// Header is a fresh copy of the headers that the protocol asks for with Body.
func Header() http.Header {
	return http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {"tools/call"},
		"Mcp-Name":             {Tool},
	}
}

// Check reports what is wrong with an answer to the request: contenders that did not do
// the work must not win. Content-Type text/event-stream is fine.
func Check(status int, contentType string, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d: %s", status, body)
	}
	if contentType == "text/event-stream" {
		_, body, _ = bytes.Cut(body, []byte("data: "))
		body, _, _ = bytes.Cut(body, []byte("\n"))
	}
	var m struct {
		ID     json.RawMessage
		Result struct {
			IsError           bool
			Content           []struct{ Type, Text string }
			StructuredContent struct {
				Total int
				Items []struct{ ID, Author string }
			}
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("%w in %s", err, body)
	}
	s := m.Result.StructuredContent
	if string(m.ID) != "7" || m.Result.IsError || len(m.Result.Content) != 1 || m.Result.Content[0].Text == "" ||
		s.Total != 3 || len(s.Items) != 3 || s.Items[2].Author != "mira.k" {
		return fmt.Errorf("not the answer of the tool: %s", body)
	}
	return nil
}

// NewRequest is the request to a server on this machine at addr.
func NewRequest(addr string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/mcp", bytes.NewReader([]byte(Body)))
	if err != nil {
		panic(err) // addr is the bench's own
	}
	r.Header = Header()
	return r
}

// CheckResponse reads a response to its end and checks it.
func CheckResponse(res *http.Response) error {
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return Check(res.StatusCode, res.Header.Get("Content-Type"), b)
}
