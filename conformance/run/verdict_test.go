package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write puts one scenario's checks.json where the suite would.
func write(t *testing.T, results, folder, checks string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(results, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(results, folder, "checks.json"), []byte(checks), 0o644); err != nil {
		t.Fatal(err)
	}
}

const (
	listFolder = "server-tools-list-2026-11-30T13-50-52-605Z"
	askFolder  = "server-input-required-result-basic-elicitation-2026-11-30T13-50-52-1Z"
)

func TestReadChecks(t *testing.T) {
	results := t.TempDir()
	write(t, results, listFolder, `[
		{"id":"tools-list","name":"ToolsList","description":"lists tools","status":"SUCCESS","details":{"n":1}},
		{"id":"tools-name-format","description":"names","status":"WARNING","errorMessage":"a b is no name"}]`)
	write(t, results, askFolder, `[{"id":"ask","description":"asks","status":"FAILURE","errorMessage":"no question"}]`)
	if err := os.Mkdir(filepath.Join(results, "server-caching-2026-11-30T13-50-52-605Z"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(results, "suite.log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := readChecks(results)
	if err != nil {
		t.Fatal(err)
	}
	want := []check{
		{"input-required-result-basic-elicitation", "ask", "asks", statusFailure, "no question"},
		{"tools-list", "tools-list", "lists tools", statusSuccess, ""},
		{"tools-list", "tools-name-format", "names", statusWarning, "a b is no name"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("checks\n%+v, want\n%+v", got, want)
	}
}

func TestReadChecksRefuses(t *testing.T) {
	tests := []struct{ name, folder, checks, want string }{
		{"a folder of another name", "tools-list", `[]`, `"tools-list"`},
		{"a client's folder", "client-tools_call-2026-11-30T13-50-52-605Z", `[]`, `client-tools_call`},
		{"half a file", listFolder, `[{"id":"a"`, "unexpected end"},
		{"an object", listFolder, `{"id":"a"}`, "cannot unmarshal"},
		{"an unknown status", listFolder, `[{"id":"a","status":"PASS"}]`, `unknown status "PASS"`},
		{"no status", listFolder, `[{"id":"a"}]`, `unknown status ""`},
		{"no id", listFolder, `[{"status":"SUCCESS"}]`, "no id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			results := t.TempDir()
			write(t, results, tt.folder, tt.checks)
			if _, err := readChecks(results); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if _, err := readChecks(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that does not exist was read")
	}
}

func TestParseExpected(t *testing.T) {
	got, err := parseExpected([]byte("# comment\nneeds tasks:\n  - a:x\n  - a:y:z\nneeds more:\n  - b:x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got["a:x"] != "needs tasks" || got["a:y:z"] != "needs tasks" || got["b:x"] != "needs more" {
		t.Errorf("list %v", got)
	}
	if got, err := parseExpected([]byte("# nothing fails\n")); err != nil || len(got) != 0 {
		t.Errorf("an empty list: %v, %v", got, err)
	}
	for name, text := range map[string]string{
		"no colon":         "r:\n  - abc\n",
		"no check":         "r:\n  - 'abc:'\n",
		"no scenario":      "r:\n  - ':abc'\n",
		"twice":            "r:\n  - a:b\n  - a:b\n",
		"twice by reasons": "r:\n  - a:b\ns:\n  - a:b\n",
		"reason twice":     "r:\n  - a:b\nr:\n  - a:c\n",
		"no reason":        "'':\n  - a:b\n",
		"a list":           "- a:b\n",
	} {
		if got, err := parseExpected([]byte(text)); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}

// The lists in the repository can be read, and no entry is without its reason.
func TestListsInTheRepository(t *testing.T) {
	for _, file := range []string{"expected-failures.yaml", "skipped-by-suite.yaml"} {
		if _, err := readExpected("../" + file); err != nil {
			t.Error(err)
		}
	}
}

func TestParseScenarios(t *testing.T) {
	got, err := parseScenarios([]byte("server:\n  - a\nclient:\n  - b\nnot_scored:\n  - scenario: c\n    leg: server\n    note: n\n  - scenario: d\n    leg: client\n"))
	if want := []string{"a", "c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("scenarios %q (%v), want %q", got, err, want)
	}
	if got, err := parseScenarios([]byte("client:\n  - b\n")); err == nil {
		t.Errorf("without server scenarios: %q, want an error", got)
	}
}

func TestJudge(t *testing.T) {
	pass := check{Scenario: "a", ID: "x", Status: statusSuccess}
	with := func(status string) check {
		return check{Scenario: "a", ID: "y", Description: "does y", Status: status, ErrorMessage: "did z"}
	}
	listed := expected{"a:y": "needs tasks"}
	tests := []struct {
		name             string
		checks           []check
		scenarios        []string
		listed, skips    expected
		passed, expected int
		failures         []string // a part of each
	}{
		{name: "all pass", checks: []check{pass, pass}, scenarios: []string{"a"}, passed: 2},
		{name: "failure", checks: []check{pass, with(statusFailure)}, passed: 1, failures: []string{"FAILURE a:y: does y\n  did z"}},
		{name: "warning", checks: []check{pass, with(statusWarning)}, passed: 1, failures: []string{"WARNING a:y"}},
		{name: "skipped", checks: []check{pass, with(statusSkipped)}, passed: 1, failures: []string{"SKIPPED a:y"}},
		{name: "information is neither", checks: []check{pass, with(statusInfo)}, passed: 1},
		{name: "listed failure", checks: []check{pass, with(statusFailure)}, listed: listed, passed: 1, expected: 1},
		{name: "listed warning", checks: []check{with(statusWarning)}, listed: listed, expected: 1},
		{name: "listed for another scenario", checks: []check{with(statusFailure)}, listed: expected{"b:y": "r"},
			failures: []string{"FAILURE a:y", "STALE b:y: listed (r), but there is no such check"}},
		{name: "listed and passed", checks: []check{with(statusSuccess)}, listed: listed, passed: 1,
			failures: []string{"STALE a:y: listed (needs tasks), but it passed"}},
		{name: "listed and only information", checks: []check{with(statusInfo)}, listed: listed, failures: []string{"STALE a:y"}},
		{name: "an id twice, listed, one fails", checks: []check{with(statusFailure), with(statusSuccess)}, listed: listed, passed: 1, expected: 1},
		{name: "an id twice, listed, both pass", checks: []check{with(statusSuccess), with(statusSuccess)}, listed: listed, passed: 2, failures: []string{"STALE a:y"}},
		{name: "always skipped", checks: []check{pass, with(statusSkipped)}, skips: listed, passed: 1},
		{name: "always skipped, and now fails", checks: []check{with(statusFailure)}, skips: listed, failures: []string{"FAILURE a:y", "STALE a:y: listed as skipped"}},
		{name: "always skipped, and now passes", checks: []check{with(statusSuccess)}, skips: listed, passed: 1, failures: []string{"STALE a:y"}},
		{name: "missing scenario", checks: []check{pass}, scenarios: []string{"a", "b"}, passed: 1, failures: []string{"MISSING b"}},
		{name: "no check at all", failures: []string{"no check at all"}},
		{name: "no check at all, all listed", listed: listed, scenarios: []string{"a"}, failures: []string{"no check at all", "MISSING a", "STALE a:y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := judge(tt.checks, tt.scenarios, tt.listed, tt.skips)
			if v.passed != tt.passed || v.expected != tt.expected {
				t.Errorf("passed %d, expected %d; want %d, %d", v.passed, v.expected, tt.passed, tt.expected)
			}
			if len(v.failures) != len(tt.failures) {
				t.Fatalf("failures %q, want %q", v.failures, tt.failures)
			}
			for i, part := range tt.failures {
				if !strings.Contains(v.failures[i], part) {
					t.Errorf("failure %q, want one with %q", v.failures[i], part)
				}
			}
		})
	}
}

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	(&verdict{passed: 3, expected: 2, skipped: 1, failures: []string{"FAILURE a:y: does y\n  did z"}}).print(&b)
	if want := "FAILURE a:y: does y\n  did z\nexpected: 2\nskipped by the suite: 1\nconformance: 3 passed, 1 failed\n"; b.String() != want {
		t.Errorf("printed\n%s, want\n%s", b.String(), want)
	}
}
