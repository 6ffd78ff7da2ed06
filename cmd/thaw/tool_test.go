package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
)

const list = `package functions

import "github.com/thaw-mcp/thaw"

var tools = []*thaw.Tool{}
`

// moduleWith is a folder with a module that has a list of tools.
func moduleWith(t *testing.T, functions string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/tools // mine\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "functions", "functions.go"), functions)
	return dir
}

// TestToolRefused: what fails leaves everything as it was.
func TestToolRefused(t *testing.T) {
	tests := []struct {
		name, functions string
		args            []string
		code            int
		stderr          string
	}{
		{"no name", list, []string{""}, 2, "1 to 128 of the characters"},
		{"a space", list, []string{"word count"}, 2, "1 to 128 of the characters"},
		{"a path", list, []string{"../x"}, 2, "1 to 128 of the characters"},
		{"too long", list, []string{strings.Repeat("a", 129)}, 2, "1 to 128 of the characters"},
		{"a digit first", list, []string{"2_times"}, 2, "a letter comes first"},
		{"no letter", list, []string{"._"}, 2, "a letter comes first"},
		{"a keyword", list, []string{"type"}, 2, `its package would be "type"`},
		{"a keyword in parts", list, []string{"Go-To"}, 2, `its package would be "goto"`},
		{"predeclared", list, []string{"append"}, 2, `its package would be "append"`},
		{"what tests import", list, []string{"testing"}, 2, `its package would be "testing"`},
		{"a folder that Go treats otherwise", list, []string{"test_data"}, 2, `its package would be "testdata"`},
		{"a package that cannot be imported", list, []string{"init"}, 2, `its package would be "init"`},
		{"a package that Go takes for a remark", list, []string{"documentation"}, 2, `its package would be "documentation"`},
		{"what the test is handed", list, []string{"T"}, 2, `its package would be "t"`},
		{"no file on Windows", list, []string{"NUL"}, 2, `its package would be "nul"`},
		{"there already", list, []string{"there"}, 1, "there exists already"},
		{"there by another name", list, []string{"The.Re"}, 1, "there exists already"},
		{"a name of the list", list, []string{"tools"}, 1, "the name tools is used in it"},
		{"no list", "package functions\n", []string{"x"}, 1, `it has no []*thaw.Tool{…}. Nothing was written; with -unlisted the tool is, and you add import "example.com/tools/functions/x"`},
		{"no Go", "tools:\n", []string{"x"}, 1, "expected 'package'"},
		{"a list of something else", "package functions\n\nimport thaw \"example.com/thaw\"\n\nvar tools = []*thaw.Tool{}\n", []string{"x"}, 1, "it has no []*thaw.Tool{…}"},
		{"a comment at the end of the list", "package functions\n\nimport \"github.com/thaw-mcp/thaw\"\n\nvar tools = []*thaw.Tool{\n\tnil, /* none\n\tyet */}\n", []string{"x"}, 1, "a comment stands where a line belongs"},
		{"a comment behind the imports", "package functions\n\nimport \"github.com/thaw-mcp/thaw\" /* of\ntools */\n\nvar tools = []*thaw.Tool{}\n", []string{"x"}, 1, "a comment stands where a line belongs"},
		{"two lists", list + "\nvar more = []*thaw.Tool{nil}\n", []string{"x"}, 1, "2 times []*thaw.Tool{…}"},
		{"no list, and there already", "package functions\n", []string{"-unlisted", "there"}, 1, "there exists already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := moduleWith(t, tt.functions)
			write(t, filepath.Join(dir, "functions", "there", "there.go"), "package there\n")
			refused(t, dir, tt.code, tt.stderr, append([]string{"new", "tool"}, tt.args...)...)
		})
	}
}

