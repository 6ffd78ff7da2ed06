// Command lambda50 serves fifty tools with thaw on Lambda.
package main

import (
	"github.com/thaw-mcp/thaw/e2e/bench/thawserver"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

func main() { serve.Main(thawserver.Fifty(), awskit.Kit()) }
