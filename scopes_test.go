package thaw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
)

// What can be no scope would break the challenge that names it.
func TestScopesAreCheckedAtRegistration(t *testing.T) {
	read := func(context.Context) ([]mcp.ResourceContents, error) { return nil, nil }
	type in struct {
		ID string `json:"id"`
	}
	register := map[string]func(scopes []string){
		`tool "x"`: func(scopes []string) {
			thaw.NewTool("x", "", func(context.Context, struct{}) (string, error) { return "", nil }, &thaw.ToolOptions{Scopes: scopes})
		},
		`prompt "x"`: func(scopes []string) {
			thaw.NewPrompt("x", "", func(context.Context, struct{}) ([]mcp.PromptMessage, error) { return nil, nil }, &thaw.PromptOptions{Scopes: scopes})
		},
		`resource "a:b"`: func(scopes []string) { thaw.NewResource("a:b", "x", read, &thaw.ResourceOptions{Scopes: scopes}) },
		`resource template "a:{id}"`: func(scopes []string) {
			thaw.NewResourceTemplate("a:{id}", "x", func(ctx context.Context, _ in) ([]mcp.ResourceContents, error) { return read(ctx) }, &thaw.ResourceOptions{Scopes: scopes})
		},
	}
	for what, fn := range register {
		for scope, good := range map[string]bool{
			"files:read": true, "https://api.example.com/.default": true, "a,b": true, "!": true,
			"": false, "two words": false, `quo"te`: false, `back\slash`: false, "line\n": false, "é": false, "\x7f": false,
		} {
			t.Run(fmt.Sprintf("%s %q", what, scope), func(t *testing.T) {
				defer func() {
					p := recover()
					if text := fmt.Sprint(p); (p == nil) != good || p != nil && (!strings.Contains(text, what) || !strings.Contains(text, "Scopes: ")) {
						t.Errorf("panic %v", p)
					}
				}()
				fn([]string{"fine", scope})
			})
		}
	}
}

func TestRequireScopesOutsideACall(t *testing.T) {
	if err := thaw.RequireScopes(t.Context(), "a"); !errors.Is(err, thaw.ErrNoCall) {
		t.Error(err)
	}
	if err := thaw.RequireScopes(t.Context(), "a", ""); err == nil || errors.Is(err, thaw.ErrNoCall) {
		t.Error(err)
	}
}
