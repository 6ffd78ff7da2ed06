package schema

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// everything has a field for each rule of the validator.
type everything struct {
	Text   string             `json:"text,omitempty" minLength:"2" maxLength:"4"`
	Match  string             `json:"match,omitempty" pattern:"^a+$"`
	Day    string             `json:"day,omitempty" format:"date"`
	Phone  string             `json:"phone,omitempty" format:"hostname"`
	Word   string             `json:"word,omitempty" enum:"yes,no"`
	Color  color              `json:"color,omitempty"`
	Int    int                `json:"int,omitempty"`
	Uint   uint64             `json:"uint,omitempty"`
	Small  int8               `json:"small,omitempty"`
	Range  int                `json:"range,omitempty" minimum:"-2" maximum:"9007199254740992"`
	Pick   int                `json:"pick,omitempty" enum:"1,20"`
	Float  float64            `json:"float,omitempty" minimum:"0.1" maximum:"1e3"`
	Single float32            `json:"single,omitempty"`
	Rate   float64            `json:"rate,omitempty" enum:"0.5,10"`
	Number json.Number        `json:"number,omitempty"`
	Flag   bool               `json:"flag,omitempty"`
	When   time.Time          `json:"when,omitzero"`
	Wait   time.Duration      `json:"wait,omitempty"`
	Bytes  []byte             `json:"bytes,omitempty"`
	Any    any                `json:"any,omitempty"`
	List   []int8             `json:"list,omitempty" minItems:"1" maxItems:"3"`
	Pair   [2]string          `json:"pair,omitzero"`
	Map    map[string]bool    `json:"map,omitempty"`
	Keys   map[int8]bool      `json:"keys,omitempty"`
	Addrs  map[netip.Addr]int `json:"addrs,omitempty"`
	Colors map[color]int      `json:"colors,omitempty"`
	Ptr    *int               `json:"ptr"`
	IntStr int16              `json:"intstr,string,omitempty"`
	FltStr float32            `json:"fltstr,string,omitempty"`
	BolStr bool               `json:"bolstr,string,omitempty"`
	Tree   *tree              `json:"tree"`
	Inner  struct {
		A int `json:"a"`
		B int `json:"b" default:"7"`
	} `json:"inner,omitzero"`
}

func check(tb testing.TB, text string) []byte {
	tb.Helper()
	if err := strictjson.Check([]byte(text), 128); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return []byte(text)
}

func texts(violations []Violation) []string {
	list := make([]string, len(violations))
	for i, v := range violations {
		list[i] = v.String()
	}
	return list
}

