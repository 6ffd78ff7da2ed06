package rie

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// casesFile holds failure cases that others met; those of Lambda are replayed here on a
// real runtime loop.
const casesFile = "../../conformance/cases/cases.yaml"

type object = map[string]any

type caseFile struct {
	Common struct {
		Meta   object
		Shells map[string]object
	}
	Cases []struct {
		ID       string
		Category string
		Input    object
	}
}

// expectation is what must come of a request: one of the statuses and, with an error,
// one of the codes.
type expectation struct {
	statuses []int
	codes    []int // nil: a result, or an error without a look at its code
	form     form
	basePath bool // the function is set up for a path that the gateway leaves in front
}

// expectations are the "expect" lines of the cases, by case and request.
var expectations = map[string]expectation{
	"B-01/": {statuses: []int{200}},

	"B-03/charset on content-type":        {statuses: []int{200}, form: v2},
	"B-03/charset and q in accept":        {statuses: []int{200}, form: v2},
	"B-03/upper case type":                {statuses: []int{200}, form: v2},
	"B-03/wildcard":                       {statuses: []int{200}, form: v2},
	"B-03/two lines through an ALB":       {statuses: []int{200}, form: albMulti},
	"B-03/wrong type":                     {statuses: []int{415, 400}, codes: []int{-32600}, form: v2},
	"B-05/all maps null":                  {statuses: []int{400}, codes: []int{-32020}},
	"B-05/body null":                      {statuses: []int{400}, codes: []int{-32700, -32600}},
	"B-05/body missing on a function URL": {statuses: []int{400}, codes: []int{-32700, -32600}, form: v2},
	"B-05/empty event object":             {statuses: []int{400}, codes: []int{-32700, -32600}, form: v2},

	"B-07/HTTP API, stage in rawPath": {statuses: []int{200}, form: v2},
	"B-07/REST, base-path mapping":    {statuses: []int{200}, basePath: true},
	"B-07/percent-encoded path":       {statuses: []int{200, 404}, form: v2},
	"B-07/other path":                 {statuses: []int{404}, form: v2},
}

// TestCases replays every lambda-events case.
func TestCases(t *testing.T) {
	b, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file caseFile
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	plain, based := function(t), function(t, "THAW_BASE_PATH=/agents")
	left := maps.Clone(expectations)
	for _, c := range file.Cases {
		if c.Category != "lambda-events" {
			continue
		}
		for _, r := range requests(c.Input) {
			name, _ := r["name"].(string)
			key := c.ID + "/" + name
			want, ok := expectations[key]
			if !ok {
				t.Errorf("nobody says what must come of %q", key)
				continue
			}
			delete(left, key)
			t.Run(key, func(t *testing.T) {
				event, err := file.event(r)
				if err != nil {
					t.Fatal(err)
				}
				f := plain
				if want.basePath {
					f = based
				}
				a, m := invoke(t, f, event, want.form)
				if !slices.Contains(want.statuses, a.StatusCode) {
					t.Errorf("status %d, want one of %d: %s", a.StatusCode, want.statuses, *a.Body)
				}
				if want.codes != nil && (m.Error == nil || !slices.Contains(want.codes, m.Error.Code)) {
					t.Errorf("error %+v, want one of %d", m.Error, want.codes)
				}
				if a.StatusCode == 200 && m.Error != nil {
					t.Errorf("error %+v, want a result", m.Error)
				}
			})
		}
	}
	for key := range left {
		t.Errorf("there is no request %q", key)
	}
}

// requests are the requests of a case: several, or its input itself.
func requests(input object) []object {
	list, ok := input["requests"].([]any)
	if !ok {
		return []object{input}
	}
	var all []object
	for _, r := range list {
		all = append(all, r.(object))
	}
	return all
}

// event builds the event of a request by the rules under "placeholders" in the file. A
// plain request becomes an event of an HTTP API.
func (f *caseFile) event(r object) ([]byte, error) {
	if text, ok := r["event_raw"].(string); ok {
		return []byte(text), nil
	}
	own, ok := r["event"].(object)
	if !ok {
		own = object{"$shell": "V2", "body": r["body"]}
		if headers, ok := r["headers"].(object); ok {
			lower := object{}
			for name, value := range headers {
				lower[strings.ToLower(name)] = value
			}
			own["headers"] = lower
		}
	}
	shellName, _ := own["$shell"].(string)
	shell, ok := f.Common.Shells[shellName]
	if !ok {
		return nil, fmt.Errorf("no shell %q", shellName)
	}
	body, err := f.body(own["body"])
	if err != nil {
		return nil, err
	}
	e := merge(shell, own)
	delete(e, "$shell")
	if shellName == "V1" && e["multiValueHeaders"] == "same values as lists" {
		lists := object{}
		for name, value := range e["headers"].(object) {
			lists[name] = []any{value}
		}
		e["multiValueHeaders"] = lists
	}
	if _, ok := own["body"].(object); ok {
		e["body"] = body
		addMirrored(e, own, body)
	}
	return json.Marshal(e)
}

// body is the JSON text of a body with the placeholder of _meta filled in.
func (f *caseFile) body(value any) (string, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	m, err := json.Marshal(f.Common.Meta)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(string(b), `"$META"`, string(m)), nil
}

// addMirrored adds Mcp-Method and Mcp-Name to the headers that the case leaves to the
// shell.
func addMirrored(e, own object, body string) {
	if _, given := own["headers"]; given && own["headers"] == nil {
		return
	}
	if _, given := own["multiValueHeaders"]; given {
		return
	}
	var m struct {
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal([]byte(body), &m) != nil {
		return
	}
	for name, value := range map[string]string{"mcp-method": m.Method, "mcp-name": m.Params.Name} {
		if value == "" {
			continue
		}
		if headers, ok := e["headers"].(object); ok {
			headers[name] = value
		}
		if lists, ok := e["multiValueHeaders"].(object); ok {
			lists[name] = []any{value}
		}
	}
}

// merge is a deep copy of base with the members of own in it; lists are replaced, and
// $ABSENT takes a member out.
func merge(base, own object) object {
	out := object{}
	for name, value := range base {
		if o, ok := value.(object); ok {
			value = merge(o, nil)
		}
		out[name] = value
	}
	for name, value := range own {
		o, isObject := value.(object)
		under, wasObject := out[name].(object)
		switch {
		case value == "$ABSENT":
			delete(out, name)
		case isObject && wasObject:
			out[name] = merge(under, o)
		case isObject:
			out[name] = merge(object{}, o)
		default:
			out[name] = value
		}
	}
	return out
}
