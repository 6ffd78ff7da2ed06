// Package differential puts the same requests to thaw, to the official Go SDK and to
// mcp-go, and compares status, code and shape of what comes back. Where thaw means to
// differ from one of them the table says so, and why; a difference that no longer
// exists fails, like one that nobody wrote down.
package differential
