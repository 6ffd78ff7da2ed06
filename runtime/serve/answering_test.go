package serve

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/statecodec"
)

// The command call asks at the terminal what the tool asks its client.
func TestCallAsksAtTheTerminal(t *testing.T) {
	type plan struct {
		Size  string   `json:"size" enum:"small,large" jsonschema:"how big"`
		Count int      `json:"count" maximum:"9"`
		Fast  bool     `json:"fast,omitempty"`
		Tags  []string `json:"tags,omitempty" enum:"a,b"`
		Note  string   `json:"note,omitempty"`
	}
	tools := []*thaw.Tool{
		tool1(func(ctx context.Context) (any, error) {
			ok, err := thaw.Confirm(ctx, "sure", "Really?")
			return map[string]any{"ok": ok}, err
		}, nil),
		thaw.NewTool("form", "", func(ctx context.Context, _ struct{}) (string, error) {
			p, err := thaw.Elicit(ctx, "plan", "How?", plan{Count: 2})
			return fmt.Sprintf("%+v", p), err
		}, nil),
		thaw.NewTool("page", "", func(ctx context.Context, _ struct{}) (string, error) {
			return "agreed", thaw.ElicitURL(ctx, "page", "Please pay", "https://pay.example/1")
		}, nil),
	}
	kit := Kit{Configure: func(o *Options) error { o.StateKeys = []statecodec.Key{&testKey{secret: "k"}}; return nil }}
	for name, tt := range map[string]struct {
		tool, in  string
		code      int
		out, told string
	}{
		"yes":                {"t", "y\n", 0, `{"ok":true}`, "Really?\nAgree? [y/N] "},
		"no":                 {"t", "\n", 0, `{"ok":false}`, ""},
		"end of input":       {"t", "", 0, `{"ok":false}`, ""},
		"a form":             {"form", "large\n5\ny\na, b\nhello there\n", 0, "{Size:large Count:5 Fast:true Tags:[a b] Note:hello there}", "size (string, how big: small, large): "},
		"defaults":           {"form", "small\n\n\n\n\n", 0, "{Size:small Count:2 Fast:false Tags:[] Note:}", "count (integer) [2]: "},
		"typed again":        {"form", "small\nmany\n3\nperhaps\nno\n\n\n", 0, "{Size:small Count:3 Fast:false Tags:[] Note:}", "no integer"},
		"asked again":        {"form", "small\n10\n\n\n\nsmall\n1\n\n\n\n", 0, "{Size:small Count:1 Fast:false Tags:[] Note:}", "The last answer did not fit: /count"},
		"a form, declined":   {"form", "!\n", 1, "", ""},
		"a form, end":        {"form", "small\n", 1, "", ""},
		"a page":             {"page", "yes\n", 0, "agreed", "https://pay.example/1\nOpen this page? [y/N] "},
		"a page, not opened": {"page", "n\n", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			p := program{server: thaw.Server{Name: "s", Tools: tools}, kits: []Kit{kit}, getenv: env(), in: strings.NewReader(tt.in), out: &out, err: &errs}
			code := p.main(t.Context(), []string{"call", tt.tool})
			if code != tt.code || strings.TrimSpace(out.String()) != tt.out || !strings.Contains(errs.String(), tt.told) {
				t.Errorf("exit %d, %q, told %q", code, out.String(), errs.String())
			}
		})
	}
}
