// Server serves one tool that takes its time, and dies whenever a test kills it. RUNS names a file
// that all processes append to: a line for each run of a step.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/localkit"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/task"
)

type in struct {
	N    int `json:"n"`
	Naps int `json:"naps,omitempty" jsonschema:"of 100 ms each" minimum:"0" maximum:"100"`
}

type out struct {
	Square int    `json:"square"`
	Run    string `json:"run" jsonschema:"names the run of the step whose result this is"`
}

// stepTime is long enough to be killed in.
const stepTime = 50 * time.Millisecond

func square(runs *os.File) *thaw.Tool {
	return thaw.NewTool("square", "Squares a number, slowly", func(ctx context.Context, in in) (out, error) {
		result, err := thaw.Step(ctx, "square", func(ctx context.Context) (out, error) {
			time.Sleep(stepTime)
			o := out{in.N * in.N, rand.Text()}
			_, err := fmt.Fprintf(runs, "%s %s\n", thaw.CallInfoFrom(ctx).TaskID, o.Run) // one write: whole, or not at all
			return o, err
		})
		if err != nil {
			return out{}, err
		}
		if in.Naps > 0 {
			if err := thaw.Sleep(ctx, "nap", time.Duration(in.Naps)*100*time.Millisecond); err != nil {
				return out{}, err
			}
		}
		if in.N < 0 {
			return out{}, thaw.Errorf("n is negative")
		}
		return result, nil
	}, nil)
}

// limits are short, so that the claims of the dead run out soon. Deaths come so often that a task
// has to bear many.
var limits = task.Limits{
	Lease: 3 * time.Second, Guard: 500 * time.Millisecond, Look: time.Second, Resend: time.Second,
	Backoff: 10 * time.Millisecond, MaxInterrupted: 50,
}

func main() {
	runs, err := os.OpenFile(cmp.Or(os.Getenv("RUNS"), os.DevNull), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.Main(thaw.Server{Name: "square", Version: "1", Tools: []*thaw.Tool{square(runs)}}, localkit.Kit(), serve.Kit{
		Configure: func(o *serve.Options) error { o.TaskLimits = limits; return nil },
	})
}
