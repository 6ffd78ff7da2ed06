package main

import (
	"bytes"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServer: what new server and new tool write is built for a laptop and for Lambda,
// vetted and tested, and it answers.
func TestServer(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "My.tools-1")
	code, stdout, stderr := run(t, root, "new", "server", "-thaw", repository(t), "My.tools-1")
	if code != 0 || !strings.Contains(stdout, "go run .") {
		t.Fatalf("new server: code %d\n%s%s", code, stdout, stderr)
	}
	for _, name := range []string{"word_count", "Weather.forecast-2", "C"} {
		// From a folder below the module's too.
		if code, _, stderr := run(t, filepath.Join(dir, "functions"), "new", "tool", name); code != 0 {
			t.Fatalf("new tool %s: code %d\n%s", name, code, stderr)
		}
	}
	if out := goCommand(t, dir, "vet", "./..."); out != "" {
		t.Errorf("go vet says %s", out)
	}
	goCommand(t, dir, "test", "./...")
	goCommand(t, dir, "build", "-tags=lambda.norpc", "-o", filepath.Join(root, "bootstrap"), ".")
	// Built for another processor it takes minutes where nothing is cached.
	if out := runMake(t, dir, "-n", "build-AnyFunction", "ARTIFACTS_DIR=/artifacts"); !strings.Contains(out, `GOARCH=arm64 go build -tags lambda.norpc`) || !strings.Contains(out, `-o "/artifacts/bootstrap" .`) {
		t.Errorf("sam build would do %s", out)
	}
	if out := runMake(t, dir, "-n", "deploy"); !strings.Contains(out, repository(t)+"/template.yaml") || !strings.Contains(out, `"thaw-My-tools-1"`) {
		t.Errorf("deploy would do %s", out)
	}
	program := filepath.Join(root, "server")
	goCommand(t, dir, "build", "-o", program, ".")
	ask := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = root
		cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "THAW_") }) // what is no setting is refused
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	if out := ask("tools"); !strings.Contains(out, "greet ") || !strings.Contains(out, "word_count ") || !strings.Contains(out, "Weather.forecast-2 ") {
		t.Errorf("tools prints %s", out)
	}
	if out := ask("call", "word_count", `{"name": "Ada"}`); !strings.Contains(out, "Hello, Ada!") {
		t.Errorf("call prints %s", out)
	}
	if out := goCommand(t, dir, "mod", "tidy", "-diff"); out != "" {
		t.Errorf("go mod tidy would change %s", out)
	}
	checkFormat(t, dir)
	checkNames(t, dir)
}

