// Package deploy deploys template.yaml as its reader would, with sam build and sam deploy, to
// an emulator of AWS, and has a client use what is there. What the emulator cannot tell, the
// template is asked as CloudFormation gets it.
package deploy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/pypi"
)

// root is that of the repository.
const root = "../.."

// samTime bounds one command of SAM CLI. The first build of all compiles the SDK.
const samTime = 8 * time.Minute

// sam runs SAM CLI in a folder, for the region and credentials of an emulator or for none.
func sam(t *testing.T, folder string, env []string, args ...string) {
	t.Helper()
	python(t, folder, env, append([]string{"-m", "samcli"}, args...)...)
}

// python runs the Python that knows SAM CLI, and so SAM's translator and the linter for
// CloudFormation, and returns what it wrote to stdout.
func python(t *testing.T, folder string, env []string, args ...string) []byte {
	t.Helper()
	program, err := pypi.Install(t.Context(), "sam")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), samTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	none := filepath.Join(t.TempDir(), "none")
	cmd.Env = slices.Concat(os.Environ(), []string{
		"SAM_CLI_TELEMETRY=0", "__SAM_CLI_APP_DIR=" + t.TempDir(), "PYTHONDONTWRITEBYTECODE=1",
		"AWS_CONFIG_FILE=" + none, "AWS_SHARED_CREDENTIALS_FILE=" + none, "AWS_REGION=eu-central-1", "AWS_DEFAULT_REGION=eu-central-1",
		"LAMBDA_ARCH=" + runtime.GOARCH, // the emulator runs functions on this machine, whatever their Architectures say
	}, env)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.Bytes()
}

// project is a copy of what sam build reads of the repository: the test puts its keys into it,
// and changes in its template what the emulator needs otherwise.
func project(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		from, to := filepath.Join(root, name), filepath.Join(folder, name)
		switch {
		case name[0] == '.' || slices.Contains([]string{"apikeys", "bin", "e2e", "out"}, name):
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, text, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// newServer is a project that thaw new server made, with what make deploy begins with.
func newServer(t *testing.T) string {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "tools")
	for _, do := range [][]string{
		{repository, "go", "run", "./cmd/thaw", "new", "server", folder},
		{folder, "make", "template.yaml", "samconfig.toml"},
	} {
		cmd := exec.CommandContext(t.Context(), do[1], do[2:]...)
		cmd.Dir = do[0]
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	return folder
}

// replace changes in a file the matches of a pattern, of which there are n.
func replace(t *testing.T, file string, n int, pattern, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := regexp.MustCompile(pattern)
	if found := len(p.FindAll(text, -1)); found != n {
		t.Fatalf("%s matches %q %d times", file, pattern, found)
	}
	if err := os.WriteFile(file, p.ReplaceAllLiteral(text, []byte(to)), 0o644); err != nil {
		t.Fatal(err)
	}
}
