package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestRun: everything can be measured, and each budget gets its line. How good the
// ratios are says nothing in so short a time.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	p := plan{callTime: time.Millisecond, loadTime: 100 * time.Millisecond, callRounds: 1, loadRounds: 1, starts: 1, warmCalls: 1}
	if err := run(t.Context(), p, &out); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^ratio ([a-z0-9_]+) [0-9]+\.[0-9]{2} budget (none|[<>]=[0-9.]+)$`)
	budgets := map[string]string{}
	for text := range strings.Lines(out.String()) {
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "# ") {
			continue
		}
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("line %q", text)
			continue
		}
		budgets[m[1]] = m[2]
	}
	for name, budget := range map[string]string{
		"call_time_vs_floor":                   "<=2",
		"lambda_start_50_tools_go_sdk_vs_thaw": "none",
		"lambda_warm_50_tools_go_sdk_vs_thaw":  "none",
		"call_allocations_vs_floor":            "<=2",
		"call_time_go_sdk_vs_thaw":             ">=20",
		"call_time_mcp_go_vs_thaw":             ">=5",
		"size_vs_floor":                        "<=1.3",
		"start_50_tools_vs_floor":              "<=1.5",
		"lambda_start_50_tools_vs_hello":       "<=1.3",
		"requests_per_second_vs_floor":         ">=0.8",
	} {
		if budgets[name] != budget {
			t.Errorf("budget %s is %q, want %q", name, budgets[name], budget)
		}
	}
}
