package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// nestedText is leaf in depth objects or arrays that open and close as given.
func nestedText(depth int, open, leaf, shut string) string {
	return strings.Repeat(open, depth) + leaf + strings.Repeat(shut, depth)
}

// F-26: schemas that look at large values often do little work each time. The bounds are
// on memory, which does not depend on the machine, and far above what is taken; the
// deadline only catches work that grows with depth times length.
func TestCostOfLargeValues(t *testing.T) {
	const large = 4 << 20
	long := `"` + strings.Repeat("a", large) + `"`
	escaped := `"` + strings.Repeat(`\u0061`, large/6) + `"`
	thirty := func(one string) string { return "[" + strings.Repeat(one+",", 29) + one + "]" }
	everywhere := func(rule string) string {
		return `{"allOf":` + thirty(rule) + `,"additionalProperties":{"$ref":"#"},"items":{"$ref":"#"}}`
	}
	for _, c := range []struct {
		name, schema, doc string
		most              uint64 // bytes allocated
	}{
		{"const in alternatives", `{"oneOf":[` + strings.Repeat(`{"const":"0"},`, 29) + `{"const":"0"}]}`, nestedText(120, `{"a":`, long, "}"), 1 << 20},
		{"const at every level", everywhere(`{"not":{"const":"0"}}`), nestedText(120, `{"a":`, long, "}"), 1 << 20},
		{"const of the same size", everywhere(`{"not":{"const":{"b":1}}}`), nestedText(120, `{"a":`, long, "}"), 256 << 20},
		{"uniqueItems at every level", everywhere(`{"uniqueItems":true}`), nestedText(60, `[{"a":`, long, "}]"), 1 << 20},
		{"uniqueItems of two", everywhere(`{"uniqueItems":true}`), nestedText(60, `[0,{"a":`, long, "}]"), 1 << 20},
		{"escaped names", everywhere(`{"properties":{"b":true},"required":[],"propertyNames":{"minLength":1}}`), "{" + escaped + ":1}", 40 << 20},
		{"escaped strings", everywhere(`{"minLength":1,"not":{"const":"b"}}`), `{"a":` + escaped + "}", 40 << 20},
		{"long names", everywhere(`{"properties":{"b":true},"additionalProperties":true}`), "{" + long + ":1}", 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, doc := mustCompile(t, c.schema), check(t, c.doc)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			v.Validate(doc)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > c.most {
				t.Errorf("allocated %d bytes, at most %d are allowed", got, c.most)
			}
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestCanonicalWritesOnce(t *testing.T) {
	doc := []byte(nestedText(100, `{"a":`, `"`+strings.Repeat("x", 1<<20)+`"`, "}"))
	tape := newTape(doc)
	dst := make([]byte, 0, 2*len(doc))
	if n := testing.AllocsPerRun(1, func() { dst = tape.appendCanonical(dst[:0], 0) }); n > 200 {
		t.Errorf("%v allocations", n)
	}
	if want := nestedText(100, `{"a":`, `"`+strings.Repeat("x", 1<<20)+`"`, ",}"); string(dst) != want {
		t.Errorf("%.40s", dst)
	}
}

func TestEscapesAreUnquotedOnce(t *testing.T) {
	tape := newTape([]byte(`{"\u0061":"\u0062","c":["d","\n",{"\u0065\"":""}]}`))
	var got []string
	for i := range tape.items {
		if tape.items[i].nameEnd > 0 {
			got = append(got, string(tape.name(i)))
		}
		if tape.items[i].kind == '"' {
			got = append(got, string(tape.text(i)))
		}
	}
	if want := []string{"a", "b", "c", "d", "\n", `e"`, ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := testing.AllocsPerRun(10, func() { tape.name(1); tape.text(1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// F-26: what a pattern costs is the length of the text times the size of its program.
func TestCostOfPatterns(t *testing.T) {
	large := `^(\pL{1,30}|[a-z0-9]{1,300}){1,3}x$`
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	a := func(n int) string { return strings.Repeat("a", n) }
	tooMuch := []string{outOfWorkText}
	for _, c := range []struct {
		name, schema, doc string
		want              []string
	}{
		{"large program, long text", `{"pattern":` + quoted(large) + `}`, quoted(a(1 << 20)), tooMuch},
		{"large program, long name", `{"patternProperties":{` + quoted(large) + `:{}}}`, `{` + quoted(a(1<<20)) + `:1}`, tooMuch},
		{"large program, usual text", `{"pattern":` + quoted(large) + `}`, quoted(a(200) + "x"), nil},
		{"usual program, 100 KiB", `{"pattern":"^[A-Za-z0-9+/]+={0,2}$"}`, quoted(a(100 << 10)), nil},
		{"usual program of some size, 100 KiB", `{"pattern":"^([a-z]{1,20}-?)*[a-z]{0,20}$"}`, quoted(a(100 << 10)), nil},
		{"usual program, 4 MiB", `{"pattern":"^[a-z]+$"}`, quoted(a(4 << 20)), nil},
		{"a length violation is enough", `{"maxLength":10,"pattern":` + quoted(large) + `}`, quoted(a(1 << 20)), []string{"must have at most 10 characters, has 1048576"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := mustCompile(t, c.schema).Validate(check(t, c.doc)); !slices.Equal(texts(got), c.want) {
				t.Errorf("got %.300q, want %q", texts(got), c.want)
			}
		})
	}
}

func TestCostOfPatternTags(t *testing.T) {
	type in struct {
		Large string   `json:"large,omitempty" pattern:"^(\\pL{1,30}|[a-z0-9]{1,300}){1,3}x$"`
		Many  []string `json:"many,omitempty" pattern:"^(\\pL{1,30}|[a-z0-9]{1,300}){1,3}x$"`
		Usual string   `json:"usual,omitempty" pattern:"^[A-Za-z0-9+/]+={0,2}$"`
	}
	v := mustOf(t, reflect.TypeFor[in](), Options{}).Validator()
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		name, doc string
		want      []string
	}{
		{"usual, 100 KiB", `{"usual":"` + a(100<<10) + `"}`, nil},
		{"usual, 4 MiB", `{"usual":"` + a(4<<20) + `"}`, nil},
		{"large, short", `{"large":"aax"}`, nil},
		{"large, long", `{"large":"` + a(1<<20) + `"}`, []string{"/large: is too long for its pattern"}},
		{"too many", `{"many":["x"` + strings.Repeat(`,"`+a(898)+`x"`, 2000) + `]}`, []string{"is too long for its pattern"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := v.Validate(check(t, c.doc))
			if len(c.want) == 0 && got != nil || len(c.want) > 0 && !strings.Contains(strings.Join(texts(got), "\n"), c.want[0]) {
				t.Errorf("got %.300q, want %q", texts(got), c.want)
			}
		})
	}
}

// F-26: what is wrong many times is refused in time, and shortly.
func TestCompileIsBounded(t *testing.T) {
	const n = 60_000
	names := make([]string, n)
	wrong := make([]string, n)
	for i := range n {
		names[i] = fmt.Sprintf("%q", fmt.Sprint("property", i))
		wrong[i] = fmt.Sprintf(`"p%d":{"minLength":"x"}`, i)
	}
	start := time.Now()
	mustCompile(t, `{"required":[`+strings.Join(names, ",")+`]}`)
	_, err := Compile([]byte(`{"properties":{` + strings.Join(wrong, ",") + `}}`))
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "\nschema: and more") {
		t.Errorf("got %.2000v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestReferenceChains(t *testing.T) {
	chainOf := func(n int, link string) string { // n schemas, the root first
		var defs []string
		for i := range n - 1 {
			next := fmt.Sprintf(link, i+1)
			if i == n-2 {
				next = `{"type":"string"}`
			}
			defs = append(defs, fmt.Sprintf(`"s%d":%s`, i, next))
		}
		slices.Reverse(defs) // neither order may hide the length
		return `{"$ref":"#/$defs/s0","$defs":{` + strings.Join(defs, ",") + `}}`
	}
	chain := func(n int) string { return chainOf(n, `{"$ref":"#/$defs/s%d"}`) }
	if _, got := mustCompile(t, chain(maxSchemaDepth)).Validate([]byte("1")); !slices.Equal(texts(got), []string{"must be a string, not a number"}) {
		t.Errorf("the longest chain: %q", texts(got))
	}
	for _, n := range []int{maxSchemaDepth + 1, 5000} {
		if _, err := Compile([]byte(chain(n))); err == nil || !strings.Contains(err.Error(), "more than 128 schemas lead from one to the next") {
			t.Errorf("%d: %v", n, err)
		}
	}
	// Going down on the way is no chain at one value.
	mustCompile(t, chainOf(1000, `{"items":{"$ref":"#/$defs/s%d"}}`))
}

func TestPointerTokens(t *testing.T) {
	for _, c := range []struct {
		token string
		ok    bool
	}{{"0", true}, {"1", true}, {"+1", false}, {"01", false}, {"-0", false}, {"", false}, {"2", false}, {"99999999999999999999", false}} {
		_, err := Compile([]byte(`{"prefixItems":[true,{"$ref":"#/allOf/` + c.token + `"}],"allOf":[{},{}]}`))
		if ok := err == nil; ok != c.ok || err != nil && !strings.Contains(err.Error(), "leads nowhere") {
			t.Errorf("%q: %v", c.token, err)
		}
	}
	if _, err := Compile([]byte(`{"$dynamicRef":"#/title","title":"x"}`)); err == nil || !strings.Contains(err.Error(), "a schema is an object or a boolean") {
		t.Errorf("a reference to no schema: %v", err)
	}
}
