package schema

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

type pointerLoop *pointerLoop

type hiddenBase struct{ X int }

type noChoices string

// ofField is Of for a struct with the one field F.
func ofField(t reflect.Type, tag reflect.StructTag, o Options) error {
	_, err := Of(reflect.StructOf([]reflect.StructField{{Name: "F", Type: t, Tag: tag}}), o)
	return err
}

// Each error names the field and what is allowed.
func TestTagErrors(t *testing.T) {
	str, num, flt, boolean := reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[float64](), reflect.TypeFor[bool]()
	for _, c := range []struct {
		t    reflect.Type
		tag  reflect.StructTag
		want string
	}{
		{str, `minimum:"1"`, "tags minimum and maximum are for integers and numbers, not for a string"},
		{boolean, `maximum:"1"`, "not for a boolean"},
		{num, `minLength:"1"`, "tags minLength, maxLength, pattern and format are for strings, not for an integer"},
		{num, `pattern:"a"`, "not for an integer"},
		{reflect.TypeFor[time.Time](), `format:"date"`, "not for a time"},
		{reflect.TypeFor[[]byte](), `maxLength:"3"`, "not for bytes"},
		{reflect.TypeFor[color](), `minLength:"3"`, "not for a type with choices"},
		{num, `json:",string" minimum:"3"`, "not for a number or boolean written as a string"},
		{str, `minItems:"1"`, "tags minItems and maxItems are for slices, not for a string"},
		{reflect.TypeFor[[2]int](), `minItems:"1"`, "not for an array of fixed length"},
		{reflect.TypeFor[map[string]int](), `minimum:"1"`, "not for a map"},
		{reflect.TypeFor[any](), `enum:"a"`, "tag enum is for strings, integers and numbers, not for a value of any type"},
		{boolean, `enum:"true"`, "not for a boolean"},
		{reflect.TypeFor[color](), `enum:"red"`, "not for a type with choices"},
		{reflect.TypeFor[struct{ A int }](), `enum:"1"`, "not for an object"},
		{reflect.TypeFor[[]tree](), `minLength:"1"`, "not for a recursive type"},

		{num, `minimum:"x"`, `tag minimum: "x" is not an integer`},
		{num, `minimum:"1.5"`, `tag minimum: "1.5" is not an integer`},
		{num, `maximum:"1e2"`, `tag maximum: "1e2" is not an integer`},
		{reflect.TypeFor[uint8](), `maximum:"300"`, "tag maximum: 300 is outside 0 to 255, the range of the field"},
		{reflect.TypeFor[uint](), `minimum:"-1"`, "tag minimum: -1 is outside 0 to"},
		{num, `minimum:"5" maximum:"3"`, "minimum 5 is more than maximum 3"},
		{flt, `minimum:"0x1"`, `tag minimum: "0x1" is not a number`},
		{flt, `minimum:"1e1" maximum:"9.99"`, "minimum 1e1 is more than maximum 9.99"},
		{str, `minLength:"-1"`, `tag minLength: "-1" is not a whole number from 0 to`},
		{str, `minLength:"3" maxLength:"2"`, "minLength 3 is more than maxLength 2"},
		{reflect.TypeFor[[]int](), `minItems:"3" maxItems:"2"`, "minItems 3 is more than maxItems 2"},
		{reflect.TypeFor[[]int](), `maxItems:"many"`, `tag maxItems: "many" is not a whole number`},
		{str, `pattern:"("`, "tag pattern: not a regular expression in RE2 syntax"},
		{str, `pattern:"(?=a)"`, "RE2 syntax"},
		{str, `format:"phone"`, `tag format: "phone" is unknown; allowed are date, date-time`},
		{str, `enum:"a,,b"`, `tag enum: "a,,b" has an empty value`},
		{str, `enum:"a,b,a"`, `tag enum: "a" is there twice`},
		{num, `enum:"1,x"`, `tag enum: "x" is not an integer from`},
		{reflect.TypeFor[int8](), `enum:"1,200"`, `tag enum: "200" is not an integer from -128 to 127`},
		{flt, `enum:"1,1e999"`, `tag enum: "1e999" is not a number`},

		{num, `default:"x"`, `tag default: an integer is needed, as JSON, and "x" is none`},
		{num, `default:"1.5"`, `tag default: "1.5" breaks the field's own rules: must be an integer`},
		{num, `default:"0" minimum:"1"`, `tag default: "0" breaks the field's own rules: must be at least 1`},
		{reflect.TypeFor[uint8](), `default:"256"`, "must be at most 255"},
		{str, `default:"abc" maxLength:"2"`, "must have at most 2 characters, has 3"},
		{str, `default:"b" pattern:"^a"`, "must match the pattern ^a"},
		{str, `default:"c" enum:"a,b"`, `must be one of "a", "b"`},
		{reflect.TypeFor[color](), `default:"green"`, `must be one of "red", "blue"`},
		{boolean, `default:"yes"`, "a boolean is needed"},
		{boolean, `default:"1"`, "must be a boolean, not a number"},
		{reflect.TypeFor[[]string](), `default:"a,b"`, "a slice is needed, as JSON"},
		{reflect.TypeFor[[]string](), `default:"[1]"`, "/0: must be a string, not a number"},
		{reflect.TypeFor[time.Time](), `default:"now"`, "must be a valid date-time"},
		{reflect.TypeFor[*int](), `default:"\"a\""`, "must be an integer or null, not a string"},

		{str, `json:"a,omitEmpty"`, `unknown json option "omitEmpty"; allowed are omitempty, omitzero, string`},
		{str, `json:"a,format:hex"`, `unknown json option "format:hex"`},
		{reflect.TypeFor[map[string]int](), `json:",embed"`, `unknown json option "embed"`},
		{str, `json:",string"`, "the json option string is for integers, floats and booleans, not for string"},
		{reflect.TypeFor[**int](), `json:",string"`, "does not reach through two pointers"},
		{reflect.TypeFor[json.Number](), `json:",string"`, "not for json.Number"},
		{reflect.TypeFor[[]int](), `json:",string"`, "not for []int"},
		{str, `json:"it's"`, "has a quote, backslash, control character"},
		{str, `json:"a\\b"`, "has a quote, backslash, control character"},

		{str, `minlength:"1"`, "unknown tag minlength; did you mean minLength?"},
		{str, `Enum:"a"`, "unknown tag Enum; did you mean enum?"},
		{str, `jsonschema:"required,minLength=3"`, `tag jsonschema is the description and cannot begin with "required,minLength="; constraints have tags of their own`},
		{str, `jsonschema:description`, "malformed struct tag at jsonschema:description"},
		{str, `json:"a" enum`, "malformed struct tag at enum"},
		{str, `json:"a`, "the value of json has no closing quote"},
		{str, `enum:"\q"`, "the value of enum is not a Go string"},
		{str, `enum:"a" enum:"b"`, "tag enum is there twice"},

		{str, `header:""`, "tag header: the name is empty (M-15)"},
		{str, `header:"a b"`, `tag header: "a b" has a character that no header name has`},
		{str, `header:"é"`, "has a character that no header name has"},
		{flt, `header:"N"`, "tag header is for strings, integers and booleans, not for a number (M-16)"},
		{reflect.TypeFor[*string](), `header:"N"`, "not for a pointer (M-16)"},
		{reflect.TypeFor[[]string](), `header:"N"`, "not for a slice (M-16)"},
		{num, `header:"N" maximum:"9007199254740992"`, "outside -9007199254740991 to 9007199254740991"},
	} {
		t.Run(fmt.Sprintf("%v %s", c.t, c.tag), func(t *testing.T) {
			err := ofField(c.t, c.tag, Options{EnumOf: enumOf})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), ".F: ") {
				t.Errorf("got error %v, want one with %q and the field", err, c.want)
			}
		})
	}
}

