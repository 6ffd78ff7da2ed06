package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// verdict is what the checks of a run come to.
type verdict struct {
	passed   int
	expected int      // checks that failed and were listed
	skipped  int      // checks that the suite always skips
	failures []string // one text each, what and why
}

func (v *verdict) failed() int { return len(v.failures) }

func (v *verdict) fail(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

// judge holds every check against the lists: one that does not pass has to be listed, one
// that is listed has to be there and not pass, and every scenario has to have checks.
// A warning is no pass, nor is a check that was skipped, but for those that the suite always skips.
func judge(checks []check, scenarios []string, listed, skips expected) *verdict {
	v := &verdict{}
	if len(checks) == 0 {
		v.fail("the suite reported no check at all")
	}
	seen := map[string]bool{}   // scenarios
	broken := map[string]bool{} // keys of checks, whether one of that key did not pass
	skipped := map[string]bool{}
	for i := range checks {
		c := &checks[i]
		seen[c.Scenario] = true
		if _, ok := broken[c.key()]; !ok {
			broken[c.key()] = false
		}
		switch c.Status {
		case statusSuccess:
			v.passed++
			continue
		case statusInfo:
			continue
		case statusSkipped:
			if _, ok := skips[c.key()]; ok {
				skipped[c.key()] = true
				v.skipped++
				continue
			}
		}
		broken[c.key()] = true
		if _, ok := listed[c.key()]; ok {
			v.expected++
			continue
		}
		v.fail("%s %s: %s\n  %s", c.Status, c.key(), c.Description, c.ErrorMessage)
	}
	for _, name := range scenarios {
		if !seen[name] {
			v.fail("MISSING %s: the suite reported no check of this scenario", name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		switch failed, there := broken[key]; {
		case !there:
			v.fail("STALE %s: listed (%s), but there is no such check", key, listed[key])
		case !failed:
			v.fail("STALE %s: listed (%s), but it passed: take it off the list", key, listed[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(skips)) {
		if !skipped[key] {
			v.fail("STALE %s: listed as skipped (%s), and was not", key, skips[key])
		}
	}
	return v
}

// print writes the failures, and last the line that programs read.
func (v *verdict) print(w io.Writer) {
	for _, f := range v.failures {
		fmt.Fprintln(w, f)
	}
	fmt.Fprintf(w, "expected: %d\nskipped by the suite: %d\n", v.expected, v.skipped)
	fmt.Fprintf(w, "conformance: %d passed, %d failed\n", v.passed, v.failed())
}
