package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// expected are checks that are not held to pass, each with the reason.
type expected map[string]string

func readExpected(file string) (expected, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	e, err := parseExpected(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return e, nil
}

// parseExpected reads a map of reasons to lists of scenario:check-id.
func parseExpected(b []byte) (expected, error) {
	var byReason map[string][]string
	if err := yaml.Unmarshal(b, &byReason); err != nil {
		return nil, err
	}
	e := expected{}
	var errs []error
	for reason, keys := range byReason {
		if strings.TrimSpace(reason) == "" {
			errs = append(errs, errors.New("a list has no reason"))
		}
		for _, key := range keys {
			if scenario, id, ok := strings.Cut(key, ":"); !ok || scenario == "" || id == "" {
				errs = append(errs, fmt.Errorf("entry %q is not of the form scenario:check-id", key))
				continue
			}
			if _, twice := e[key]; twice {
				errs = append(errs, fmt.Errorf("entry %q is there twice", key))
			}
			e[key] = reason
		}
	}
	return e, errors.Join(errs...)
}
