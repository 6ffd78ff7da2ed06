// Command bench measures thaw against a hand-written handler, the two other Go SDKs and
// a bare Lambda function, all in one run, and prints one line per budget:
//
//	ratio NAME VALUE budget BUDGET
//
// Lines that begin with # give what the ratios were made of. A ratio over its budget is
// printed like any other, since machines are noisy; the exit status is 1 if something
// could not be measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/bench/process"
)

func main() {
	testing.Init() // Benchmark reads its flags
	var p plan
	flag.DurationVar(&p.callTime, "calltime", 60*time.Millisecond, "of one measurement of one contender's calls")
	flag.IntVar(&p.callRounds, "callrounds", 25, "measurements of each contender's calls; the quickest counts")
	flag.DurationVar(&p.loadTime, "loadtime", 2*time.Second, "of one measurement under load")
	flag.IntVar(&p.loadRounds, "loadrounds", 3, "measurements under load; the median counts")
	flag.IntVar(&p.starts, "starts", 21, "starts of each program; the median counts")
	flag.IntVar(&p.warmCalls, "warmcalls", 200, "of each function after its start; the median counts")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, p, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// plan says how long and how often.
type plan struct {
	callTime, loadTime                        time.Duration
	callRounds, loadRounds, starts, warmCalls int
}

var programs = []string{"floor", "thaw1", "thaw50", "gosdk50", "hello", "lambda1", "lambda50", "gosdklambda1", "gosdklambda50"}

func run(ctx context.Context, p plan, w io.Writer) error {
	dir, err := os.MkdirTemp("", "thaw-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := process.Build(ctx, dir, programs...); err != nil {
		return err
	}
	r := &report{w: w, dir: dir, plan: p}
	for _, part := range []func(context.Context) error{r.calls, r.sizes, r.starts, r.functions, r.load} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return r.err
}

// report prints what it measures.
type report struct {
	w    io.Writer
	dir  string
	plan plan
	err  error // of the first print that failed
}

func (r *report) program(name string) string { return filepath.Join(r.dir, name) }

func (r *report) print(format string, args ...any) {
	if _, err := fmt.Fprintf(r.w, format+"\n", args...); err != nil && r.err == nil {
		r.err = err
	}
}

// ratio prints one budget. budget is what the ratio should keep to.
func (r *report) ratio(name string, value float64, budget string) {
	r.print("ratio %s %.2f budget %s", name, value, budget)
}
