package cases

import (
	"strings"
	"testing"
)

// minimal is the smallest file that loads; EXTRA lines can be put in at the marks.
const minimal = `about: x
common:
  placeholders:
    $META: x
  meta: {v: "1"}
  default_request: {method: POST, path: /mcp, headers: {A: b}}
  tools: {others: x}
  shells: {}
cases:
- id: B-01
  category: json-rpc
  input:
    requests:
    - name: first
      body: {a: 1}
  right: x
  expect: [x]
`

func TestLoadRefuses(t *testing.T) {
	if _, err := load(strings.NewReader(minimal)); err != nil {
		t.Fatalf("the minimal file: %v", err)
	}
	for _, test := range []struct{ name, old, new, says string }{
		{"unknown member of the file", "about: x", "about: x\nmore: x", "more"},
		{"unknown member of common", "  tools:", "  more: x\n  tools:", "more"},
		{"unknown placeholder", "    $META: x", "    $META: x\n    $MORE: x", "$MORE"},
		{"unknown member of the default request", "method: POST,", "method: POST, more: x,", "more"},
		{"unknown member of a tool", "{others: x}", "{echo: {input: {}, does: x, more: x}}", "more"},
		{"unknown member of a case", "  right: x", "  right: x\n  more: x", "more"},
		{"unknown member of an input", "    requests:", "    more: x\n    requests:", "more"},
		{"unknown member of a request", "      body:", "      more: x\n      body:", "more"},
		{"unknown member of a thing to stage", "    requests:", "    handlers: [{name: x, more: x}]\n    requests:", "more"},
		{"unknown member of a token", "    requests:", "    tokens: [{aud: x, more: x}]\n    requests:", "more"},
		{"a member twice", "  right: x", "  right: x\n  right: y", "right"},
		{"a case twice", "cases:", "cases:\n- {id: B-01, category: x, input: {sequence: [x]}, right: x, expect: [x]}", "twice"},
		{"no right", "  right: x\n", "", "lacks"},
		{"nothing to expect", "[x]", "[]", "lacks"},
		{"nothing to try", "    requests:\n    - name: first\n      body: {a: 1}", "    setup: x", "tries nothing"},
		{"a request that sends nothing", "      body: {a: 1}", "      note: x", "sends nothing"},
		{"a request without a name", "    - name: first\n      body", "    - body", "no name"},
		{"two requests of one name", "      body: {a: 1}", "      body: {a: 1}\n    - name: first\n      body: {a: 2}", "first"},
		{"a second document", "about: x", "about: x\n---\nabout: y", "document"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(minimal, test.old, test.new, 1)
			if text == minimal {
				t.Fatal("the minimal file has no such text")
			}
			if _, err := load(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one that says %q", err, test.says)
			}
		})
	}
}

// TestAgainst shows that nothing of a case can be forgotten.
func TestAgainst(t *testing.T) {
	d, err := load(strings.NewReader(strings.Replace(minimal, "right: x\n  expect: [x]", "right: never folded\n  expect: [one, two]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	fine := []rule{{says: "one", on: []string{"first"}}, {says: "two"}}
	for _, test := range []struct {
		name string
		v    verdict
		says string
	}{
		{"complete", verdict{rules: fine}, ""},
		{"words of what is right", verdict{rules: append(fine, rule{says: "never folded"})}, ""},
		{"a line that nothing asserts", verdict{rules: fine[:1]}, `asserts "two"`},
		{"a request that nothing judges", verdict{scenes: []scene{{says: []string{"one", "two"}}}}, `come of "first"`},
		{"words that the case has not", verdict{rules: append(fine, rule{says: "three"})}, `words "three"`},
		{"a request that the case has not", verdict{rules: append(fine, rule{says: "one", on: []string{"second"}})}, `request "second"`},
		{"a scene of nothing", verdict{rules: fine, scenes: []scene{{says: []string{"one"}, items: []string{"third"}}}}, `tries no "third"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			problems := strings.Join(test.v.against(d.Cases[0]), "\n")
			if (problems == "") != (test.says == "") || !strings.Contains(problems, test.says) {
				t.Errorf("problems %q, want %q", problems, test.says)
			}
		})
	}
}
