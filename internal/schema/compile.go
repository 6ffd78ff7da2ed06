package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// maxSchemaDepth bounds how deep a hand-written schema nests.
const maxSchemaDepth = 128

// CheckInputRoot reports an error unless raw is a schema with "type": "object" at its
// root, as every tool's inputSchema has to be (F-06).
func CheckInputRoot(raw []byte) error {
	if err := strictjson.Check(raw, maxSchemaDepth); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	raw = strictjson.Trim(raw)
	if strictjson.Kind(raw) == '{' {
		if kind, ok := strictjson.String(strictjson.Member(raw, "type")); ok && kind == "object" {
			return nil
		}
	}
	return errors.New(`schema: a tool's input schema has "type": "object" at its root (F-06)`)
}

// Compile makes a validator of a hand-written schema, in dialect 2020-12 unless its
// $schema names 2019-09 or draft-07; any other is refused (F-22, F-23). The error says
// where the schema is wrong. It takes far longer than Of: call it at first use.
//
// Nothing is fetched: a $ref that leads outside the schema is an error (F-24, F-25).
// Work is bounded (F-26): patterns take linear time; documents of more than 200,000
// values and numbers of more than 400 digits are refused; and a step, one schema looking
// at one value, is allowed as often as the document is large, after which the violation
// says so.
func Compile(raw []byte) (Validator, error) {
	if err := strictjson.Check(raw, maxSchemaDepth); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if err := checkDialect(strictjson.Trim(raw)); err != nil {
		return nil, err
	}
	d := decoder{doc: raw}
	doc, _ := d.value(skipSpace(raw, 0))
	if d.failed {
		return nil, fmt.Errorf("schema at %q: %s", pointerTo(raw, d.badNumber), numberTooLong)
	}
	countSteps(doc, placeSchema)
	w := &written{doc: doc}
	first, err := w.instance()
	if err != nil {
		return nil, err
	}
	w.idle = append(w.idle, first)
	return w, nil
}

// checkDialect looks at the root's $schema; the library refuses unknown ones further
// down, since it would have to fetch them.
func checkDialect(raw []byte) error {
	if strictjson.Kind(raw) != '{' {
		return nil
	}
	named := strictjson.Member(raw, "$schema")
	if named == nil {
		return nil
	}
	name, _ := strictjson.String(named)
	_, dialect, _ := strings.Cut(strings.TrimSuffix(name, "#"), "://") // both http and https are about
	switch dialect {
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema", "json-schema.org/draft-07/schema":
		return nil
	}
	return fmt.Errorf("schema: dialect %s is not supported; supported are https://json-schema.org/draft/2020-12/schema (the default), https://json-schema.org/draft/2019-09/schema and http://json-schema.org/draft-07/schema", quoted(name))
}

// written is the validator of a hand-written schema. A step can be counted only by
// something compiled into the schema, so every validation has an instance to itself.
type written struct {
	doc any

	mu   sync.Mutex
	idle []*instance
}

type instance struct {
	schema *jsonschema.Schema
	steps  int // left
}

// rootURL is where the library thinks the schema lies. No name below .invalid exists.
const rootURL = "https://schema.invalid/"

func (w *written) instance() (*instance, error) {
	in := &instance{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothing{})
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: stepFormat, Validate: func(any) error {
		if in.steps--; in.steps < 0 {
			panic(outOfSteps{})
		}
		return nil
	}})
	err := c.AddResource(rootURL, w.doc)
	if err == nil {
		in.schema, err = c.Compile(rootURL)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %s", strings.ReplaceAll(err.Error(), rootURL, ""))
	}
	return in, nil
}

// nothing is a loader that loads nothing, from nowhere.
type nothing struct{}

func (nothing) Load(string) (any, error) {
	return nil, errors.New("a reference must stay inside the schema; nothing is fetched")
}

// stepFormat stands in for format in every schema: the library asks about it whenever a
// schema looks at a value of the right type. Formats are annotations, so nothing is
// lost.
const stepFormat = "thaw-step"

type outOfSteps struct{}

// A document may cost stepsForAny steps, and stepsForValue more for each value in it,
// but the deeper it is, the more a step costs. Only alternatives that are nested in each
// other come near. maxValues bounds the errors that the library keeps of one document.
const (
	stepsForAny     = 10_000
	stepsForValue   = 8
	stepsTimesDepth = 8_000_000
	maxValues       = 200_000
)

