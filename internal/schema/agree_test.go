package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// subject is a type with its validator, and what else can be made of its schema.
type subject struct {
	t              reflect.Type
	schema         *Type
	text           []byte
	fast, compiled Validator
	judge          judge
}

func newSubject(tb testing.TB, t reflect.Type, o Options) subject {
	tb.Helper()
	o.EnumOf = enumOf
	s := subject{t: t, schema: mustOf(tb, t, o)}
	s.text = s.schema.AppendJSON(nil)
	s.fast, s.compiled, s.judge = s.schema.Validator(), mustCompile(tb, string(s.text)), mustJudge(tb, s.text)
	return s
}

// beyondSchema are the rules of Go types and formats that a schema's own keywords do
// not state: only these may refuse what the judge accepts.
var beyondSchema = []string{
	"must fit in", "must be within the range of", "must be a valid ", "must be base64",
	"as a number", "must be a number written as a string",
}

// compare checks that both validators and the judge say the same of doc, and that what
// they accept is what Go decodes.
func (s *subject) compare(tb testing.TB, doc []byte) {
	tb.Helper()
	before := string(doc)
	out, fast := s.fast.Validate(doc)
	if !judges(doc) {
		return
	}
	agree(tb, s.text, s.compiled, s.judge, doc)
	accepted, why := s.judge.accepts(tb, doc)
	if string(doc) != before {
		tb.Fatalf("%s was written to: %s", before, doc)
	}
	switch {
	case fast == nil && !accepted:
		tb.Fatalf("%v: only the judge refuses %s: %v", s.t, doc, why)
	case fast != nil && accepted:
		for _, v := range fast {
			if !slices.ContainsFunc(beyondSchema, func(rule string) bool { return strings.Contains(v.String(), rule) }) {
				tb.Fatalf("%v: only the fast path refuses %s: %q", s.t, doc, texts(fast))
			}
		}
	}
	if fast != nil {
		if len(fast) > maxViolations+1 || out != nil {
			tb.Fatalf("%d violations, out %s", len(fast), out)
		}
		return
	}
	if err := strictjson.Check(out, 200); err != nil {
		tb.Fatalf("%s came out as %s: %v", doc, out, err)
	}
	into := reflect.New(s.t)
	if err := strictjson.Unmarshal(out, into.Interface()); err != nil && !s.schema.options.Output && !s.methods() {
		tb.Fatalf("%v: accepted %s, which does not decode: %v", s.t, out, err)
	}
	again, violations := s.fast.Validate(out)
	if violations != nil || string(again) != string(out) {
		tb.Fatalf("%s came out as %s, and that as %s, %v", doc, out, again, violations)
	}
}

// methods reports whether the type has addresses in it, whose UnmarshalText has rules
// that no schema knows.
func (s *subject) methods() bool {
	return s.t == reflect.TypeFor[everything]() || strings.Contains(s.t.String(), "netip.Addr")
}

// subjects are types for documents to be made for.
func subjects(tb testing.TB) []subject {
	return []subject{
		newSubject(tb, reflect.TypeFor[everything](), Options{}),
		newSubject(tb, reflect.TypeFor[searchIn](), Options{}),
		newSubject(tb, reflect.TypeFor[tree](), Options{}),
		newSubject(tb, reflect.TypeFor[map[string][]*shade](), Options{}),
		newSubject(tb, reflect.TypeFor[struct {
			A tree             `json:"a"`
			B map[string]tree  `json:"b"`
			C *[]uint16        `json:"c" maximum:"500" minItems:"1"`
			D [][]float32      `json:"d" minimum:"-0.5" maxItems:"2" default:"[[0.5]]"`
			E map[uint8]string `json:"e,omitempty" jsonschema:"keys are small"`
			F *shade           `json:"f" default:"d"`
			deepBase
		}](), Options{}),
		newSubject(tb, reflect.TypeFor[everything](), Options{Output: true}),
		newSubject(tb, reflect.TypeFor[[]pair[color, *time.Duration]](), Options{Output: true}),
	}
}

// entropy turns a fuzzer's bytes into decisions.
type entropy struct{ data []byte }

func (e *entropy) upTo(n int) int {
	if len(e.data) == 0 || n <= 1 {
		return 0
	}
	b := int(e.data[0])
	e.data = e.data[1:]
	return b % n
}

func (e *entropy) pick(of ...string) string { return of[e.upTo(len(of))] }