func runMake(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func checkFormat(t *testing.T, dir string) {
	t.Helper()
	for name, content := range snapshot(t, dir) {
		if filepath.Ext(name) != ".go" {
			continue
		}
		formatted, err := format.Source([]byte(content))
		if err != nil || !bytes.Equal(formatted, []byte(content)) {
			t.Errorf("%s is not gofmt'ed (%v):\n%s", name, err, content)
		}
	}
}

// checkNames: nothing is left over, and the list has its lines in order.
func checkNames(t *testing.T, dir string) {
	t.Helper()
	for name := range snapshot(t, dir) {
		if strings.Contains(name, ".thaw-new-") || strings.Contains(name, "tmpl") || strings.Contains(name, "NAME") {
			t.Errorf("%s was left over", name)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "functions", "functions.go"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `import (
	"github.com/thaw-mcp/thaw"

	"example.com/My.tools-1/functions/c"
	"example.com/My.tools-1/functions/greet"
	"example.com/My.tools-1/functions/weatherforecast2"
	"example.com/My.tools-1/functions/wordcount"
)

// Server is what main serves.
func Server() thaw.Server {
	return thaw.Server{
		Name: "My.tools-1",
		Tools: []*thaw.Tool{
			greet.New(),
			wordcount.New(),
			weatherforecast2.New(),
			c.New(),
		},
	}
}
`
	if !strings.HasSuffix(string(b), want) {
		t.Errorf("the list is\n%s\nand should end in\n%s", b, want)
	}
}

// Its checkout has a path that go.mod wants quoted.
func TestServerInAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	checkout := filepath.Join(t.TempDir(), "a checkout")
	if err := os.Symlink(repository(t), checkout); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, dir, "new", "server", "-module", "github.com/acme/helpers/v2", "-thaw", checkout, ".")
	if code != 0 || !strings.Contains(stdout, "has the server helpers with") {
		t.Fatalf("code %d\n%s%s", code, stdout, stderr)
	}
	goCommand(t, dir, "vet", "./functions/...")
}

// TestServerRefused: what fails leaves nothing.
func TestServerRefused(t *testing.T) {
	thaw := repository(t)
	// A checkout that needs what nobody has: go mod tidy fails.
	broken := t.TempDir()
	write(t, filepath.Join(broken, "go.mod"), "module "+thawModule+"\n\ngo 1.26.0\n")
	tests := []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"a folder with something in it", []string{"-thaw", thaw, "full"}, 1, "full is not empty"},
		{"a file", []string{"-thaw", thaw, "full/file"}, 1, "full/file"},
		{"a name that is no module", []string{"-thaw", thaw, "my tools"}, 2, "give a Go module with -module"},
		{"no module", []string{"-module", "github.com/acme/", "-thaw", thaw, "new"}, 2, "github.com/acme/"},
		{"a checkout that is none", []string{"-thaw", "full", "new"}, 2, "full is no checkout of thaw"},
		{"a folder of the checkout", []string{"-thaw", filepath.Join(thaw, "cmd"), "new"}, 2, "is no checkout of thaw"},
		{"no release, and nothing named", []string{"new"}, 2, "say with -thaw where that is"},
		{"a thaw that lacks packages", []string{"-thaw", broken, "new"}, 1, "go mod tidy"},
		{"the same, in a folder below one that is missing", []string{"-thaw", broken, "empty/a/b"}, 1, "go mod tidy"},
		{"a folder that cannot be made", []string{"-thaw", thaw, "empty/" + strings.Repeat("a", 256)}, 1, "file name too long"},
		{"a link to nowhere", []string{"-thaw", thaw, "link"}, 1, "link"},
		{"the same, in a folder that was there", []string{"-thaw", broken, "empty"}, 1, "go mod tidy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "full", "file"), "mine")
			if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, tt.code, tt.stderr, append([]string{"new", "server"}, tt.args...)...)
		})
	}
}

func TestSource(t *testing.T) {
	thaw := repository(t)
	tests := []struct {
		name                    string
		p                       program
		checkout                string
		version, folder, failed string
	}{
		{name: "a release", p: program{dir: t.TempDir(), release: "v0.3.1"}, version: "v0.3.1"},
		{name: "a release, and a checkout", p: program{dir: thaw, release: "v0.3.1"}, checkout: ".", version: "v0.0.0", folder: thaw},
		{name: "in the checkout", p: program{dir: filepath.Join(thaw, "cmd")}, version: "v0.0.0", folder: thaw},
		{name: "elsewhere", p: program{dir: t.TempDir()}, failed: "-thaw"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			version, folder, err := tt.p.source(tt.checkout)
			if version != tt.version || folder != tt.folder || (err != nil) != (tt.failed != "") {
				t.Errorf("%q, %q, %v", version, folder, err)
			}
		})
	}
}

func TestStackOf(t *testing.T) {
	for name, want := range map[string]string{
		"tools": "thaw-tools", "My.tools-1": "thaw-My-tools-1", "a..b": "thaw-a-b", "x.": "thaw-x",
		strings.Repeat("a", 200): "thaw-" + strings.Repeat("a", 35), strings.Repeat("a", 34) + ".b": "thaw-" + strings.Repeat("a", 34),
	} {
		if got := stackOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
