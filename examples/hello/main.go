// Hello is a complete MCP server with one tool.
//
// Serve it at http://localhost:8080/mcp:
//
//	go run ./examples/hello
//
// Or call its tool once, without serving:
//
//	go run ./examples/hello call greet '{"name": "Ada"}'
package main

import (
	"context"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

type greetIn struct {
	Name string `json:"name" jsonschema:"whom to greet" default:"world"`
}

func greet(_ context.Context, in greetIn) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

func main() {
	serve.Main(thaw.Server{
		Name:  "hello",
		Tools: []*thaw.Tool{thaw.NewTool("greet", "Greet someone by name", greet, nil)},
	})
}