// document appends a document that is nearly right for n.
func (e *entropy) document(dst []byte, n *node, depth int) []byte {
	if e.upTo(16) == 1 {
		return append(dst, e.pick("null", "true", "0", "-1.5", `"x"`, "[]", "{}", `[1]`, `{"a":1}`, "1e2", `""`)...)
	}
	if n.null && e.upTo(3) == 1 || depth > 12 {
		return append(dst, "null"...)
	}
	space := func() { dst = append(dst, e.pick("", "", "", " ", "\n\t")...) }
	switch n.kind {
	case kindRef:
		return e.document(dst, n.target, depth)
	case kindObject:
		dst = append(dst, '{')
		written := 0
		order := make([]int, len(n.fields))
		for i := range order {
			order[i] = i
		}
		if len(order) > 1 && e.upTo(4) == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			f := &n.fields[i]
			if f.optional && e.upTo(3) != 1 || !f.optional && e.upTo(24) == 1 {
				continue
			}
			if written++; written > 1 {
				dst = append(dst, ',')
			}
			space()
			name := strictjson.AppendString(nil, f.name)
			switch e.upTo(32) {
			case 1:
				name = []byte(strings.ToUpper(string(name)))
			case 2:
				name = fmt.Appendf(nil, `"\u%04x%s`, name[1], name[2:])
			}
			dst = append(dst, name...)
			space()
			dst = append(dst, ':')
			space()
			dst = e.document(dst, &f.node, depth+1)
			space()
		}
		return append(dst, '}')
	case kindMap:
		dst = append(dst, '{')
		for i := range e.upTo(3) {
			if i > 0 {
				dst = append(dst, ',')
			}
			key := []string{"a", "red", "1", "-7", "200", "01", "é", "::1"}[(i+e.upTo(8))%8]
			if i > 0 {
				key += fmt.Sprint(i)
			}
			dst = append(strictjson.AppendString(dst, key), ':')
			dst = e.document(dst, n.elem, depth+1)
		}
		return append(dst, '}')
	case kindArray:
		dst = append(dst, '[')
		for i := range e.upTo(5) {
			if i > 0 {
				dst = append(dst, ',')
			}
			space()
			dst = e.document(dst, n.elem, depth+1)
			space()
		}
		return append(dst, ']')
	case kindString:
		if n.rules != nil && n.rules.enum != nil && e.upTo(6) != 1 {
			return strictjson.AppendString(dst, n.rules.enum[e.upTo(len(n.rules.enum))].Value)
		}
		return append(dst, e.pick(`"aa"`, `"a"`, `""`, `"aaaaaaa"`, `"\u0061a"`, `"\ud83d\ude00é"`, `"2026-07-28"`, `"2026-07-28T09:30:00Z"`, `"QUI="`, `"\/w=="`, `"12"`, `"-0"`, `"1.5e3"`, `"1e99"`, `"true"`, `"40000"`, `"red"`)...)
	case kindInteger:
		return append(dst, e.pick("0", "1", "-1", "20", "3.0", "1e2", "-0", "1.5", "127", "128", "255", "256", "65535", "65536", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e30", "-2", "-3", "50", "51", "500")...)
	case kindNumber:
		return append(dst, e.pick("0", "0.5", "5e-1", "10", "1e1", "-0.5", "-0.50001", "0.1", "0.0999", "1000", "1000.0001", "3.4e38", "3.5e38", "1.7e308", "1.8e308", "1e-320", "123456789.123456789")...)
	case kindBool:
		return append(dst, e.pick("true", "false")...)
	}
	return append(dst, e.pick("null", `{"x":[1,{"y":"]"}]}`, "1.5", `"\""`, "[]")...)
}

// FuzzAgree compares the fast validator of a type with the judge of its schema.
func FuzzAgree(f *testing.F) {
	all := subjects(f)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		for range 40 {
			seed := make([]byte, 1+random.IntN(120))
			for j := range seed {
				seed[j] = byte(random.Uint32())
			}
			f.Add(byte(i), seed)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		s := all[int(which)%len(all)]
		e := entropy{data}
		doc := e.document(nil, s.schema.root, 0)
		if err := strictjson.Check(doc, 128); err != nil {
			return // a name twice
		}
		s.compare(t, doc)
	})
}

// FuzzText compares them on arbitrary JSON.
func FuzzText(f *testing.F) {
	all := subjects(f)
	for _, s := range []string{searchDoc, `{"name":"a","kids":[{"name":"b","kids":[],"next":null}]}`, `{"a":["d",null]}`, `{"text":"\ud83d\ude00","keys":{"-1":true},"inner":{"a":1e0}}`, `[{"first":"red","second":null,"more":null}]`, ` { "a" : 1 , "B" : [ ] } `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strictjson.Check([]byte(text), 64) != nil {
			return
		}
		for _, s := range all {
			s.compare(t, []byte(text))
		}
	})
}

// values makes random values of types without methods.
type values struct{ *rand.Rand }

func (r values) fill(v reflect.Value, depth int) {
	if ref, ok := r.known(v.Type()); ok {
		v.Set(ref.Convert(v.Type()))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 1)
	case reflect.String:
		v.SetString([]string{"", "a", "é\u2028\"\\", "😀", "a\xffb"}[r.IntN(5)])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(r.Uint64() >> r.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{0, math.Copysign(0, -1), 1.5, 1e21, 1e-7, -3.25e38, r.NormFloat64()}[r.IntN(7)])
	case reflect.Pointer:
		if depth < 6 && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < 6 && r.IntN(4) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			r.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth < 6 && r.IntN(4) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				r.fill(key, depth+1)
				r.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				r.fill(v.Field(i), depth+1)
			} else if v.Type().Field(i).Anonymous && v.Field(i).Kind() == reflect.Struct {
				r.fill(v.Field(i), depth+1)
			}
		}
	}
}

