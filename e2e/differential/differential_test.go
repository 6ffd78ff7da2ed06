package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/wire"
)

// expected finds what another implementation answers to a row where it differs.
func expected(of, row string) *difference {
	for i := range differences {
		if d := &differences[i]; d.of == of && slices.Contains(d.rows, row) {
			return d
		}
	}
	return nil
}

// TestDifferential sends every row to all three.
func TestDifferential(t *testing.T) {
	schema, err := wire.LoadSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	urls := implementations(t)
	judged := 0
	for _, r := range append(good(t), bad(t)...) {
		t.Run(r.name, func(t *testing.T) {
			id := cmp.Or(r.id, "7")
			ours := send(t, urls[isThaw], r.query)
			if got := ours.outcome(id); got != r.want {
				t.Errorf("%s: thaw answers %q, want %q: %s", r.spec, got, r.want, ours.text)
			}
			for _, m := range ours.messages {
				judged++
				if err := schema.Validate(r.query.method, m); err != nil {
					t.Errorf("thaw's message breaks the protocol's schema: %v: %s", err, m)
				}
			}
			for _, name := range []string{isGoSDK, isMCPGo} {
				theirs := send(t, urls[name], r.query)
				compare(t, r, name, ours, theirs, theirs.outcome(id))
			}
		})
	}
	if judged == 0 {
		t.Error("no message of thaw was judged by the schema")
	}
}

func compare(t *testing.T, r row, name string, ours, theirs answer, got string) {
	t.Helper()
	d := expected(name, r.name)
	switch {
	case d == nil && got != r.want:
		t.Errorf("%s: %s answers %q, thaw %q, and no difference is written down: %s", r.spec, name, got, r.want, theirs.text)
	case d != nil && d.outcome == r.want:
		t.Errorf("the difference to %s is none: %q", name, d.outcome)
	case d != nil && got != d.outcome && !(d.sometimes && got == r.want):
		t.Errorf("%s answers %q, the difference written down is %q (%s)", name, got, d.outcome, d.why)
	case d == nil:
		if a, b := substance(ours), substance(theirs); a != b {
			t.Errorf("%s says something else\n got: %s\nthaw: %s", name, b, a)
		}
	}
}

// TestDifferencesHaveRows: a difference whose row is gone or whose rows name it twice
// would never be looked at.
func TestDifferencesHaveRows(t *testing.T) {
	names := map[string]bool{}
	for _, r := range append(good(t), bad(t)...) {
		if names[r.name] {
			t.Errorf("two rows are called %q", r.name)
		}
		names[r.name] = true
		if r.spec == "" {
			t.Errorf("row %q names no duty", r.name)
		}
	}
	seen := map[string]bool{}
	for _, d := range differences {
		if d.why == "" {
			t.Errorf("a difference to %s has no reason: %q", d.of, d.rows)
		}
		for _, row := range d.rows {
			key := d.of + ": " + row
			if !names[row] {
				t.Errorf("%s is no row", key)
			}
			if seen[key] {
				t.Errorf("%s is written down twice", key)
			}
			seen[key] = true
		}
	}
}

type listedTool struct {
	Name                      string
	InputSchema, OutputSchema any
}

// substance is what a final result says, in a form that does not depend on the order of
// members and lists: content, structured content, messages, contents, completions, and
// of each item listed its name and schemas. Texts of errors are each library's own.
func substance(a answer) string {
	if len(a.messages) == 0 {
		return ""
	}
	var m struct {
		Result struct {
			IsError           bool
			Content           any
			StructuredContent any
			Messages          any
			Contents          any
			Completion        struct{ Values []string }
			Tools             []listedTool
			Prompts           []struct{ Name string }
			Resources         []struct{ URI, Name, MIMEType string }
			ResourceTemplates []struct{ URITemplate, Name, MIMEType string }
		}
	}
	if err := json.Unmarshal(a.messages[len(a.messages)-1], &m); err != nil {
		return err.Error()
	}
	r := &m.Result
	if r.IsError {
		r.Content = "an error's own text"
	}
	slices.SortFunc(r.Tools, func(a, b listedTool) int { return cmp.Compare(a.Name, b.Name) })
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}
