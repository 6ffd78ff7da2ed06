package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// newTool writes functions/PACKAGE with a tool and its test, and the tool's line in
// functions/functions.go of the module around the working directory.
func (p *program) newTool(_ context.Context, args []string) error {
	unlisted := false
	name, err := parseFlags("new tool", "NAME", args, func(f *flag.FlagSet) { f.BoolVar(&unlisted, "unlisted", false, "") })
	if err != nil {
		return err
	}
	pkg, err := packageOf(name)
	if err != nil {
		return err
	}
	m, err := moduleAround(p.dir)
	if err != nil {
		return err
	}
	functions := filepath.Join(m.dir, "functions")
	list := filepath.Join(functions, "functions.go")
	importPath := path.Join(m.path, "functions", pkg)
	src, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing: new tool adds to a server that new server made, or to one of that layout", list)
	}
	if err != nil {
		return err
	}
	folder := filepath.Join(functions, pkg)
	if err := mustBeMissing(folder); err != nil {
		return err
	}
	if !unlisted {
		if src, err = addTool(src, importPath); err != nil {
			return fmt.Errorf("%s is not as expected: %w. Nothing was written; with -unlisted the tool is, and you add %s", list, err, byHand(importPath))
		}
	}
	if err := writeTool(folder, values{Module: m.path, Tool: name, Package: pkg, Title: titleOf(name)}); err != nil {
		return err
	}
	if unlisted {
		fmt.Fprintf(p.out, "%s has the tool %s; add to %s\n%s\n", folder, name, list, byHand(importPath))
		return nil
	}
	if err := listTool(list, src, folder); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s has the tool %s, and %s its line\n  go test ./functions/...\n", folder, name, list)
	return nil
}

// listTool writes the list that has the tool in folder, or takes that away again.
func listTool(list string, src []byte, folder string) error {
	if err := replaceFile(list, src); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}

// writeTool writes a tool's folder, whole or not at all.
func writeTool(folder string, v values) error {
	staged, err := stage(filepath.Dir(folder))
	if err != nil {
		return err
	}
	defer os.RemoveAll(staged)
	inner := filepath.Join(staged, v.Package)
	if err := render("tool", inner, v); err != nil {
		return err
	}
	return os.Rename(inner, folder)
}

// goModule is where a Go module is and what it is called.
type goModule struct{ dir, path string }

// moduleAround finds the module that a folder is in.
func moduleAround(dir string) (goModule, error) {
	for at := dir; ; at = filepath.Dir(at) {
		b, err := os.ReadFile(filepath.Join(at, "go.mod"))
		switch {
		case err == nil:
			name := modfile.ModulePath(b)
			if name == "" {
				return goModule{}, fmt.Errorf("%s names no module", filepath.Join(at, "go.mod"))
			}
			return goModule{at, name}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return goModule{}, err
		case at == filepath.Dir(at):
			return goModule{}, fmt.Errorf("%s is in no Go module: go to the folder of a server, or make one with new server", dir)
		}
	}
}
