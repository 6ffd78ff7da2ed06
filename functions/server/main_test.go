package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	noDatabase := filepath.Join(folder, "text")
	if err := os.WriteFile(noDatabase, bytes.Repeat([]byte("no database\n"), 100), 0o644); err != nil {
		t.Fatal(err)
	}
	const region = "AWS_REGION=eu-central-1"
	tests := []struct {
		name   string
		args   []string
		env    []string
		code   int
		stdout string
		stderr string
	}{
		{name: "check", args: []string{"check"}, stdout: "ok: host local"},
		{name: "a store that is a folder", args: []string{"check"}, env: []string{"THAW_STORE=sqlite:" + folder}, code: 2, stderr: "THAW_STORE: open "},
		{name: "a store that is no database", args: []string{"check"}, env: []string{"THAW_STORE=sqlite:" + noDatabase}, code: 2, stderr: "THAW_STORE: open "},
		{name: "a store that is no database, serving", env: []string{"THAW_ADDR=localhost:0", "THAW_STORE=sqlite:" + noDatabase}, code: 2, stderr: "THAW_STORE: open "},
		{name: "an api whose tasks nobody sees", env: []string{"THAW_STORE=memory:", "THAW_ROLE=api"}, code: 2, stderr: "THAW_ROLE=api needs a THAW_STORE that other processes see"},
		{name: "tools", args: []string{"tools"}, stdout: "text_analysis"},
		{name: "call", args: []string{"call", "text_analysis", `{"text": "I love it"}`}, stdout: `"sentiment":"positive"`},
		{name: "failing call", args: []string{"call", "text_analysis", `{"text": "Ich liebe es", "language": "de"}`}, code: 1, stderr: `"de" is not supported`},
		{name: "on Lambda nothing is open by default", args: []string{"check"}, env: []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1"}, code: 2, stderr: "THAW_AUTH must be set"},
		{name: "without files", args: []string{"call", "delete_files", `{"files": ["a"]}`}, code: 1, stderr: `unknown tool "delete_files"`},
		{name: "delete_files in a folder", args: []string{"tools"}, env: []string{"FILES_ROOT=" + folder}, stdout: "delete_files"},
		{name: "delete_files in a bucket", args: []string{"tools"}, env: []string{"FILES_ROOT=s3://bucket", region}, stdout: "delete_files"},
		{name: "delete_files below a prefix", args: []string{"tools"}, env: []string{"FILES_ROOT=s3://bucket/a/b/", region}, stdout: "delete_files"},
		{name: "no folder", args: []string{"check"}, env: []string{"FILES_ROOT=./missing"}, code: 2,
			stderr: `FILES_ROOT="./missing": there is no such folder; allowed is a folder that exists, or s3://BUCKET[/PREFIX]`},
		{name: "a file", args: []string{"check"}, env: []string{"FILES_ROOT=" + file}, code: 2, stderr: "not a directory; allowed is"},
		{name: "another scheme", args: []string{"check"}, env: []string{"FILES_ROOT=gs://bucket"}, code: 2, stderr: `there is no scheme "gs"; allowed is`},
		{name: "no name of a bucket", args: []string{"check"}, env: []string{"FILES_ROOT=s3://Bucket/a", region}, code: 2, stderr: `"Bucket" is no name of a bucket`},
		{name: "no bucket", args: []string{"check"}, env: []string{"FILES_ROOT=s3://", region}, code: 2, stderr: `"" is no name of a bucket`},
		{name: "a prefix that leads elsewhere", args: []string{"check"}, env: []string{"FILES_ROOT=s3://bucket/a/../b", region}, code: 2, stderr: `the prefix "a/../b" is no clean path`},
		{name: "a prefix of a dot", args: []string{"check"}, env: []string{"FILES_ROOT=s3://bucket/.", region}, code: 2, stderr: `the prefix "." is no clean path`},
		{name: "no region", args: []string{"check"}, env: []string{"FILES_ROOT=s3://bucket"}, code: 2, stderr: "AWS_REGION is not set"},
		{name: "environments in a folder", args: []string{"tools"}, env: []string{"ENVIRONMENTS_ROOT=./new"}, stdout: "provision_environment"},
		{name: "environments in a bucket", args: []string{"tools"}, env: []string{"ENVIRONMENTS_ROOT=s3://bucket/a", region}, stdout: "provision_environment"},
		{name: "environments in no bucket", args: []string{"check"}, env: []string{"ENVIRONMENTS_ROOT=s3://Bucket", region}, code: 2,
			stderr: `ENVIRONMENTS_ROOT="s3://Bucket": "Bucket" is no name of a bucket; allowed is a folder`},
		{name: "without environments", args: []string{"call", "provision_environment", `{"region": "eu-west1"}`}, code: 1, stderr: `unknown tool "provision_environment"`},
		{name: "environments in a file", args: []string{"check"}, env: []string{"ENVIRONMENTS_ROOT=" + file}, code: 2, stderr: "it is no folder; allowed is a folder"},
		{name: "environments in a cloud", args: []string{"check"}, env: []string{"ENVIRONMENTS_ROOT=gcp://project"}, code: 2, stderr: `there is no scheme "gcp"; allowed is`},
		{name: "both wrong, files", args: []string{"check"}, env: []string{"FILES_ROOT=gs://bucket", "ENVIRONMENTS_ROOT=gcp://project"}, code: 2, stderr: "FILES_ROOT"},
		{name: "both wrong, environments", args: []string{"check"}, env: []string{"FILES_ROOT=gs://bucket", "ENVIRONMENTS_ROOT=gcp://project"}, code: 2, stderr: "ENVIRONMENTS_ROOT"},
		{name: "beside other settings that are wrong", args: []string{"check"}, env: []string{"FILES_ROOT=./missing", "THAW_ADDR=x"}, code: 2, stderr: "THAW_ADDR"},
		{name: "beside other settings that are wrong, itself", args: []string{"check"}, env: []string{"FILES_ROOT=./missing", "THAW_ADDR=x"}, code: 2, stderr: "FILES_ROOT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := run(t, program, append(tt.env, asMain+"=1"), tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("want %q on stdout and %q on stderr, got:\n%s\n%s", tt.stdout, tt.stderr, stdout, stderr)
			}
		})
	}
}

// What is built for Lambda names no disk: each instance has one of its own.
func TestBuildForLambda(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", binary).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = `FILES_ROOT=".": a build for Lambda has no folders; allowed is s3://BUCKET[/PREFIX]`
	if _, stderr, code := run(t, binary, []string{"FILES_ROOT=."}, "check"); code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	const noCloud = `ENVIRONMENTS_ROOT=".": a build for Lambda has no folders; allowed is s3://BUCKET[/PREFIX]`
	if _, stderr, code := run(t, binary, []string{"ENVIRONMENTS_ROOT=."}, "check"); code != 2 || !strings.Contains(stderr, noCloud) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	bucket := []string{"FILES_ROOT=s3://bucket", "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret"}
	if stdout, stderr, code := run(t, binary, bucket, "tools"); code != 0 || !strings.Contains(stdout, "delete_files") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// run runs a program in an empty folder, where its store and key are, with these settings
// alone.
func run(t *testing.T, program string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = t.TempDir(), env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
