// Package rie hands events to the conformance fixture under AWS's Lambda Runtime
// Interface Emulator: the event files that aws-lambda-go tests itself with, and the
// failure cases that came through Lambda.
package rie

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/emulator"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// function runs the fixture as a function.
func function(t *testing.T, env ...string) *emulator.Function {
	t.Helper()
	env = append([]string{"THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=none"}, env...)
	return emulator.Start(t, fixture.Build(t), env...)
}

// answer is a proxy response, in the forms of all front doors together.
type answer struct {
	StatusCode        int
	StatusDescription string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              *string
	IsBase64Encoded   *bool
}

// message is the JSON-RPC message in a body.
type message struct {
	JSONRPC string
	ID      json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
	}
}

// form is how a front door wants its answers.
type form int

const (
	v1 form = iota // multiValueHeaders
	v2             // headers, cookies
	albSingle
	albMulti
)

// invoke hands over an event and reads the answer, which must have the form.
func invoke(t *testing.T, f *emulator.Function, event []byte, want form) (answer, message) {
	t.Helper()
	b, err := f.Invoke(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	a, m, err := read(b, want)
	if err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return a, m
}

func read(b []byte, want form) (a answer, m message, err error) {
	if err := json.Unmarshal(b, &a); err != nil {
		return a, m, err
	}
	switch {
	case a.StatusCode == 0:
		return a, m, fmt.Errorf("no proxy response")
	case a.Body == nil || a.IsBase64Encoded == nil:
		return a, m, fmt.Errorf("no body or nothing that says how it is encoded")
	case (want == albSingle || want == albMulti) != (a.StatusDescription != ""):
		return a, m, fmt.Errorf("statusDescription belongs to load balancers, and to all of them")
	case want != v2 && a.Cookies != nil:
		return a, m, fmt.Errorf("cookies belong to payload 2.0")
	}
	contentType := a.Headers["Content-Type"]
	if want == v1 || want == albMulti {
		if a.Headers != nil || len(a.MultiValueHeaders["Content-Type"]) != 1 {
			return a, m, fmt.Errorf("want multiValueHeaders alone")
		}
		contentType = a.MultiValueHeaders["Content-Type"][0]
	} else if a.MultiValueHeaders != nil {
		return a, m, fmt.Errorf("want headers alone")
	}
	if contentType != "application/json" {
		return a, m, fmt.Errorf("content type %q", contentType)
	}
	body := []byte(*a.Body)
	if *a.IsBase64Encoded {
		if body, err = base64.StdEncoding.DecodeString(*a.Body); err != nil {
			return a, m, err
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return a, m, err
	}
	if m.JSONRPC != "2.0" || (m.Result == nil) == (m.Error == nil) {
		return a, m, fmt.Errorf("no JSON-RPC response")
	}
	return a, m, nil
}
