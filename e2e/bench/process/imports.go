package process

// The programs are built by the go command, unseen by go test, which would give a cached
// result for programs that have changed. This is the part of thaw that they are made of.
import (
	_ "github.com/thaw-mcp/thaw/runtime/awskit"
	_ "github.com/thaw-mcp/thaw/runtime/serve"
)
