// Command thaw1 serves one tool with thaw on plain net/http.
package main

import (
	"github.com/thaw-mcp/thaw/e2e/bench/thawserver"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

func main() { serve.Main(thawserver.One()) }
