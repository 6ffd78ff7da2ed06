package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

const outOfWorkText = "checking this takes more work than is allowed; make it smaller or less deeply nested"

// F-26: what would take for ever is refused.
func TestWorkIsBounded(t *testing.T) {
	expression := `{"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[
		{"properties":{"op":{"const":"and"},"args":{"items":{"$ref":"#/$defs/e"}}},"required":["op","args"]},
		{"properties":{"op":{"const":"or"},"args":{"items":{"$ref":"#/$defs/e"}}},"required":["op","args"]},
		{"type":"string"}]}}}`
	backwards := func(depth int, leaf string) string { // args come before what tells them apart
		return strings.Repeat(`{"args":[`, depth) + leaf + strings.Repeat(`],"op":"and"}`, depth)
	}
	twins := `{"anyOf":[{"properties":{"a":{"$ref":"#/x/e"}},"required":["b"]},{"properties":{"a":{"$ref":"#/x/e"}},"required":["b"]}]}`
	for _, c := range []struct {
		name, schema, doc string
	}{
		{"alternatives in alternatives", expression, backwards(50, "{}")},
		{"the same under not", `{"not":{"$ref":"#/x/e"},"x":{"e":` + twins + `}}`, nestedText(100, `{"a":`, "{}", "}")},
		{"at a place that is none of the dialect's", `{"$ref":"#/x/e","x":{"e":` + twins + `}}`, nestedText(100, `{"a":`, "{}", "}")},
		{"oneOf", strings.ReplaceAll(`{"$ref":"#/x/e","x":{"e":`+twins+`}}`, "anyOf", "oneOf"), nestedText(100, `{"a":`, "{}", "}")},
		{"dynamic references in circles", `{"$dynamicAnchor":"a","anyOf":[{"$ref":"#/$defs/b"}],"$defs":{"b":{"$id":"b","$dynamicRef":"#a","$defs":{"c":{"$dynamicAnchor":"a"}}}}}`, `1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := mustCompile(t, c.schema).Validate(check(t, c.doc))
			if !slices.Equal(texts(got), []string{outOfWorkText}) {
				t.Errorf("got %q", texts(got))
			}
		})
	}
	shallow := mustCompile(t, expression)
	if _, got := shallow.Validate(check(t, backwards(3, `"x"`))); got != nil {
		t.Errorf("shallow and right: %q", texts(got))
	}
	if _, got := shallow.Validate(check(t, backwards(60, `"x"`))); got != nil {
		t.Errorf("deep and right: %q", texts(got))
	}
	if _, got := shallow.Validate(check(t, backwards(3, `{}`))); len(got) != 1 || outOfWork(got) {
		t.Errorf("shallow and wrong: %q", texts(got))
	}
}

// Large documents and numbers are no reason to refuse what the schema allows.
func TestLargeDocuments(t *testing.T) {
	many := func(n int, one func(i int) string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(one(i))
		}
		return b.String()
	}
	number := func(i int) string { return fmt.Sprint(i) }
	const n = 100_000
	for _, c := range []struct {
		name, schema, doc string
		want              []string
	}{
		{"unique items", `{"uniqueItems":true}`, "[" + many(n, number) + "]", nil},
		{"items that are not", `{"uniqueItems":true}`, "[" + many(n, number) + ",7.0]", []string{"must not have equal items, but items 7 and 100000 are"}},
		{"unique objects", `{"uniqueItems":true}`, "[" + many(n, func(i int) string { return fmt.Sprintf(`{"b":"x","a":[%d]}`, i) }) + `,{"a":[0e0],"b":"\u0078"}]`, []string{"must not have equal items, but items 0 and 100000 are"}},
		{"one of many objects", `{"items":{"oneOf":[{"properties":{"k":{"const":"a"}}},{"properties":{"k":{"const":"b"}}},{"properties":{"k":{"const":"c"}}}]}}`, "[" + many(n, func(int) string { return `{"k":"c"}` }) + "]", nil},
		{"many properties, one unknown", `{"propertyNames":{"maxLength":7},"patternProperties":{"^p":{"type":"integer"}},"additionalProperties":false}`, "{" + many(n, func(i int) string { return fmt.Sprintf(`"p%d":1`, i) }) + `,"q":1}`, []string{`unknown property "q"; allowed are those that match ^p`}},
		{"a long string", `{"pattern":"^(a|aa)+$","maxLength":1000000}`, `"` + strings.Repeat("a", 1_000_000) + `"`, nil},
		{"a pattern that backtracks elsewhere", `{"pattern":"^(a|aa)+$"}`, `"` + strings.Repeat("a", 1_000_000) + `b"`, []string{"must match the pattern ^(a|aa)+$"}},
		{"an endless number", `{"minimum":1,"type":"integer","multipleOf":7}`, "7e1000000000", nil},
		{"an endless number, wrong", `{"maximum":1e999999999,"multipleOf":3}`, "1e1000000000", []string{"must be at most 1e999999999", "must be a multiple of 3"}},
		{"an endless fraction", `{"exclusiveMinimum":0,"type":["integer","null"]}`, "1e-1000000000", []string{"must be null or an integer, without a fraction"}},
		{"many digits", `{"multipleOf":9,"type":"integer"}`, strings.Repeat("9", 200_000), nil},
		{"many digits, wrong", `{"multipleOf":9,"type":"integer"}`, strings.Repeat("9", 200_000) + "1", []string{"must be a multiple of 9"}},
		{"a limit beyond any count", `{"maxLength":1e400,"minItems":0e99}`, `"a"`, nil},
		{"as many values as are allowed", `{"items":{"type":"integer"}}`, "[" + strings.Repeat("0,", maxValues-2) + "0]", nil},
		{"one value more", `true`, "[" + strings.Repeat("0,", maxValues-1) + "0]", []string{"must hold at most 500000 values in all"}},
		{"far more, nested", `true`, "[[" + strings.Repeat("{},", maxValues) + `{"a":[0]}],"x"]`, []string{"must hold at most 500000 values in all"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, got := mustCompile(t, c.schema).Validate(check(t, c.doc))
			if !slices.Equal(texts(got), c.want) && !(got == nil && c.want == nil) {
				t.Errorf("got %.300q, want %q", texts(got), c.want)
			}
			if c.want == nil && string(out) != c.doc {
				t.Error("the document was changed")
			}
		})
	}
}

// Neither a long document nor a secret in it comes back in a message.
func TestViolationsAreShort(t *testing.T) {
	secret := strings.Repeat("s3cret-", 1000)
	for _, schema := range []string{
		`{"additionalProperties":{"type":"string"}}`,
		`{"additionalProperties":false,"properties":{"a":true}}`,
		`{"propertyNames":{"maxLength":3}}`,
		`{"enum":["a","b"]}`,
		`{"additionalProperties":{"anyOf":[{"enum":["` + strings.Repeat("x", 5000) + `"]},{"pattern":"` + strings.Repeat("y", 5000) + `"},{"type":"null"}]}}`,
	} {
		for _, doc := range []string{fmt.Sprintf(`{%q:1}`, secret), fmt.Sprintf(`{"password":{"a":%q}}`, secret), fmt.Sprintf(`{"password":%q}`, secret)} {
			_, violations := mustCompile(t, schema).Validate(check(t, doc))
			for _, v := range violations {
				if len(v.String()) > 600 || strings.Contains(v.String(), strings.Repeat("s3cret-", 10)) || strings.Contains(v.Message, "s3cret") && strings.Contains(doc, "password") {
					t.Errorf("%.80s, %.40s: %.200q", schema, doc, v)
				}
			}
		}
	}
	for _, doc := range []string{`"sk-live"`, `{"a":"sk-live"}`, `["sk-live"]`} { // short ones neither
		if _, got := mustCompile(t, `{"enum":["a","b"]}`).Validate(check(t, doc)); !slices.Equal(texts(got), []string{`must be one of "a", "b"`}) {
			t.Errorf("%s: %q", doc, texts(got))
		}
	}
	doc := check(t, "["+strings.Repeat("0,", 1000)+"1]")
	if _, err := Compile(check(t, `{"const":[`+strings.Repeat("0,", maxValues)+`0]}`)); err == nil || !strings.Contains(err.Error(), "more than 500000 values") {
		t.Errorf("a schema without end: %v", err)
	}
	if _, got := mustCompile(t, `{"items":{"minimum":1}}`).Validate(doc); len(got) != maxViolations+1 || got[maxViolations].Message != "and more" {
		t.Errorf("%d violations", len(got))
	}
}

func TestCompiledConcurrentUse(t *testing.T) {
	v := mustCompile(t, `{"type":"object","properties":{"a":{"anyOf":[{"pattern":"^x"},{"$dynamicRef":"#n"}]}},"unevaluatedProperties":false,"$defs":{"n":{"$dynamicAnchor":"n","type":"integer"}}}`)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for range 200 {
				if _, got := v.Validate([]byte(`{"a":1}`)); got != nil {
					t.Errorf("%d: %q", i, texts(got))
				}
				if _, got := v.Validate([]byte(`{"a":"y","b":1}`)); len(got) != 2 {
					t.Errorf("%d: %q", i, texts(got))
				}
			}
		})
	}
	wait.Wait()
}
