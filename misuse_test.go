package thaw_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

// Misuse ends the call even if the handler swallows the error, and is told to the author
// with the key and both places.
func TestMisuse(t *testing.T) {
	do := func(ctx context.Context, key string) {
		_ = thaw.Do(ctx, key, func(context.Context) error { return nil })
	}
	for name, tt := range map[string]struct {
		handler func(ctx context.Context)
		want    []string
	}{
		"a key twice": {func(ctx context.Context) {
			do(ctx, "k")
			do(ctx, "k")
		}, []string{`key "k": used twice in one run, at `, "misuse_test.go:", " and at "}},
		"a key by two operations": {func(ctx context.Context) {
			do(ctx, "k")
			_, _ = thaw.Confirm(ctx, "k", "?")
		}, []string{`key "k": used twice`}},
		"an empty key":  {func(ctx context.Context) { do(ctx, "") }, []string{"the key is empty"}},
		"Now and NewID": {func(ctx context.Context) { thaw.Now(ctx, "k"); thaw.NewID(ctx, "k") }, []string{`key "k": used twice`}},
		"a question inside a step": {func(ctx context.Context) {
			_ = thaw.Do(ctx, "s", func(ctx context.Context) error { _, err := thaw.Confirm(ctx, "k", "?"); return err })
		}, []string{`key "k": used inside the function of step "s"`}},
		"a step inside a step": {func(ctx context.Context) {
			_ = thaw.Do(ctx, "s", func(ctx context.Context) error { do(ctx, "k"); return nil })
		}, []string{`key "k": used inside the function of step "s"`}},
		"Now inside a step": {func(ctx context.Context) {
			_ = thaw.Do(ctx, "s", func(ctx context.Context) error { thaw.Now(ctx, "k"); return nil })
		}, []string{`key "k": used inside the function of step "s"`}},
		"a value that JSON cannot hold": {func(ctx context.Context) {
			_, _ = thaw.Step(ctx, "s", func(context.Context) (chan int, error) { return make(chan int), nil })
		}, []string{`key "s": the step gave a chan int`}},
		"no choices": {func(ctx context.Context) { _, _ = thaw.Choose(ctx, "k", "?", nil) }, []string{"there are no choices"}},
		"the same choice": {func(ctx context.Context) {
			_, _ = thaw.Choose(ctx, "k", "?", []thaw.Choice{{Value: "a"}, {Value: "a"}})
		}, []string{`two choices have the value "a"`}},
		"a form that is no struct": {func(ctx context.Context) { _, _ = thaw.Elicit(ctx, "k", "?", 1) }, []string{"a form is a struct, not int"}},
		"a nested form": {func(ctx context.Context) {
			_, _ = thaw.Elicit(ctx, "k", "?", struct{ Inner struct{ A int } }{})
		}, []string{`field "Inner": type must be`}},
		"a form with a pattern": {func(ctx context.Context) {
			_, _ = thaw.Elicit(ctx, "k", "?", struct {
				A string `pattern:"x"`
			}{})
		}, []string{`"pattern" is not for a form's string`}},
		"a schema that is none": {func(ctx context.Context) { _, _ = thaw.ElicitRaw(ctx, "k", "?", json.RawMessage(`{`)) }, []string{"the form's schema"}},
		"a nested schema": {func(ctx context.Context) {
			_, _ = thaw.ElicitRaw(ctx, "k", "?", json.RawMessage(`{"type":"object","properties":{"a":{"type":"object"}}}`))
		}, []string{`field "a": type must be`}},
		"a schema that does not compile": {func(ctx context.Context) {
			_, _ = thaw.ElicitRaw(ctx, "k", "?", json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","minLength":"x"}}}`))
		}, []string{"the form's schema"}},
		"a relative URL":        {func(ctx context.Context) { _ = thaw.ElicitURL(ctx, "k", "?", "/login") }, []string{"no absolute http or https URL"}},
		"a script URL":          {func(ctx context.Context) { _ = thaw.ElicitURL(ctx, "k", "?", "javascript:alert(1)") }, []string{"no absolute http or https URL"}},
		"sampling without size": {func(ctx context.Context) { _, _ = sampleRaw(ctx, `{"messages":[]}`) }, []string{"no maxTokens"}},
		"sampling of nothing":   {func(ctx context.Context) { _, _ = sampleRaw(ctx, `{"maxTokens":1}`) }, []string{"no object with messages"}},
	} {
		t.Run(name, func(t *testing.T) {
			var failures string
			var c *thawtest.Call
			failures = failuresOf(t, func(tb testing.TB) {
				c = thawtest.Start(tb, asking(func(ctx context.Context) (string, error) { tt.handler(ctx); return "fine", nil }), nil, nil)
			})
			var e *mcp.Error
			if !errors.As(c.Err(), &e) || e.Code != mcp.CodeInternalError {
				t.Errorf("%v %q", c.Err(), c.Text())
			}
			for _, want := range tt.want {
				if !strings.Contains(failures, want) {
					t.Errorf("the author was told %q, want %q", failures, want)
				}
			}
			if !strings.Contains(failures, "misuse_test.go:") {
				t.Errorf("the author was not told where: %q", failures)
			}
		})
	}
}

func sampleRaw(ctx context.Context, params string) (json.RawMessage, error) {
	return thaw.Sample(ctx, "k", json.RawMessage(params))
}

func TestSuspendedWithoutQuestion(t *testing.T) {
	failures := failuresOf(t, func(tb testing.TB) {
		thawtest.Start(tb, asking(func(context.Context) (string, error) { return "", thaw.ErrSuspended }), nil, nil)
	})
	if !strings.Contains(failures, "asked nothing") {
		t.Errorf("%q", failures)
	}
}
