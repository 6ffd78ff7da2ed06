package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
)

//go:embed templates
var templates embed.FS

// functions are what templates call.
var functions = template.FuncMap{"quoted": modfile.AutoQuote} // as go.mod wants a path with spaces

// values are what templates are filled with.
type values struct {
	Module  string // of the server
	Name    string // of the server
	Stack   string // of its deployment
	Thaw    string // version of thaw
	Replace string // folder that thaw is in, if it is no release
	Tool    string
	Package string // of the tool
	Title   string // of the tool
}

// render writes the files below templates/kind into a folder. A last element NAME.go or
// NAME_test.go gets the package's name, and gitignore its point: a go.mod in a folder would
// make it another module, and an embedded file may not begin with one.
func render(kind, folder string, v values) error {
	root := path.Join("templates", kind)
	return fs.WalkDir(templates, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		t, err := template.New(path.Base(name)).Option("missingkey=error").Funcs(functions).ParseFS(templates, name)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, v); err != nil {
			return err
		}
		target := strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), ".tmpl")
		target = strings.NewReplacer("NAME", v.Package, "gitignore", ".gitignore").Replace(target)
		content := b.Bytes()
		if path.Ext(target) == ".go" { // imports sort by the names they were given
			if content, err = format.Source(content); err != nil {
				return fmt.Errorf("%s: %w", target, err)
			}
		}
		file := filepath.Join(folder, filepath.FromSlash(target))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, content, 0o644)
	})
}

// stage makes a folder in dir for what is to appear there all at once or not at all.
func stage(dir string) (string, error) { return os.MkdirTemp(dir, ".thaw-new-") }

// moveInto moves everything in a folder into dir, where none of it is yet.
func moveInto(dir, folder string) (err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var moved []string
	defer func() {
		if err != nil {
			for _, m := range moved {
				err = errors.Join(err, os.RemoveAll(m))
			}
		}
	}()
	for _, e := range entries {
		target := filepath.Join(dir, e.Name())
		if err := mustBeMissing(target); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(folder, e.Name()), target); err != nil {
			return err
		}
		moved = append(moved, target)
	}
	return nil
}

// mustBeMissing is an error if there is something at name.
func mustBeMissing(name string) error {
	_, err := os.Lstat(name)
	if err == nil {
		return fmt.Errorf("%s exists already", name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// replaceFile changes a file's content in one step; its permissions stay, and a link to it.
func replaceFile(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".thaw-new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
