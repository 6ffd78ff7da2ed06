package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeSuite is a suite whose Node is a shell script; $1 is the suite's script, $8 the
// results folder.
func fakeSuite(t *testing.T, script string) *suite {
	t.Helper()
	node := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(node, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &suite{node: node, folder: "/suite"}
}

func TestSuiteRun(t *testing.T) {
	const makes = `test "$*" = "/suite/dist/index.js server --url http://127.0.0.1:1/mcp --requirements 2026-07-28 -o $8" || exit 9
mkdir "$8"
`
	tests := []struct{ name, script, want string }{
		{"all pass", makes, ""},
		{"some fail", makes + "exit 1\n", ""},
		{"it breaks before its first result", "echo no such export; exit 1\n", "no such export"},
		{"it breaks", makes + "echo broken; exit 7\n", "broken"},
		{"it is killed", makes + "kill -9 $$\n", "killed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := fakeSuite(t, tt.script).run(t.Context(), "http://127.0.0.1:1/mcp", filepath.Join(t.TempDir(), "results"))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := fakeSuite(t, makes).run(ctx, "http://127.0.0.1:1/mcp", filepath.Join(t.TempDir(), "results")); err == nil || !strings.Contains(err.Error(), "stopped before its end") {
			t.Errorf("error %v", err)
		}
	})
}

func TestTail(t *testing.T) {
	if got := tail("a\nb\n"); got != "a\nb" {
		t.Errorf("tail %q", got)
	}
	if got := strings.Count(tail(strings.Repeat("x\n", 100)), "x"); got != 40 {
		t.Errorf("tail of 100 lines has %d, want 40", got)
	}
}

func TestWantEmpty(t *testing.T) {
	folder := t.TempDir()
	for _, free := range []string{folder, filepath.Join(folder, "new")} {
		if err := wantEmpty(free); err != nil {
			t.Error(err)
		}
	}
	write(t, folder, listFolder, `[]`)
	if err := wantEmpty(folder); err == nil {
		t.Error("a folder with older results was taken")
	}
}
