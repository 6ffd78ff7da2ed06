// Server serves the tools of package functions: on a laptop at http://localhost:8080/mcp,
// on AWS Lambda and Cloud Run as what those call.
//
//	go run ./functions/server
//	go run ./functions/server check
//	go run ./functions/server call text_analysis '{"text": "I love it"}'
//	FILES_ROOT=./files go run ./functions/server
package main

import (
	"context"
	"os"

	"github.com/thaw-mcp/thaw/functions"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

func main() {
	files, err := openFiles(context.Background(), os.Getenv(filesRoot))
	// A setting of the program's own is told beside those of the server.
	own := serve.Kit{Configure: func(*serve.Options) error { return err }}
	serve.Main(functions.Server(functions.Deps{Files: files}), awskit.Kit(), local, own)
}
