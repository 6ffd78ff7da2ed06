// Command run runs the official MCP conformance suite against the fixture server and
// judges every check it made: also those that the suite itself does not score.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is 0 if every check ended as it should, 1 if one did not or the suite did not run,
// 2 for wrong usage.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	flags := flag.NewFlagSet("conformance/run", flag.ContinueOnError)
	flags.SetOutput(progress)
	results := flags.String("o", "", "keep the suite's results in this `folder`, new or empty; default: they are not kept")
	url := flags.String("url", "", "the `URL` of a server that runs already, in place of the fixture that this starts otherwise")
	var env []string
	flags.Func("env", "a `NAME=VALUE` for the fixture's environment, as often as needed", func(pair string) error {
		if !strings.Contains(pair, "=") {
			return errors.New("want NAME=VALUE")
		}
		env = append(env, pair)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(progress, "the program takes flags only; -h lists them")
		return 2
	}
	if *url != "" && len(env) > 0 {
		fmt.Fprintln(progress, "-env is for the fixture that is started without -url")
		return 2
	}
	v, err := verify(ctx, *results, *url, env, progress)
	if err != nil {
		fmt.Fprintln(progress, "the conformance suite did not run:", err)
		return 1
	}
	v.print(out)
	if v.failed() > 0 {
		return 1
	}
	return 0
}

// verify installs the suite, serves the fixture unless there is a url, and runs the one against the other.
func verify(ctx context.Context, results, url string, env []string, progress io.Writer) (*verdict, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(root, "conformance")
	listed, err := readExpected(filepath.Join(folder, "expected-failures.yaml"))
	if err != nil {
		return nil, err
	}
	skips, err := readExpected(filepath.Join(folder, "skipped-by-suite.yaml"))
	if err != nil {
		return nil, err
	}
	cache, err := cacheFolder(os.Getenv)
	if err != nil {
		return nil, err
	}
	s, err := install(ctx, folder, cache, progress)
	if err != nil {
		return nil, err
	}
	scenarios, err := s.scenarios()
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "thaw-conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if results == "" {
		results = filepath.Join(scratch, "results")
	} else if err := wantEmpty(results); err != nil {
		return nil, err
	}
	if url != "" {
		err = s.run(ctx, url, results)
	} else {
		err = runFixture(ctx, s, root, scratch, results, env)
	}
	if err != nil {
		return nil, err
	}
	checks, err := readChecks(results)
	if err != nil {
		return nil, err
	}
	return judge(checks, scenarios, listed, skips), nil
}

// runFixture runs the suite against a fixture that it builds and starts.
func runFixture(ctx context.Context, s *suite, root, scratch, results string, env []string) error {
	binary, err := buildFixture(ctx, root, scratch)
	if err != nil {
		return err
	}
	f, err := startFixture(ctx, binary, env...)
	if err != nil {
		return err
	}
	err = s.run(ctx, f.url, results)
	if stopped := f.stop(); err == nil {
		err = stopped
	}
	return err
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("run it inside the module")
	}
	return filepath.Dir(file), nil
}

// wantEmpty refuses a folder whose older results would be judged along with the new.
func wantEmpty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("folder %s is not empty", folder)
	}
	return nil
}