func TestValidate(t *testing.T) {
	v := mustOf(t, reflect.TypeFor[everything](), Options{EnumOf: enumOf}).Validator()
	for _, c := range []struct {
		doc  string
		want []string // violations; none: accepted
		out  string   // if it differs from doc
	}{
		{doc: `{}`},
		{doc: " { } "},
		{doc: `[]`, want: []string{"must be an object, not an array"}},
		{doc: `null`, want: []string{"must be an object, not null"}},

		{doc: `{"text":"ab"}`},
		{doc: `{"text":"éé世😀"}`},
		{doc: `{"text":"\ud83d\ude00\u0041"}`},
		{doc: `{"text":"a"}`, want: []string{"/text: must have at least 2 characters, has 1"}},
		{doc: `{"text":"\ud83d\ude00"}`, want: []string{"/text: must have at least 2 characters, has 1"}},
		{doc: `{"text":"abcde"}`, want: []string{"/text: must have at most 4 characters, has 5"}},
		{doc: `{"text":1}`, want: []string{"/text: must be a string, not a number"}},
		{doc: `{"text":null}`, want: []string{"/text: must be a string, not null"}},
		{doc: `{"text":["ab"]}`, want: []string{"/text: must be a string, not an array"}},
		{doc: `{"TEXT":"ab"}`, want: []string{`unknown property "TEXT"; did you mean "text"? Names are case-sensitive`}},
		{doc: `{"te\u0078t":"ab"}`},
		{doc: `{"te\u0078t":"a"}`, want: []string{"/text: must have at least 2 characters, has 1"}},
		{doc: `{"match":"aaa"}`},
		{doc: `{"match":"a\u0061"}`},
		{doc: `{"match":"ab"}`, want: []string{"/match: must match the pattern ^a+$"}},
		{doc: `{"day":"2026-02-28"}`},
		{doc: `{"day":"2026-02-29"}`, want: []string{`/day: must be a valid date such as "2026-07-28"`}},
		{doc: `{"phone":"not checked"}`},
		{doc: `{"word":"\u0079es"}`},
		{doc: `{"word":"maybe"}`, want: []string{`/word: must be one of "yes", "no"`}},
		{doc: `{"word":"` + strings.Repeat("x", 100) + `"}`, want: []string{`/word: must be one of "yes", "no"`}},
		{doc: `{"color":"Red"}`, want: []string{`/color: must be one of "red", "blue"`}},

		{doc: `{"int":-9223372036854775808}`},
		{doc: `{"int":9007199254740993}`},
		{doc: `{"int":9223372036854775808}`, want: []string{"/int: must fit in a 64-bit integer"}},
		{doc: `{"int":92233720368547758070}`, want: []string{"/int: must fit in a 64-bit integer"}},
		{doc: `{"int":-1e400}`, want: []string{"/int: must fit in a 64-bit integer"}},
		{doc: `{"int":3.0}`, out: `{"int":3}`},
		{doc: `{"int":1e2,"small":-1.20e1}`, out: `{"int":100,"small":-12}`},
		{doc: `{"int":-0}`, out: `{"int":0}`},
		{doc: `{"int":1.5}`, want: []string{"/int: must be an integer, without a fraction"}},
		{doc: `{"int":"03"}`, want: []string{"/int: must be an integer, not a string"}},
		{doc: `{"int":"+3"}`, want: []string{"/int: must be an integer, not a string"}},
		{doc: `{"int":true}`, want: []string{"/int: must be an integer, not a boolean"}},
		{doc: `{"uint":18446744073709551615}`},
		{doc: `{"uint":18446744073709551616}`, want: []string{"/uint: must fit in an unsigned 64-bit integer"}},
		{doc: `{"uint":-1}`, want: []string{"/uint: must be at least 0"}},
		{doc: `{"uint":-0}`, out: `{"uint":0}`},
		{doc: `{"small":128}`, want: []string{"/small: must be at most 127"}},
		{doc: `{"small":-129}`, want: []string{"/small: must be at least -128"}},
		{doc: `{"range":9007199254740992}`},
		{doc: `{"range":9007199254740993}`, want: []string{"/range: must be at most 9007199254740992"}},
		{doc: `{"range":-3}`, want: []string{"/range: must be at least -2"}},
		{doc: `{"pick":20.0}`, out: `{"pick":20}`},
		{doc: `{"pick":2}`, want: []string{"/pick: must be one of 1, 20, not 2"}},

		{doc: `{"float":0.1}`},
		{doc: `{"float":1000.0}`},
		{doc: `{"float":0.09999999999999999999}`, want: []string{"/float: must be at least 0.1"}},
		{doc: `{"float":1000.000000000000000001}`, want: []string{"/float: must be at most 1e3"}},
		{doc: `{"float":1e400}`, want: []string{"/float: must be within the range of a 64-bit float, about ±1.8e308"}},
		{doc: `{"single":3.4e38}`},
		{doc: `{"single":3.5e38}`, want: []string{"/single: must be within the range of a 32-bit float, about ±3.4e38"}},
		{doc: `{"rate":5e-1}`},
		{doc: `{"rate":0.6}`, want: []string{"/rate: must be one of 0.5, 10, not 0.6"}},
		{doc: `{"number":1e400}`},
		{doc: `{"number":"1"}`, want: []string{"/number: must be a number, not a string"}},
		{doc: `{"flag":true}`},
		{doc: `{"flag":0}`, want: []string{"/flag: must be a boolean, not a number"}},
		{doc: `{"when":"2026-07-28T09:30:00Z"}`},
		{doc: `{"when":"yesterday"}`, want: []string{`/when: must be a valid date-time such as "2026-07-28T09:30:00Z"`}},
		{doc: `{"wait":1e9}`, out: `{"wait":1000000000}`},
		{doc: `{"wait":"1s"}`, want: []string{"/wait: must be an integer, not a string"}},
		{doc: `{"bytes":"AA=="}`},
		{doc: `{"bytes":"\/\/\/\/"}`},
		{doc: `{"bytes":"AA"}`, want: []string{"/bytes: must be base64 (standard alphabet, with padding)"}},
		{doc: `{"bytes":[1,2]}`, want: []string{"/bytes: must be a string, not an array"}},
		{doc: `{"any":{"a":[1,{"b":"]}"}],"a2":null}}`},
		{doc: `{"any":null}`},

		{doc: `{"list":[1,2.0,3]}`, out: `{"list":[1,2,3]}`},
		{doc: `{"list":[]}`, want: []string{"/list: must have at least 1 item, has 0"}},
		{doc: `{"list":[1,2,3,4]}`, want: []string{"/list: must have at most 3 items, has 4"}},
		{doc: `{"list":[1,"2",300]}`, want: []string{"/list/1: must be an integer, not a string", "/list/2: must be at most 127"}},
		{doc: `{"list":{}}`, want: []string{"/list: must be an array, not an object"}},
		{doc: `{"pair":["a","b"]}`},
		{doc: `{"pair":["a"]}`, want: []string{"/pair: must have at least 2 items, has 1"}},
		{doc: `{"map":{"a":true,"b/c":1}}`, want: []string{"/map/b~1c: must be a boolean, not a number"}},
		{doc: `{"keys":{"-1":true,"0":false}}`},
		{doc: `{"keys":{"01":true}}`, want: []string{`/keys: property name "01" must be an integer written as a string, such as "12"`}},
		{doc: `{"keys":{"1.0":true}}`, want: []string{`/keys: property name "1.0" must be an integer written as a string, such as "12"`}},
		{doc: `{"keys":{"200":true}}`, want: []string{`/keys: property name "200" must be at most 127 as a number`}},
		{doc: `{"addrs":{"::1":1}}`},
		{doc: `{"colors":{"red":1}}`},
		{doc: `{"colors":{"green":1}}`, want: []string{`/colors: property name "green" must be one of "red", "blue"`}},
		{doc: `{"ptr":null,"tree":null}`},
		{doc: `{"ptr":"a"}`, want: []string{"/ptr: must be an integer or null, not a string"}},
		{doc: `{"intstr":"-12"}`},
		{doc: `{"intstr":"+12"}`, want: []string{`/intstr: must be an integer written as a string, such as "12"`}},
		{doc: `{"intstr":"40000"}`, want: []string{"/intstr: must be at most 32767 as a number"}},
		{doc: `{"intstr":12}`, want: []string{"/intstr: must be a string, not a number"}},
		{doc: `{"intstr":"null"}`, want: []string{`/intstr: must be an integer written as a string, such as "12"`}},
		{doc: `{"fltstr":"1.5e3","bolstr":"true"}`},
		{doc: `{"fltstr":"1e39"}`, want: []string{`/fltstr: must be a number written as a string, such as "1.5"`}},
		{doc: `{"bolstr":"yes"}`, want: []string{`/bolstr: must be "true" or "false", as a string`}},
		{doc: `{"tree":{"name":"a","kids":[null,{"name":"b","kids":[],"next":{"name":1}}]}}`, want: []string{"/tree/kids/1/next/name: must be a string, not a number", `/tree/kids/1/next: missing property "kids"`}},

		{doc: `{"inner":{"a":1}}`, out: `{"inner":{"a":1,"b":7}}`},
		{doc: `{ "inner" : { "a" : 1 } }`, out: `{ "inner" : { "a" : 1 ,"b":7} }`},
		{doc: `{"inner":{"a":1,"b":2}}`},
		{doc: `{"inner":{}}`, want: []string{`/inner: missing property "a"`}},
		{doc: `{"inner":{"A":1,"c":2}}`, want: []string{`/inner: unknown property "A"; did you mean "a"? Names are case-sensitive`, `/inner: unknown property "c"; allowed are "a", "b"`, `/inner: missing property "a"`}},
		{doc: `{"int":"1","text":"a","flag":1}`, want: []string{"/int: must be an integer, not a string", "/text: must have at least 2 characters, has 1", "/flag: must be a boolean, not a number"}},
	} {
		t.Run(c.doc, func(t *testing.T) {
			doc := check(t, c.doc)
			out, violations := v.Validate(doc)
			if got := texts(violations); !slices.Equal(got, c.want) {
				t.Fatalf("got  %q\nwant %q", got, c.want)
			}
			if len(c.want) > 0 {
				if out != nil {
					t.Errorf("a refused document came out as %s", out)
				}
				return
			}
			want := c.out
			if want == "" {
				want = c.doc
				if len(out) > 0 && &out[0] != &doc[0] {
					t.Error("an unchanged document was copied")
				}
			}
			if string(out) != want {
				t.Errorf("out %s, want %s", out, want)
			}
			var e everything
			if err := strictjson.Unmarshal(out, &e); err != nil {
				t.Errorf("what was accepted does not decode: %v", err)
			}
			if string(doc) != c.doc {
				t.Error("the document was written to")
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	type in struct {
		Q     string   `json:"q"`
		N     int      `json:"n" default:"10"`
		S     string   `json:"s\u00e9" default:"a\"b"`
		L     []string `json:"l" default:"[\"x\"]"`
		P     *bool    `json:"p" default:"true"`
		Plain int      `json:"plain" default:"3"`
	}
	v := mustOf(t, reflect.TypeFor[in](), Options{}).Validator()
	for doc, want := range map[string]string{
		`{"q":""}`:                     `{"q":"","n":10,"sé":"a\"b","l":["x"],"p":true,"plain":3}`,
		`{"l":[],"q":"","n":1.0}`:      `{"l":[],"q":"","n":1,"sé":"a\"b","p":true,"plain":3}`,
		`{"p":null,"q":"","plain":0 }`: `{"p":null,"q":"","plain":0 ,"n":10,"sé":"a\"b","l":["x"]}`,
	} {
		out, violations := v.Validate(check(t, doc))
		if violations != nil || string(out) != want {
			t.Errorf("%s\ngot  %s %v\nwant %s", doc, out, violations, want)
		}
	}
	type all struct {
		N int `json:"n" default:"10"`
	}
	if out, _ := mustOf(t, reflect.TypeFor[all](), Options{}).Validator().Validate([]byte(" {  } ")); string(out) != ` {  "n":10} ` {
		t.Errorf("into an empty object: %s", out)
	}
	// Output is what the handler said, and nothing else.
	if out, v := mustOf(t, reflect.TypeFor[all](), Options{Output: true}).Validator().Validate([]byte(`{"n":3.0}`)); string(out) != `{"n":3.0}` || v != nil {
		t.Errorf("output became %s, %v", out, v)
	}
}

type recursiveConfig struct {
	Mode string           `json:"mode" default:"fast"`
	Sub  *recursiveConfig `json:"sub"`
}

type lateConfig struct {
	List []lateConfig `json:"list" default:"[{}]"`
	Mode string       `json:"mode" default:"fast"`
}

// A default that goes through a recursive type gets the defaults inside it.
func TestDefaultsOfRecursiveTypes(t *testing.T) {
	for _, c := range []struct {
		name      string
		in        reflect.Type
		doc, want string
	}{
		{"struct", reflect.TypeFor[struct {
			C recursiveConfig `json:"c" default:"{}"`
		}](), `{}`, `{"c":{"mode":"fast"}}`},
		{"slice", reflect.TypeFor[struct {
			C []recursiveConfig `json:"c" default:"[{}]"`
		}](), `{}`, `{"c":[{"mode":"fast"}]}`},
		{"map", reflect.TypeFor[struct {
			C map[string]recursiveConfig `json:"c" default:"{\"a\":{}}"`
		}](), `{}`, `{"c":{"a":{"mode":"fast"}}}`},
		{"pointer", reflect.TypeFor[struct {
			C *recursiveConfig `json:"c" default:"{}"`
		}](), `{}`, `{"c":{"mode":"fast"}}`},
		{"nested", reflect.TypeFor[struct {
			C recursiveConfig `json:"c" default:"{\"sub\":{\"sub\":{}}}"`
		}](), `{}`, `{"c":{"sub":{"sub":{"mode":"fast"},"mode":"fast"},"mode":"fast"}}`},
		{"given", reflect.TypeFor[recursiveConfig](), `{"sub":{}}`, `{"sub":{"mode":"fast"},"mode":"fast"}`},
		{"before the scalar", reflect.TypeFor[lateConfig](), `{}`, `{"list":[{"mode":"fast"}],"mode":"fast"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, violations := mustOf(t, c.in, Options{}).Validator().Validate([]byte(c.doc))
			if violations != nil || string(out) != c.want {
				t.Errorf("got %s %v, want %s", out, violations, c.want)
			}
		})
	}
}

func TestOutputRequiresWhatMarshalWrites(t *testing.T) {
	v := mustOf(t, reflect.TypeFor[struct {
		A *int   `json:"a"`
		B string `json:"b,omitempty"`
		C int    `json:"c" default:"1"`
	}](), Options{Output: true}).Validator()
	if _, got := v.Validate([]byte(`{}`)); !slices.Equal(texts(got), []string{`missing property "a"`, `missing property "c"`}) {
		t.Errorf("got %q", got)
	}
	if _, got := v.Validate([]byte(`{"a":null,"c":1}`)); got != nil {
		t.Errorf("got %q", got)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	v := mustOf(t, reflect.TypeFor[struct{ A []int }](), Options{}).Validator()
	doc := check(t, `{"A":[`+strings.Repeat(`"x",`, 50_000)+`1]}`)
	_, got := v.Validate(doc)
	if len(got) != maxViolations+1 || got[maxViolations].Message != "and more" {
		t.Fatalf("%d violations, last %v", len(got), got[len(got)-1])
	}
	long := check(t, `{"`+strings.Repeat("y", 100_000)+`":{"`+strings.Repeat("z", 100_000)+`":1},"A":[]}`)
	if _, got = v.Validate(long); len(got) != 1 || len(got[0].String()) > 200 {
		t.Errorf("a long name made %d violations, the first of %d bytes", len(got), len(got[0].String()))
	}
}

func TestManyFields(t *testing.T) {
	var fields []reflect.StructField
	var doc []string
	for i := range 300 {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int](), Tag: reflect.StructTag(fmt.Sprintf(`json:"f%d"`, i))}
		if i%7 == 0 {
			f.Tag += ` default:"1"`
		}
		fields = append(fields, f)
		if i != 64 && i != 255 && i != 299 {
			doc = append(doc, fmt.Sprintf(`"f%d":%d`, i, i))
		}
	}
	slices.Reverse(doc)
	v := mustOf(t, reflect.StructOf(fields), Options{}).Validator()
	_, got := v.Validate(check(t, "{"+strings.Join(doc, ",")+"}"))
	if want := []string{`missing property "f64"`, `missing property "f255"`, `missing property "f299"`}; !slices.Equal(texts(got), want) {
		t.Errorf("got %q, want %q", got, want)
	}
	out, got := v.Validate(check(t, "{"+strings.Join(append(doc[1:], `"f64":0,"f255":0,"f299":0`), ",")+"}"))
	if len(got) != 1 || out != nil || got[0].Message != `missing property "f298"` {
		t.Errorf("got %q", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := mustOf(t, reflect.TypeFor[everything](), Options{EnumOf: enumOf})
	compiled, err := Compile(s.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	good, bad := check(t, `{"match":"aa","word":"yes","list":[1]}`), check(t, `{"match":"b","word":"y","list":[]}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, v := range []Validator{s.Validator(), compiled} {
				for range 50 {
					if _, got := v.Validate(good); got != nil {
						t.Errorf("refused: %v", got)
					}
					if _, got := v.Validate(bad); len(got) != 3 {
						t.Errorf("got %v", got)
					}
				}
			}
		})
	}
	wg.Wait()
}

// An accepted document costs no allocation (the budget of a call counts them).
func TestAcceptingAllocatesNothing(t *testing.T) {
	v := mustOf(t, reflect.TypeFor[searchIn](), Options{}).Validator()
	doc := check(t, searchDoc)
	if n := testing.AllocsPerRun(100, func() {
		if _, violations := v.Validate(doc); violations != nil {
			t.Error(violations)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A document that is wrong a great many times in ways that read the same is not looked at
// to its end (S-12): the work stays linear. Counted, not timed: every violation walks the
// document once for its path.
func TestManySameViolations(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(`{"m":{`)
	for i := range 10_000 {
		if i > 0 {
			doc.WriteByte(',')
		}
		fmt.Fprintf(&doc, `"%s%d":"x"`, strings.Repeat("k", 80), i)
	}
	doc.WriteString("}}")
	ty, err := Of(reflect.TypeFor[struct {
		M map[string]int `json:"m"`
	}](), Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := validation{doc: []byte(doc.String())}
	ty.Validator()
	v.value(ty.root, 0)
	if v.attempts > maxAttempts || len(v.list) != 2 || v.list[1].Message != "and more" {
		t.Errorf("%d attempts, %d violations: %v", v.attempts, len(v.list), v.list)
	}
}
