package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Statuses that the suite gives. Only success is a pass: what was skipped was not
// checked, and information cannot fail.
const (
	statusSuccess = "SUCCESS"
	statusFailure = "FAILURE"
	statusWarning = "WARNING"
	statusSkipped = "SKIPPED"
	statusInfo    = "INFO"
)

// check is one check of one scenario. A scenario may use an id more than once.
type check struct {
	Scenario     string `json:"-"`
	ID           string `json:"id"`
	Description  string `json:"description"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

// key is what the list of expected failures calls the check.
func (c *check) key() string { return c.Scenario + ":" + c.ID }

// resultFolder is how the suite names a scenario's folder.
var resultFolder = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z$`)

// readChecks reads the results of every scenario. A scenario without results has no
// checks, which judge reports; results that cannot be understood are an error.
func readChecks(results string) ([]check, error) {
	entries, err := os.ReadDir(results)
	if err != nil {
		return nil, err
	}
	var all []check
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		name := resultFolder.FindStringSubmatch(entry.Name())
		if name == nil {
			return nil, fmt.Errorf("folder %q among the results is not named for a scenario", entry.Name())
		}
		checks, err := readScenario(name[1], filepath.Join(results, entry.Name(), "checks.json"))
		if err != nil {
			return nil, err
		}
		all = append(all, checks...)
	}
	return all, nil
}

func readScenario(name, file string) ([]check, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var checks []check
	if err := json.Unmarshal(b, &checks); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range checks {
		c := &checks[i]
		c.Scenario = name
		switch c.Status {
		case statusSuccess, statusFailure, statusWarning, statusSkipped, statusInfo:
		default:
			return nil, fmt.Errorf("%s: check %q has the unknown status %q", file, c.ID, c.Status)
		}
		if c.ID == "" {
			return nil, fmt.Errorf("%s: check %d has no id", file, i)
		}
	}
	return checks, nil
}