func (d *decoder) stepsAllowed() int {
	return min(stepsForAny+stepsForValue*d.values, stepsTimesDepth/max(1, d.deepest))
}

// countSteps puts stepFormat into every schema below v. What lies at unknown keywords
// may be a schema too, if a $ref leads there.
func countSteps(v any, p place) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			countSteps(element, placeSchema)
		}
	case map[string]any:
		for name, member := range v {
			if p == placeMap {
				countSteps(member, placeSchema)
				continue
			}
			switch name {
			case "const", "enum", "default", "examples", "dependentRequired", "$vocabulary": // data
			default:
				countSteps(member, placeOf(name))
			}
		}
		if _, isText := v["format"].(string); p != placeMap && (isText || v["format"] == nil) {
			v["format"] = stepFormat
		}
	}
}

// Validate returns doc itself if it is valid: hand-written schemas change nothing.
func (w *written) Validate(doc []byte) ([]byte, []Violation) {
	d := decoder{doc: doc}
	value, _ := d.value(skipSpace(doc, 0))
	switch {
	case d.values > maxValues:
		return nil, []Violation{{Message: fmt.Sprintf("must hold at most %d values in all", maxValues)}}
	case d.failed:
		return nil, []Violation{{pointerTo(doc, d.badNumber), numberTooLong}}
	}
	finished, err := w.validate(value, d.stepsAllowed())
	if !finished {
		return nil, []Violation{{Message: "checking this takes more work than is allowed; make it smaller or less deeply nested"}}
	}
	if err == nil {
		return doc, nil
	}
	return nil, violationsOf(err)
}

// validate runs an idle or new instance; finished is false when the steps ran out.
func (w *written) validate(value any, steps int) (finished bool, err error) {
	w.mu.Lock()
	var in *instance
	if n := len(w.idle); n > 0 {
		in, w.idle = w.idle[n-1], w.idle[:n-1]
	}
	w.mu.Unlock()
	if in == nil {
		if in, err = w.instance(); err != nil {
			return true, err
		}
	}
	in.steps = steps
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(outOfSteps); !ok {
				panic(p)
			}
			finished, err = false, nil
		}
		w.mu.Lock()
		w.idle = append(w.idle, in)
		w.mu.Unlock()
	}()
	return true, in.schema.Validate(value)
}

// decoder makes the library's form of a text that passed strictjson.Check. Numbers keep
// their digits.
type decoder struct {
	doc       []byte
	values    int
	depth     int
	deepest   int
	failed    bool
	badNumber int // index of the first number that is too long
}

// The library computes with numbers digit by digit, in quadratic time.
const (
	maxDigits     = 400
	numberTooLong = "must be a number of at most 400 digits, written out"
)

func (d *decoder) value(i int) (v any, end int) {
	doc := d.doc
	d.values++
	d.depth++
	defer func() { d.depth-- }()
	d.deepest = max(d.deepest, d.depth)
	switch strictjson.Kind(doc[i:]) {
	case '{':
		object := map[string]any{}
		for i = skipSpace(doc, i+1); doc[i] != '}'; {
			nameEnd, escaped := stringEnd(doc, i)
			name := string(unquote(doc[i:nameEnd], escaped))
			object[name], i = d.value(skipSpace(doc, skipSpace(doc, nameEnd)+1))
			if i = skipSpace(doc, i); doc[i] == ',' {
				i = skipSpace(doc, i+1)
			}
		}
		return object, i + 1
	case '[':
		array := []any{}
		for i = skipSpace(doc, i+1); doc[i] != ']'; {
			var element any
			element, i = d.value(i)
			array = append(array, element)
			if i = skipSpace(doc, i); doc[i] == ',' {
				i = skipSpace(doc, i+1)
			}
		}
		return array, i + 1
	case '"':
		end, escaped := stringEnd(doc, i)
		return string(unquote(doc[i:end], escaped)), end
	case 't':
		return true, i + len("true")
	case 'f':
		return false, i + len("false")
	case 'n':
		return nil, i + len("null")
	}
	end = scalarEnd(doc, i)
	if n := parseDecimal(doc[i:end]); n.count > maxDigits || n.point > maxDigits || n.point < -maxDigits {
		if !d.failed {
			d.failed, d.badNumber = true, i
		}
		return nil, end
	}
	return json.Number(doc[i:end]), end
}
