package main

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/module"
)

// toolName is what MCP lets a tool be called (F-05).
var toolName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// packageName is what is left of a name that Go can import.
var packageName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// reserved are what the files of a tool and its test import and call something, packages that
// cannot be imported, and folders that mean something else to Go.
var reserved = []string{"context", "testing", "thaw", "thawtest", "t", "main", "init", "documentation", "internal", "vendor", "testdata"}

// packageOf is the package, and the folder, of the tool name: its letters and digits in
// lower case.
func packageOf(name string) (string, error) {
	if !toolName.MatchString(name) {
		return "", fmt.Errorf("%w: the name %q: a tool's name has 1 to 128 of the characters A-Z a-z 0-9 . _ -", errUsage, name)
	}
	p := strings.ToLower(strings.NewReplacer(".", "", "_", "", "-", "").Replace(name))
	switch {
	case !packageName.MatchString(p):
		return "", fmt.Errorf("%w: the name %q: its letters and digits name a Go package, so a letter comes first", errUsage, name)
	// CheckImportPath knows what Windows has no files of.
	case token.IsKeyword(p), types.Universe.Lookup(p) != nil, slices.Contains(reserved, p), module.CheckImportPath(p) != nil:
		return "", fmt.Errorf("%w: the name %q: its package would be %q, which means something else in Go", errUsage, name, p)
	}
	return p, nil
}

// titleOf is a tool's name as people read it: word_count is "Word count".
func titleOf(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("._-", r) })
	title := []rune(strings.Join(words, " "))
	title[0] = unicode.ToUpper(title[0])
	return string(title)
}