func TestTypeErrors(t *testing.T) {
	of := func(t reflect.Type, output bool) error {
		_, err := Of(t, Options{Output: output, EnumOf: func(t reflect.Type) ([]Choice, bool) {
			return nil, t == reflect.TypeFor[noChoices]()
		}})
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"root string (F-06)", of(reflect.TypeFor[string](), false), "string: the arguments of a tool are one JSON object: use a struct or a map with string keys"},
		{"root slice", of(reflect.TypeFor[[]int](), false), "one JSON object"},
		{"root pointer", of(reflect.TypeFor[*struct{}](), false), "one JSON object"},
		{"root map with integer keys", of(reflect.TypeFor[map[int]int](), false), "one JSON object"},
		{"root time", of(reflect.TypeFor[time.Time](), false), "one JSON object"},
		{"root any", of(reflect.TypeFor[any](), false), "one JSON object"},
		{"root that decodes itself", of(reflect.TypeFor[struct{ time.Time }](), false), "the type's own UnmarshalJSON or UnmarshalText hides"},
		{"chan", of(reflect.TypeFor[struct{ A struct{ B chan int } }](), false), ".A.B: type chan int has no JSON form"},
		{"func", of(reflect.TypeFor[struct{ A []func() }](), true), ".A.[]: type func() has no JSON form"},
		{"complex", of(reflect.TypeFor[struct{ A map[string]complex64 }](), true), ".A.[key]: type complex64 has no JSON form"},
		{"interface", of(reflect.TypeFor[struct{ A io.Reader }](), false), ".A: no value can be decoded into the interface io.Reader"},
		{"map key", of(reflect.TypeFor[struct{ A map[float64]int }](), true), ".A: map keys of type float64 have no JSON form; allowed are strings, integers and types with text methods"},
		{"map key bool", of(reflect.TypeFor[struct{ A map[bool]int }](), false), "map keys of type bool"},
		{"map key json.Number", of(reflect.TypeFor[struct{ A map[json.Number]int }](), false), "map keys of type json.Number"},
		{"map key struct", of(reflect.TypeFor[struct{ A map[struct{}]int }](), false), "map keys of type struct {}"},
		{"endless pointer", of(reflect.TypeFor[struct{ A pointerLoop }](), false), "more levels of pointers"},
		{"no choices", of(reflect.TypeFor[struct{ A noChoices }](), false), "schema.noChoices has no choices"},
		{"embedded pointer to unexported", of(reflect.TypeFor[struct{ *hiddenBase }](), false), ".hiddenBase: an embedded pointer to an unexported struct cannot be decoded"},
		{"embedded unexported with a name", of(reflect.TypeFor[struct {
			hiddenBase `json:"x"`
		}](), false), "give the field a name"},
		{"embedded with tags", of(reflect.TypeFor[struct {
			Ptr `jsonschema:"x"`
		}](), false), ".Ptr: an embedded struct is no property, so it cannot have tags"},
		{"unexported with tags", of(reflect.StructOf([]reflect.StructField{{Name: "a", PkgPath: "x", Type: reflect.TypeFor[int](), Tag: `json:"a"`}}), false), ".a: the field is not exported"},
		{"one name twice", of(reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int]()}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"A"`}}), false), `.B: the property "A" is also that of field A`},
		{"header in a slice (M-17)", of(reflect.TypeFor[struct {
			A []struct {
				B string `header:"B"`
			}
		}](), false), ".A.[].B: tag header is only for parameters that properties alone lead to"},
		{"header in a map", of(reflect.TypeFor[struct {
			A map[string]struct {
				B string `header:"B"`
			}
		}](), false), ".A.[key].B: tag header is only"},
		{"header in a recursive type", of(reflect.TypeFor[withHeader](), false), ".Name: tag header is only"},
		{"header twice (M-15)", of(reflect.TypeFor[struct {
			A string `header:"Region"`
			B struct {
				C string `header:"REGION"`
			}
		}](), false), `"REGION" is the name at both /A and /B/C`},
		{"unfolds without end", of(unfolding(14), false), "more than 10000 fields and items when written out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", c.err, c.want)
			}
		})
	}
}

type withHeader struct {
	Name string `header:"Name"`
	Kids []withHeader
}

// unfolding is a struct that holds two of a struct that holds two of … n levels down.
func unfolding(n int) reflect.Type {
	t := reflect.TypeFor[int]()
	for range n {
		t = reflect.StructOf([]reflect.StructField{{Name: "A", Type: t}, {Name: "B", Type: t}})
	}
	return t
}

func TestEveryErrorIsReported(t *testing.T) {
	type in struct {
		A string `minimum:"1" minItems:"2"`
		B int    `format:"date" default:"x"`
		C chan int
	}
	_, err := Of(reflect.TypeFor[in](), Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"in.A: tags minItems", "in.A: tags minimum", "in.B: tags minLength", "in.C: type chan int"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// Tags of other packages are none of this one's business.
func TestForeignTags(t *testing.T) {
	if err := ofField(reflect.TypeFor[string](), `yaml:"a,omitempty" validate:"required" db:"x"  xml:"y"`, Options{}); err != nil {
		t.Error(err)
	}
}

func TestHeadersOfType(t *testing.T) {
	type in struct {
		Region string `json:"region" header:"Region"`
		Inner  struct {
			N    uint8 `json:"n/1" header:"X-N"`
			Flag *struct {
				On bool `json:"on" header:"On"`
			} `json:"flag"`
		} `json:"inner"`
		When time.Time `header:"When"`
		ID   int64     `json:",string" header:"Id"`
	}
	got := mustOf(t, reflect.TypeFor[in](), Options{}).Headers()
	want := []Header{
		{"Region", []string{"region"}, KindString},
		{"X-N", []string{"inner", "n/1"}, KindInteger},
		{"On", []string{"inner", "flag", "on"}, KindBoolean},
		{"When", []string{"When"}, KindString},
		{"Id", []string{"ID"}, KindString},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	s := mustOf(t, reflect.TypeFor[in](), Options{}).AppendJSON(nil)
	again, err := HeadersOf(s)
	if err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("from its own text: %v, %v", again, err)
	}
}
