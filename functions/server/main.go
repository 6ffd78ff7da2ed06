// Server serves the tools of package functions: on a laptop at http://localhost:8080/mcp,
// on AWS Lambda and Cloud Run as what those call.
//
//	go run ./functions/server
//	go run ./functions/server check
//	go run ./functions/server call text_analysis '{"text": "I love it"}'
package main

import (
	"github.com/thaw-mcp/thaw/functions"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

func main() { serve.Main(functions.Server(), awskit.Kit()) }
