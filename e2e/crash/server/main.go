// Server serves one tool whose calls are tasks, in every role and on every store, and dies where
// it is told to: CRASH_AT names a point, and the process is killed by SIGKILL when it first comes
// there. CRASH_LOG names a file that all processes append to. CRASH_STEP is what a step takes.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/awskit"
	"github.com/thaw-mcp/thaw/runtime/localkit"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/task"
)

type in struct {
	Job string `json:"job"`
}

// Out has what each step gave, in order, and the key under which it ran.
type Out struct {
	Job   string   `json:"job"`
	Steps []string `json:"steps"`
}

// work is what a step takes if nothing else is said, so that a kill at random may hit one.
const work = 50 * time.Millisecond

// nap is long enough for a task to give its worker up.
const nap = 1200 * time.Millisecond

func tool(p *points, takes time.Duration) *thaw.Tool {
	return thaw.NewTool("work", "Takes steps, sleeps and asks", func(ctx context.Context, in in) (Out, error) {
		out := Out{Job: in.Job}
		step := func(key string) error {
			value, err := thaw.Step(ctx, key, func(ctx context.Context) (string, error) {
				value := rand.Text() // each run of a step can be told from every other
				id := thaw.CallInfoFrom(ctx).TaskID
				p.log("step", id, key, value, thaw.IdempotencyKey(ctx))
				p.at("inside a step", id)
				select {
				case <-time.After(takes):
					return value, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			})
			out.Steps = append(out.Steps, value)
			return err
		}
		for _, key := range []string{"one", "two"} {
			if err := step(key); err != nil {
				return Out{}, err
			}
		}
		if err := thaw.Sleep(ctx, "nap", nap); err != nil {
			return Out{}, err
		}
		agreed, err := thaw.Confirm(ctx, "go on", "Go on?")
		if err != nil {
			return Out{}, err
		}
		if !agreed {
			return Out{}, thaw.Errorf("a yes became a no")
		}
		return out, step("three")
	}, &thaw.ToolOptions{Tasks: thaw.TaskRequired, StepTime: takes + takes/10})
}

// limits are short, so that the claims of the dead run out soon. Deaths come so often here
// that a task has to bear many.
var limits = task.Limits{
	Lease: 3 * time.Second, Guard: 500 * time.Millisecond, Look: time.Second, Resend: time.Second,
	Backoff: 10 * time.Millisecond, MaxInterrupted: 50,
}

func main() {
	p, err := openPoints(cmp.Or(os.Getenv("CRASH_LOG"), os.DevNull), os.Getenv("CRASH_AT"))
	takes := work
	if text := os.Getenv("CRASH_STEP"); text != "" && err == nil {
		takes, err = time.ParseDuration(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	serve.Main(thaw.Server{Name: "crash", Version: "1", Tools: []*thaw.Tool{tool(p, takes)}}, localkit.Kit(), awskit.Kit(), serve.Kit{
		Configure: func(o *serve.Options) error {
			o.TaskLimits = limits
			if o.Store != nil {
				o.Store = &store{Store: o.Store, points: p, epochs: map[string]uint32{}}
			}
			return nil
		},
		Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&writer{w, p}, r) })
		},
	})
}
