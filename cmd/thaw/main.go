// Command thaw makes what no binary is there for yet: a server, and tools in it.
//
//	thaw new server mytools
//	cd mytools && go run .
//	go tool thaw new tool word_count
//
// The last line is this program too, of the version of thaw that the server has in its go.mod.
//
// What a server can do once it is built (check, tools, call, keys, tasks) are commands of its
// own binary: see runtime/serve.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
)

const usage = `usage: thaw COMMAND
  new server [-module PATH] [-thaw DIR] DIR
                    a server with one tool in the folder DIR, which is made or is empty;
                    PATH is its Go module, example.com/ and the name of DIR if not given.
                    -thaw takes thaw from a checkout of it in place of a release
  new tool [-unlisted] NAME
                    a tool and its test in functions/, and its line in
                    functions/functions.go, which -unlisted leaves to you
  help              this text
`

var (
	errUsage = errors.New("usage")
	errHelp  = errors.New("help") // asked for, which is no failure
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	info, _ := debug.ReadBuildInfo()
	p := program{dir: dir, release: releaseOf(info), out: os.Stdout, err: os.Stderr}
	code := p.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// program is main with everything outside it handed in.
type program struct {
	dir     string // that arguments are relative to
	release string // of thaw, that this program was built of; empty if it is none
	out     io.Writer
	err     io.Writer
}

// main returns the exit code: 0 done, 1 failed, 2 bad usage. What failed has left nothing.
func (p *program) main(ctx context.Context, args []string) int {
	err := p.run(ctx, args)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errHelp):
		fmt.Fprint(p.out, usage)
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(p.err, strings.TrimRight(err.Error(), "\n"))
		return 2
	}
	fmt.Fprintln(p.err, err)
	return 1
}

// commands are all there are, by the words that name them.
var commands = map[string]func(p *program, ctx context.Context, args []string) error{
	"new server": (*program).newServer,
	"new tool":   (*program).newTool,
}

func (p *program) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: a command is missing\n%s", errUsage, usage)
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[len(args)-1]) && len(args) < 3 {
		return errHelp
	}
	if len(args) > 1 {
		if command, ok := commands[args[0]+" "+args[1]]; ok {
			return command(p, ctx, args[2:])
		}
	}
	if args[0] == "new" {
		return fmt.Errorf("%w: new makes a server or a tool\n%s", errUsage, usage)
	}
	return fmt.Errorf("%w: unknown command %q\n%s", errUsage, strings.Join(args[:min(len(args), 2)], " "), usage)
}

// parseFlags parses the flags of a command; what is left is the one argument it takes.
func parseFlags(name, argument string, args []string, declare func(*flag.FlagSet)) (string, error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	declare(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return "", errHelp
	} else if err != nil {
		return "", fmt.Errorf("%w: %s: %v\n%s", errUsage, name, err, usage)
	}
	if flags.NArg() != 1 {
		return "", fmt.Errorf("%w: %s takes one %s, after its flags\n%s", errUsage, name, argument, usage)
	}
	return flags.Arg(0), nil
}

// releaseOf is the version of thaw that a program was built of, empty if that was a working
// copy: what others can get by the version that Go gives such a build is not known.
func releaseOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Path != thawModule || info.Main.Version == "(devel)" {
		return ""
	}
	if slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs" }) {
		return ""
	}
	return info.Main.Version
}
