package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// revision is the set of scenarios that is run, and the wire it is run at.
const revision = "2026-07-28"

// suiteTime is more than a run needs; a suite that hangs must not hang its caller.
const suiteTime = 10 * time.Minute

// suite is the installed conformance suite.
type suite struct {
	node   string // the program that runs it
	folder string // of its package
}

func (s *suite) script() string { return filepath.Join(s.folder, "dist", "index.js") }

// scenarios are those that a run against a server has to report: the required ones and
// those that are run without being scored.
func (s *suite) scenarios() ([]string, error) {
	file := filepath.Join(s.folder, "requirements", revision+".yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	names, err := parseScenarios(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return names, nil
}

func parseScenarios(b []byte) ([]string, error) {
	var requirements struct {
		Server    []string `yaml:"server"`
		NotScored []struct {
			Scenario string `yaml:"scenario"`
			Leg      string `yaml:"leg"`
		} `yaml:"not_scored"`
	}
	if err := yaml.Unmarshal(b, &requirements); err != nil {
		return nil, err
	}
	if len(requirements.Server) == 0 {
		return nil, errors.New("it requires no scenario of a server")
	}
	names := requirements.Server
	for _, n := range requirements.NotScored {
		if n.Leg == "server" {
			names = append(names, n.Scenario)
		}
	}
	return names, nil
}

// run runs the scenarios against url and leaves the checks in results. Checks that fail
// are no error here.
func (s *suite) run(ctx context.Context, url, results string) error {
	ctx, cancel := context.WithTimeout(ctx, suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, s.script(), "server", "--url", url, "--requirements", revision, "-o", results)
	interruptible(cmd)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before its end: %w", ctx.Err())
	}
	// 1 says that a scored check failed. It may also mean that the suite itself broke; then
	// scenarios are missing from the results, or all of them.
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		if _, missing := os.Stat(results); missing == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(log.String()))
	}
	return nil
}

// interruptible lets a command end in order when its context does, within bounds.
func interruptible(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
}

// tail is the last lines of a log.
func tail(log string) string {
	const most = 40
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
