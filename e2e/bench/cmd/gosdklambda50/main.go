// Command gosdklambda50 serves fifty tools with the official Go SDK on Lambda, on the host that
// thaw's servers have.
package main

import (
	"context"
	"log"

	"github.com/thaw-mcp/thaw/e2e/bench/gosdkserver"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
)

func main() {
	log.Fatal(lambdahost.Host().Serve(context.Background(), host.App{HTTP: gosdkserver.Fifty()}))
}