func TestToolNowhere(t *testing.T) {
	if code, _, stderr := run(t, t.TempDir(), "new", "tool", "x"); code != 1 || !strings.Contains(stderr, "is in no Go module") {
		t.Errorf("outside of a module: code %d, %s", code, stderr)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/x\n")
	if code, _, stderr := run(t, dir, "new", "tool", "x"); code != 1 || !strings.Contains(stderr, "functions.go is missing") {
		t.Errorf("without a list: code %d, %s", code, stderr)
	}
	write(t, filepath.Join(dir, "go.mod"), "go 1.26.0\n")
	if code, _, stderr := run(t, dir, "new", "tool", "x"); code != 1 || !strings.Contains(stderr, "names no module") {
		t.Errorf("a go.mod without a name: code %d, %s", code, stderr)
	}
}

// TestToolUnlisted: the list stays as it is, whatever it is, and the lines are told.
func TestToolUnlisted(t *testing.T) {
	dir := moduleWith(t, "package functions\n")
	code, stdout, stderr := run(t, dir, "new", "tool", "-unlisted", "word_count")
	if code != 0 || !strings.Contains(stdout, `import "example.com/tools/functions/wordcount"`) || !strings.Contains(stdout, "wordcount.New()") {
		t.Errorf("code %d, %s%s", code, stdout, stderr)
	}
	files := snapshot(t, dir)
	if files[filepath.Join(dir, "functions", "functions.go")] != "package functions\n" || files[filepath.Join(dir, "functions", "wordcount", "wordcount_test.go")] == "" {
		t.Errorf("there is %v", files)
	}
}

// TestListThatCannotBeWritten: the folder goes again.
func TestListThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "functions.go")
	if err := os.Mkdir(name, 0o755); err != nil { // over which no file can be moved
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	folder := filepath.Join(dir, "x")
	if err := writeTool(folder, values{Module: "example.com/tools", Tool: "x", Package: "x", Title: "X"}); err != nil {
		t.Fatal(err)
	}
	if err := listTool(name, []byte(list), folder); err == nil {
		t.Error("the list was written")
	}
	if after := snapshot(t, dir); !maps.Equal(before, after) {
		t.Errorf("it left %v, before there was %v", after, before)
	}
}

// TestListBehindALink: the file that a link leads to is the one that changes.
func TestListBehindALink(t *testing.T) {
	dir := moduleWith(t, list)
	name := filepath.Join(dir, "functions", "functions.go")
	if err := os.Rename(name, name+".there"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("functions.go.there", name); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, dir, "new", "tool", "x"); code != 0 {
		t.Fatalf("code %d, %q", code, stderr)
	}
	if link, err := os.Readlink(name); err != nil || link != "functions.go.there" {
		t.Errorf("the link leads to %q (%v)", link, err)
	}
	if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), "x.New()") {
		t.Errorf("the list is %s (%v)", b, err)
	}
}

// TestOwnTools: a tool that is added to the tools of this repository is built and tested
// with them. The tree itself stays as it is: Go is told of the new files by an overlay.
func TestOwnTools(t *testing.T) {
	root := repository(t)
	functions := filepath.Join(root, "functions")
	src, err := os.ReadFile(filepath.Join(functions, "functions.go"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module "+thawModule+"\n")
	write(t, filepath.Join(dir, "functions", "functions.go"), string(src))
	if code, _, stderr := run(t, dir, "new", "tool", "word_count"); code != 0 {
		t.Fatalf("code %d, %s", code, stderr)
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for name, content := range snapshot(t, filepath.Join(dir, "functions")) {
		if content != "" {
			overlay["Replace"][strings.Replace(name, dir, root, 1)] = name
		}
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(b))
	t.Setenv("GOFLAGS", "-overlay="+filepath.Join(dir, "overlay.json")) // for what the tests call too
	goCommand(t, root, "test", "-vet=off", "-run=TestServer|TestToolsWithoutWhatTheyNeed|TestArrows", ".", "./functions")
	goCommand(t, root, "test", "-vet=off", "-c", "-o", filepath.Join(dir, "wordcount.test"), "./functions/wordcount")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "wordcount.test")).CombinedOutput(); err != nil {
		t.Errorf("its test: %v\n%s", err, out)
	}

	after, err := os.ReadFile(filepath.Join(dir, "functions", "functions.go"))
	if err != nil {
		t.Fatal(err)
	}
	before, now := strings.Split(string(src), "\n"), strings.Split(string(after), "\n")
	if len(now) != len(before)+1 { // the import; the tool stands in a line with others
		t.Errorf("the list has %d lines, before it had %d:\n%s", len(now), len(before), after)
	}
	if !slices.ContainsFunc(now, func(l string) bool { return strings.HasSuffix(l, ", wordcount.New()},") }) {
		t.Errorf("the list is\n%s", after)
	}
}

// TestToolNames: a name that thaw refuses is refused here, and the other way round (F-05).
func TestToolNames(t *testing.T) {
	registers := func(name string) (ok bool) {
		defer func() { ok = recover() == nil }()
		thaw.NewTool(name, "", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
		return true
	}
	names := []string{"", strings.Repeat("a", 128), strings.Repeat("a", 129), "é", "a\n"}
	for c := range 256 {
		names = append(names, fmt.Sprintf("a%cb", rune(c)), string([]byte{'a', byte(c)}))
	}
	for _, name := range names {
		if got, want := toolName.MatchString(name), registers(name); got != want {
			t.Errorf("%q: %t here, %t in thaw", name, got, want)
		}
	}
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{"word_count": "Word count", "x": "X", "Weather.forecast-2": "Weather forecast 2", "_a_": "A"} {
		if got := titleOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