func (r values) known(t reflect.Type) (reflect.Value, bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return reflect.ValueOf([]time.Time{{}, time.Date(2026, 7, 28, 1, 2, 3, 4, time.UTC), time.Date(2026, 7, 28, 1, 2, 3, 0, time.FixedZone("", -5400))}[r.IntN(3)]), true
	case reflect.TypeFor[json.Number]():
		return reflect.ValueOf([]json.Number{"", "12", "-1.5e400"}[r.IntN(3)]), true
	case reflect.TypeFor[json.RawMessage]():
		return reflect.ValueOf([]json.RawMessage{nil, json.RawMessage(`{"a":[1]}`)}[r.IntN(2)]), true
	case reflect.TypeFor[any]():
		return reflect.ValueOf([]any{1, "a", map[string]any{"b": nil}, []any{}}[r.IntN(4)]), true
	case reflect.TypeFor[color]():
		return reflect.ValueOf([]color{"red", "blue"}[r.IntN(2)]), true
	case reflect.TypeFor[shade]():
		return reflect.ValueOf([]shade{"d", "l"}[r.IntN(2)]), true
	case reflect.TypeFor[netip.Addr]():
		return reflect.ValueOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(256))})), true
	}
	return reflect.Value{}, false
}

// randomType makes a type out of all that has a JSON form.
func (r values) randomType(depth int) reflect.Type {
	leaves := []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int64](),
		reflect.TypeFor[uint8](), reflect.TypeFor[uint](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[[]byte](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](),
		reflect.TypeFor[any](), reflect.TypeFor[color](), reflect.TypeFor[shade](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[tree](), reflect.TypeFor[list](), reflect.TypeFor[deepBase](),
	}
	if depth > 3 || r.IntN(3) > 0 {
		return leaves[r.IntN(len(leaves))]
	}
	switch r.IntN(5) {
	case 0:
		return reflect.PointerTo(r.randomType(depth + 1))
	case 1:
		return reflect.SliceOf(r.randomType(depth + 1))
	case 2:
		return reflect.ArrayOf(r.IntN(3), r.randomType(depth+1))
	case 3:
		keys := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](), reflect.TypeFor[color](), reflect.TypeFor[netip.Addr]()}
		return reflect.MapOf(keys[r.IntN(len(keys))], r.randomType(depth+1))
	}
	return r.randomStruct(depth + 1)
}

func (r values) randomStruct(depth int) reflect.Type {
	fields := make([]reflect.StructField, r.IntN(6))
	for i := range fields {
		f := &fields[i]
		f.Name, f.Type = fmt.Sprintf("F%d", i), r.randomType(depth)
		options := []string{"", ",omitempty", ",omitzero", ",omitempty,omitzero"}[r.IntN(4)]
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if k := kind.Kind(); (k == reflect.Bool || k >= reflect.Int && k <= reflect.Float64) && r.IntN(3) == 0 {
			options += ",string"
		}
		f.Tag = reflect.StructTag(fmt.Sprintf(`json:"%s%s"`, []string{"", "f" + fmt.Sprint(i), "ö/~" + fmt.Sprint(i)}[r.IntN(3)], options))
	}
	return reflect.StructOf(fields)
}

// Whatever Marshal writes of a value is valid by the type's output schema (F-09, B-30),
// by both validators and the judge.
func TestWhatMarshalWritesIsValid(t *testing.T) {
	r := values{rand.New(rand.NewPCG(3, 4))}
	for range 1500 {
		typ := r.randomType(0)
		s := newSubject(t, typ, Options{Output: true})
		for range 6 {
			v := reflect.New(typ)
			r.fill(v.Elem(), 0)
			value := v.Interface() // addressable or not makes a difference to methods
			if r.IntN(2) == 0 {
				value = v.Elem().Interface()
			}
			text, err := strictjson.Marshal(value)
			if err != nil {
				t.Fatalf("%v: %v", typ, err)
			}
			out, violations := s.fast.Validate(text)
			if violations != nil || string(out) != string(text) {
				t.Fatalf("%v\n%s\n%s\n%q", typ, s.schema.AppendJSON(nil), text, texts(violations))
			}
			if accepted, why := s.judge.accepts(t, text); !accepted {
				t.Fatalf("judge: %v\n%s\n%s\n%v", typ, s.text, text, why)
			}
			agree(t, s.text, s.compiled, s.judge, text)
		}
	}
}

// The validators agree on documents near to random types, and what they accept
// decodes into the type.
func TestAgreementOnRandomTypes(t *testing.T) {
	r := values{rand.New(rand.NewPCG(5, 6))}
	accepted := 0
	for range 1500 {
		s := newSubject(t, r.randomStruct(0), Options{})
		for range 8 {
			data := make([]byte, 200)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			e := entropy{data}
			doc := e.document(nil, s.schema.root, 0)
			if strictjson.Check(doc, 128) != nil {
				continue
			}
			if _, violations := s.fast.Validate(doc); violations == nil {
				accepted++
			}
			s.compare(t, doc)
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d documents were right: the test shows little", accepted)
	}
}
