// Confirm is a server whose tool asks the user before it acts.
//
// Serve it at http://localhost:8080/mcp, for a client that can be asked (one that declares
// the capability elicitation):
//
//	go run ./examples/confirm
//
// Stop it while the client asks, start it again, and answer: the call goes on, because what
// it needs is in the state that the client brings back. The key that seals this state, and
// the note that an answer was used, are in the folder .thaw.
package main

import (
	"context"
	"fmt"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/localkit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

type orderIn struct {
	Cups int `json:"cups" jsonschema:"how many cups of coffee" minimum:"1" maximum:"10"`
}

func order(ctx context.Context, in orderIn) (string, error) {
	agreed, err := thaw.Confirm(ctx, "agree", fmt.Sprintf("Order coffee, number of cups: %d?", in.Cups))
	if err != nil {
		return "", err // the client is asked; with its answer this runs again from the top
	}
	if !agreed {
		return "Nothing was ordered.", nil
	}
	return fmt.Sprintf("Ordered, number of cups: %d.", in.Cups), nil
}

func main() {
	serve.Main(thaw.Server{
		Name:  "confirm",
		Tools: []*thaw.Tool{thaw.NewTool("order", "Order coffee after the user agrees", order, nil)},
	}, localkit.Kit())
}
