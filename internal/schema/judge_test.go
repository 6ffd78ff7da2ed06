package schema

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// judge is an implementation of JSON Schema that is not ours. It is slow to start and
// large, which a test may be.
type judge struct{ schema *jsonschema.Schema }

const judgedURL = "https://schema.invalid/"

func newJudge(schema []byte) (judge, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return judge{}, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	// Formats are annotations to a hand-written schema, in every dialect.
	for _, f := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: f.name, Validate: func(any) error { return nil }})
	}
	c.UseLoader(noLoader{})
	if err := c.AddResource(judgedURL, doc); err != nil {
		return judge{}, err
	}
	s, err := c.Compile(judgedURL)
	return judge{s}, err
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("nothing is fetched") }

func mustJudge(tb testing.TB, schema []byte) judge {
	tb.Helper()
	j, err := newJudge(schema)
	if err != nil {
		tb.Fatalf("%s: %v", schema, err)
	}
	return j
}

// judges reports whether the judge can be asked: it takes quadratic time and endless
// memory over numbers of many digits, written out.
func judges(doc []byte) bool {
	const mostDigits = 400
	t := newTape(doc)
	for i, v := range t.items {
		if v.kind == '0' {
			if n := parseDecimal(t.raw(i)); n.count > mostDigits || n.point > mostDigits || n.point < -mostDigits {
				return false
			}
		}
	}
	return true
}

func (j judge) accepts(tb testing.TB, doc []byte) (ok bool, why error) {
	tb.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		tb.Fatalf("%s: %v", doc, err)
	}
	err = j.schema.Validate(value)
	return err == nil, err
}

// outOfWork reports whether a document was refused for the work that it takes.
func outOfWork(violations []Violation) bool {
	return len(violations) > 0 && strings.HasPrefix(violations[0].Message, "checking this takes more work")
}

// agree checks that our validator and the judge say the same of doc.
func agree(tb testing.TB, schema []byte, own Validator, j judge, doc []byte) bool {
	tb.Helper()
	if !judges(doc) {
		return false
	}
	out, violations := own.Validate(doc)
	if outOfWork(violations) {
		return false
	}
	switch accepted, why := j.accepts(tb, doc); {
	case accepted && violations != nil:
		tb.Fatalf("only we refuse %s\nby %s: %q", doc, schema, texts(violations))
	case !accepted && violations == nil:
		tb.Fatalf("only the judge refuses %s\nby %s: %v", doc, schema, why)
	}
	if violations == nil && string(out) != string(doc) {
		tb.Fatalf("%s came out as %s", doc, out)
	}
	for _, v := range violations {
		if v.Message == "" || len(v.String()) > 4000 || strictjson.Check(strictjson.AppendString(nil, v.String()), 1) != nil {
			tb.Fatalf("violation %q of %s", v, doc)
		}
	}
	return true
}
