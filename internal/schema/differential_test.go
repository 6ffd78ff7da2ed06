package schema

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// grammar makes schemas of a dialect, and documents that are near to them, out of a
// fuzzer's bytes.
type grammar struct {
	entropy
	old bool // draft-07
}

// The names, numbers and texts are few, so that schemas and documents meet.
var (
	someNames   = []string{"a", "b", "c", "aa", "x-1", "é", "a/b~"}
	someNumbers = []string{"0", "1", "-1", "2", "3.0", "1e1", "0.1", "-0.0", "2.5", "9007199254740993", "9007199254740992.0", "1e-3", "123456789012345678901234567890", "0.30", "100e-2", "18446744073709551616"}
	someTexts   = []string{`""`, `"a"`, `"aa"`, `"abc"`, `"é😀"`, `"\u0061"`, `"x-1"`, `"2026-07-28"`, `"1"`}
)

func (g *grammar) of(list []string) string { return list[g.upTo(len(list))] }

func (g *grammar) count() string { return g.pick("0", "1", "2", "3", "1.0", "2e0") }

// value is any JSON value.
func (g *grammar) value(depth int) string {
	switch n := g.upTo(8); {
	case n < 2:
		return g.of(someNumbers)
	case n < 4:
		return g.of(someTexts)
	case n == 4 || depth > 3:
		return g.pick("null", "true", "false", "[]", "{}")
	case n == 5:
		return "[" + g.several(4, func() string { return g.value(depth + 1) }) + "]"
	}
	return g.object(4, func() string { return g.value(depth + 1) })
}

func (g *grammar) several(most int, one func() string) string {
	list := make([]string, g.upTo(most+1))
	for i := range list {
		list[i] = one()
	}
	return strings.Join(list, ",")
}

func (g *grammar) object(most int, value func() string) string {
	return g.members(most, func() string { return g.of(someNames) }, value)
}

func (g *grammar) members(most int, name, value func() string) string {
	var names []string
	var text strings.Builder
	for range g.upTo(most + 1) {
		n := name()
		if slices.Contains(names, n) {
			continue
		}
		if len(names) > 0 {
			text.WriteByte(',')
		}
		names = append(names, n)
		fmt.Fprintf(&text, "%s:%s", strictjson.AppendString(nil, n), value())
	}
	return "{" + text.String() + "}"
}

