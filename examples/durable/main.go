// Durable is a server whose tool outlives its process: it sleeps, asks, and goes on.
//
// Serve it at http://localhost:8080/mcp, for a client that knows tasks and can be asked:
//
//	go run ./examples/durable
//
// Kill it at any time (kill -9) and start it again in the same folder: the task goes on,
// because all that it has done is in .thaw/tasks.db. A task that was killed in the middle of a
// run goes on about a minute later, when the dead process's claim has run out.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/localkit"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

type breadIn struct {
	Seconds int `json:"seconds" jsonschema:"how long the dough rises" minimum:"0" maximum:"36000" default:"60"`
}

func bread(ctx context.Context, in breadIn) (string, error) {
	dough, err := thaw.Step(ctx, "mix", func(context.Context) (string, error) {
		return time.Now().Format("15:04:05.000"), nil // done once: later runs get what is recorded
	})
	if err != nil {
		return "", err
	}
	thaw.Progress(ctx, 1, 2, "the dough rises")
	if err := thaw.Sleep(ctx, "rise", time.Duration(in.Seconds)*time.Second); err != nil {
		return "", err // this runs again from the top when the time is over, in whatever process
	}
	agreed, err := thaw.Confirm(ctx, "bake", "The dough has risen. Bake it?")
	if err != nil {
		return "", err // and again with the answer
	}
	if !agreed {
		return "The dough was given away.", nil
	}
	return fmt.Sprintf("Bread from the dough of %s.", dough), nil
}

func main() {
	serve.Main(thaw.Server{
		Name:  "durable",
		Tools: []*thaw.Tool{thaw.NewTool("bread", "Bake bread, which takes a while", bread, &thaw.ToolOptions{Tasks: thaw.TaskAlways})},
	}, localkit.Kit())
}
