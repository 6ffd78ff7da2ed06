package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// repository is the checkout that this test is in.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// run is the program with args in the folder dir, built from a checkout.
func run(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	p := program{dir: dir, out: &out, err: &problems}
	code = p.main(t.Context(), args)
	return code, out.String(), problems.String()
}

// goCommand is the go command in a folder; it has to succeed.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// snapshot is every file below a folder with its content, every link and every folder.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			all[name] = ""
			return err
		}
		if entry.Type() == os.ModeSymlink {
			all[name], err = os.Readlink(name)
			return err
		}
		b, err := os.ReadFile(name)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refused runs a command in dir that has to fail with a code and a text, and to leave everything as it was.
func refused(t *testing.T, dir string, code int, text string, args ...string) {
	t.Helper()
	before := snapshot(t, dir)
	got, stdout, stderr := run(t, dir, args...)
	if got != code || stdout != "" || !strings.Contains(stderr, text) {
		t.Errorf("code %d, want %d; stdout %q; stderr %q", got, code, stdout, stderr)
	}
	if after := snapshot(t, dir); !maps.Equal(before, after) {
		t.Errorf("it left %v, before there was %v", after, before)
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"nothing", nil, 2, "", "a command is missing"},
		{"help", []string{"help"}, 0, "new server [-module PATH]", ""},
		{"-h", []string{"-h"}, 0, "new tool [-unlisted] NAME", ""},
		{"--help", []string{"--help"}, 0, "usage: thaw", ""},
		{"new -h", []string{"new", "-h"}, 0, "usage: thaw", ""},
		{"new server -h", []string{"new", "server", "-h"}, 0, "usage: thaw", ""},
		{"new tool --help", []string{"new", "tool", "--help"}, 0, "usage: thaw", ""},
		{"unknown", []string{"deploy"}, 2, "", `unknown command "deploy"`},
		{"new alone", []string{"new"}, 2, "", "new makes a server or a tool"},
		{"new something", []string{"new", "prompt", "x"}, 2, "", "new makes a server or a tool"},
		{"no name", []string{"new", "tool"}, 2, "", "new tool takes one NAME"},
		{"two names", []string{"new", "tool", "a", "b"}, 2, "", "new tool takes one NAME"},
		{"a flag behind", []string{"new", "tool", "a", "-unlisted"}, 2, "", "after its flags"},
		{"unknown flag", []string{"new", "tool", "-force", "a"}, 2, "", "-force"},
		{"no folder", []string{"new", "server"}, 2, "", "new server takes one DIR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := run(t, t.TempDir(), tt.args...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) || (stdout == "") != (tt.stdout == "") {
				t.Errorf("code %d, want %d; stdout %q; stderr %q", code, tt.code, stdout, stderr)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	build := func(path, version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: path, Version: version}, Settings: settings}
	}
	tests := []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"go install of a version", build(thawModule, "v0.3.1"), "v0.3.1"},
		{"go install of a commit", build(thawModule, "v0.3.2-0.20261130190000-0123456789ab"), "v0.3.2-0.20261130190000-0123456789ab"},
		{"a working copy", build(thawModule, "v0.3.1", debug.BuildSetting{Key: "vcs", Value: "git"}), ""},
		{"a working copy without its history", build(thawModule, "(devel)"), ""},
		{"a part of another program", build("example.com/x", "v1.0.0"), ""},
		{"nothing known", nil, ""},
	}
	for _, tt := range tests {
		if got := releaseOf(tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