func (g *grammar) nameList() string {
	var list []string
	for range g.upTo(4) {
		if n := string(strictjson.AppendString(nil, g.of(someNames))); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (g *grammar) typeNames() string {
	one := func() string {
		return g.pick(`"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"boolean"`, `"null"`)
	}
	a, b := one(), one()
	if a == b || g.upTo(2) == 0 {
		return a
	}
	return "[" + a + "," + b + "]"
}

func (g *grammar) pattern() string { return g.pick("^a", "a$", "^x-", "b|c", "^.{2}$", "", "é") }

// keywords are each a keyword and how its value is made.
func (g *grammar) keyword(depth int) (name, value string) {
	schema := func() string { return g.schema(depth + 1) }
	schemas := func() string { return "[" + schema() + strings.Repeat(","+schema(), g.upTo(3)) + "]" }
	shared := []func() (string, string){
		func() (string, string) { return "type", g.typeNames() },
		func() (string, string) { return "type", g.typeNames() },
		func() (string, string) {
			return "enum", "[" + g.of(someNumbers) + "," + g.of(someTexts) + "," + g.pick("null", "[1.0]", `{"a":1}`, "{}") + "]"
		},
		func() (string, string) { return "const", g.value(2) },
		func() (string, string) {
			return g.pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), g.of(someNumbers)
		},
		func() (string, string) { return "multipleOf", g.pick("1", "2", "0.1", "0.01", "3e0", "1e-3", "7") },
		func() (string, string) { return g.pick("minLength", "maxLength"), g.count() },
		func() (string, string) { return g.pick("minItems", "maxItems"), g.count() },
		func() (string, string) { return g.pick("minProperties", "maxProperties"), g.count() },
		func() (string, string) { return "pattern", string(strictjson.AppendString(nil, g.pattern())) },
		func() (string, string) { return "required", g.nameList() },
		func() (string, string) { return "uniqueItems", g.pick("true", "false") },
		func() (string, string) { return "properties", g.object(4, schema) },
		func() (string, string) { return "properties", g.object(4, schema) },
		func() (string, string) { return "patternProperties", g.members(2, g.pattern, schema) },
		func() (string, string) { return "additionalProperties", schema() },
		func() (string, string) { return "propertyNames", schema() },
		func() (string, string) { return "items", schema() },
		func() (string, string) { return "contains", schema() },
		func() (string, string) { return g.pick("allOf", "anyOf", "oneOf"), schemas() },
		func() (string, string) { return "anyOf", schemas() },
		func() (string, string) { return "not", schema() },
		func() (string, string) { return g.pick("if", "then", "else"), schema() },
		func() (string, string) { return "if", schema() },
		func() (string, string) {
			return "$ref", g.pick(`"#"`, `"#/definitions/a"`, `"#/definitions/b"`, `"#/definitions/b"`)
		},
		func() (string, string) { return "format", g.pick(`"date"`, `"ipv4"`, `"nothing"`) },
	}
	if g.old {
		shared = append(shared,
			func() (string, string) { return "items", schemas() },
			func() (string, string) { return "additionalItems", schema() },
			func() (string, string) {
				return "dependencies", g.object(2, func() string {
					if g.upTo(2) == 0 {
						return g.nameList()
					}
					return schema()
				})
			})
	} else {
		shared = append(shared,
			func() (string, string) { return "prefixItems", schemas() },
			func() (string, string) { return g.pick("minContains", "maxContains"), g.count() },
			func() (string, string) { return "dependentRequired", g.object(2, g.nameList) },
			func() (string, string) { return "dependentSchemas", g.object(2, schema) },
			func() (string, string) { return "unevaluatedProperties", schema() },
			func() (string, string) { return "unevaluatedItems", schema() },
			func() (string, string) { return "$ref", g.pick(`"#/$defs/c"`, `"#anchored"`) },
			func() (string, string) { return "$dynamicRef", g.pick(`"#dynamic"`, `"#anchored"`, `"#/$defs/c"`) })
	}
	return shared[g.upTo(len(shared))]()
}

func (g *grammar) body(depth, most int) string {
	var text strings.Builder
	var names []string
	for range 1 + g.upTo(most) {
		name, value := g.keyword(depth)
		if g.old && name == "$ref" {
			// What stands beside it does not count, but the judge looks at some of it.
			return fmt.Sprintf(",%q:%s", name, value)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
			fmt.Fprintf(&text, ",%q:%s", name, value)
		}
	}
	return text.String()
}

func (g *grammar) schema(depth int) string {
	if depth > 4 || g.upTo(8) == 1 {
		return g.pick("true", "{}", "false", `{"type":"string"}`, `{"type":"integer"}`)
	}
	return "{" + strings.TrimPrefix(g.body(depth, 3), ",") + "}"
}

// root is a schema in which all that is referred to is there.
func (g *grammar) root() string {
	defs := `"definitions":{"a":` + g.schema(2) + `,"b":` + g.schema(2) + `}`
	if g.old {
		return `{"$schema":"http://json-schema.org/draft-07/schema#",` + defs + g.body(0, 5) + "}"
	}
	return `{"$defs":{"c":{"$anchor":"anchored"` + g.body(2, 2) + `},"d":{"$dynamicAnchor":"dynamic"` + g.body(2, 2) +
		`},"e":{"$id":"https://example.com/e","$dynamicAnchor":"dynamic","$defs":{"f":{"$anchor":"anchored"` + g.pick("", `,"type":"string"`) + `}}` + g.pick("", `,"type":"object"`, `,"items":{"$dynamicRef":"#dynamic"}`) + `}},` +
		defs + g.body(0, 5) + "}"
}

func (g *grammar) differ(tb testing.TB) (valid, invalid int) {
	schema := []byte(g.root())
	own, err := Compile(schema)
	if err != nil {
		if !strings.Contains(err.Error(), "refers to itself") && !strings.Contains(err.Error(), "leads outside") {
			tb.Fatalf("%s: %v", schema, err)
		}
		return 0, 0
	}
	j := mustJudge(tb, schema)
	for range 4 {
		doc := []byte(g.value(0))
		if strictjson.Check(doc, 64) != nil {
			continue
		}
		if agree(tb, schema, own, j, doc) {
			if _, violations := own.Validate(doc); violations == nil {
				valid++
			} else {
				invalid++
			}
		}
	}
	return valid, invalid
}

// FuzzWritten compares our verdict of a hand-written schema with the judge's.
func FuzzWritten(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 60 {
		f.Add(i%2 == 0, randomBytes(random, 200))
	}
	f.Fuzz(func(t *testing.T, old bool, data []byte) {
		g := grammar{entropy{data}, old}
		g.differ(t)
	})
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// The same on so many random bytes that most keywords meet each other in every run.
func TestDifferential(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	valid, invalid := 0, 0
	for i := range 1000 {
		g := grammar{entropy{randomBytes(random, 400)}, i%3 == 0}
		v, n := g.differ(t)
		valid, invalid = valid+v, invalid+n
	}
	if t.Logf("%d accepted, %d refused", valid, invalid); valid < 800 || invalid < 800 {
		t.Errorf("%d accepted and %d refused show little", valid, invalid)
	}
}
