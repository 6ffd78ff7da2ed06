package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asMain makes the test binary the program itself, so that main is tested as it is.
const asMain = "RUN_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestCommands(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		env    []string
		code   int
		stdout string
		stderr string
	}{
		{name: "check", args: []string{"check"}, stdout: "ok: host local"},
		{name: "tools", args: []string{"tools"}, stdout: "text_analysis"},
		{name: "call", args: []string{"call", "text_analysis", `{"text": "I love it"}`}, stdout: `"sentiment":"positive"`},
		{name: "failing call", args: []string{"call", "text_analysis", `{"text": "Ich liebe es", "language": "de"}`}, code: 1, stderr: `"de" is not supported`},
		{name: "on Lambda nothing is open by default", args: []string{"check"}, env: []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1"}, code: 2, stderr: "THAW_AUTH must be set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], tt.args...)
			cmd.Env = append([]string{asMain + "=1"}, tt.env...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.code {
				t.Errorf("ended in %v, want exit code %d", err, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("want %q on stdout and %q on stderr, got:\n%s\n%s", tt.stdout, tt.stderr, &stdout, &stderr)
			}
		})
	}
}
