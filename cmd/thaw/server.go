package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
)

const thawModule = "github.com/thaw-mcp/thaw"

// firstTool is the tool that a new server has.
const firstTool = "greet"

// notInStack is what the name of a CloudFormation stack may not have, which has at most 128 characters;
// the names of its resources begin with it and have fewer.
var notInStack = regexp.MustCompile(`[^A-Za-z0-9]+`)

// stackOf is the stack of the server with this name.
func stackOf(name string) string {
	stack := "thaw-" + notInStack.ReplaceAllString(name, "-")
	return strings.TrimRight(stack[:min(len(stack), 40)], "-")
}

// newServer writes a server: a module of its own that builds, passes its tests and serves.
func (p *program) newServer(ctx context.Context, args []string) error {
	var modulePath, checkout string
	dir, err := parseFlags("new server", "DIR", args, func(f *flag.FlagSet) {
		f.StringVar(&modulePath, "module", "", "")
		f.StringVar(&checkout, "thaw", "", "")
	})
	if err != nil {
		return err
	}
	dir = p.abs(dir)
	if modulePath == "" {
		modulePath = "example.com/" + filepath.Base(dir)
	}
	if err := module.CheckImportPath(modulePath); err != nil {
		return fmt.Errorf("%w: %v; give a Go module with -module", errUsage, err)
	}
	prefix, _, _ := module.SplitPathVersion(modulePath)
	name := path.Base(prefix)
	v := values{Module: modulePath, Name: name, Stack: stackOf(name)}
	if v.Thaw, v.Replace, err = p.source(checkout); err != nil {
		return err
	}
	made, err := makeEmpty(dir)
	if err == nil {
		err = writeServer(ctx, dir, v)
	}
	if err != nil {
		return errors.Join(err, removeFolders(made)) // writeServer has left them empty
	}
	fmt.Fprintf(p.out, "%s has the server %s with the tool %s\n  cd %s && go run .\n  go tool thaw new tool NAME   # there: another one\n", dir, v.Name, firstTool, dir)
	return nil
}

// abs is a path of the command line.
func (p *program) abs(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(p.dir, name)
}

// source says which thaw a new server uses: a version, and the folder of a checkout in its
// place if this program is no release.
func (p *program) source(checkout string) (version, folder string, err error) {
	const unreleased = "v0.0.0" // the folder is what counts
	if checkout != "" {
		folder = p.abs(checkout)
		if m, err := moduleAround(folder); err != nil || m.path != thawModule || m.dir != folder {
			return "", "", fmt.Errorf("%w: -thaw: %s is no checkout of thaw", errUsage, folder)
		}
		return unreleased, folder, nil
	}
	if p.release != "" {
		return p.release, "", nil
	}
	if m, err := moduleAround(p.dir); err == nil && m.path == thawModule {
		return unreleased, m.dir, nil
	}
	return "", "", fmt.Errorf("%w: this program was built from a checkout of thaw and not from a release: say with -thaw where that is", errUsage)
}

// makeEmpty makes a folder and those above it that are missing, and returns them, the innermost
// first. One that is there is taken if it is empty.
func makeEmpty(dir string) (made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append(made, at)
	}
	if len(made) > 0 {
		return made, os.MkdirAll(dir, 0o755)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty", dir)
	}
	return nil, err
}

// removeFolders removes empty folders, the innermost first. One may be missing.
func removeFolders(dirs []string) (err error) {
	for _, d := range dirs {
		if e := os.Remove(d); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// writeServer writes a server into an empty folder, whole or not at all.
func writeServer(ctx context.Context, dir string, v values) error {
	staged, err := stage(dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(staged)
	if err := render("server", staged, v); err != nil {
		return err
	}
	v.Tool, v.Package, v.Title = firstTool, firstTool, titleOf(firstTool)
	if err := render("tool", filepath.Join(staged, "functions", v.Package), v); err != nil {
		return err
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = staged
	if out, err := tidy.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy, which looks up what thaw needs: %w\n%s", err, out)
	}
	return moveInto(dir, staged)
}
