// Server serves the tools of package functions: on a laptop at http://localhost:8080/mcp,
// on AWS Lambda and Cloud Run as what those call.
//
//	go run ./functions/server
//	go run ./functions/server check
//	go run ./functions/server call text_analysis '{"text": "I love it"}'
//	FILES_ROOT=./files ENVIRONMENTS_ROOT=./environments go run ./functions/server
package main

import (
	"context"
	"errors"
	"os"

	"github.com/thaw-mcp/thaw/functions"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

func main() {
	files, noFiles := openFiles(context.Background(), os.Getenv(filesRoot))
	cloud, noCloud := openCloud(context.Background(), os.Getenv(environmentsRoot))
	// The program's own settings are told beside those of the server.
	own := serve.Kit{Configure: func(*serve.Options) error { return errors.Join(noFiles, noCloud) }}
	serve.Main(functions.Server(functions.Deps{Files: files, Cloud: cloud}), awskit.Kit(), local, own)
}
