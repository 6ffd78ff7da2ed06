// Command server serves the conformance fixture, on every host and with the same
// settings as any server made with thaw.
package main

import (
	"github.com/thaw-mcp/thaw/conformance/fixture"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

func main() {
	f := fixture.New()
	serve.Main(f.Server(), awskit.Kit(), local, f.Kit())
}
