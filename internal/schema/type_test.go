package schema

import (
	"encoding"
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

type color string

type shade string

func enumOf(t reflect.Type) ([]Choice, bool) {
	switch t {
	case reflect.TypeFor[color]():
		return []Choice{{Value: "red"}, {Value: "blue"}}, true
	case reflect.TypeFor[shade]():
		return []Choice{{"d", "Dark"}, {"l", ""}}, true
	}
	return nil, false
}

type base struct {
	ID   string `json:"id"`
	Note string `json:"note,omitempty"`
}

type deepBase struct {
	base
	Deep int `json:"deep"`
}

type Ptr struct {
	P int `json:"p"`
}

type tree struct {
	Name string  `json:"name"`
	Kids []*tree `json:"kids"`
	Next *tree   `json:"next"`
}

type list []list

type nested map[string]nested

// temperature encodes itself as JSON, celsius as text, kelvin as text by pointer.
type temperature float64

func (temperature) MarshalJSON() ([]byte, error)  { return []byte(`"warm"`), nil }
func (*temperature) UnmarshalJSON(b []byte) error { return nil }

type celsius int

func (celsius) MarshalText() ([]byte, error)  { return []byte("21C"), nil }
func (*celsius) UnmarshalText(b []byte) error { return nil }

type kelvin int

func (*kelvin) MarshalText() ([]byte, error) { return []byte("300K"), nil }

type pair[A, B any] struct {
	First  A           `json:"first"`
	Second B           `json:"second"`
	More   *pair[A, B] `json:"more"`
}

func schemaOf[T any](t *testing.T, output bool) string {
	t.Helper()
	return string(mustOf(t, reflect.TypeFor[T](), Options{Output: output, EnumOf: enumOf}).AppendJSON(nil))
}

func object(required, properties string) string {
	s := `{"type":"object","properties":{` + properties + `},`
	if required != "" {
		s += `"required":[` + required + `],`
	}
	return s + `"additionalProperties":false}`
}

func TestInputSchema(t *testing.T) {
	for _, c := range []struct {
		name, got, want string
	}{
		{"no parameters (F-06)", schemaOf[struct{}](t, false), `{"type":"object","additionalProperties":false}`},
		{"fields in order", schemaOf[struct {
			B, A string
			C    bool `json:"c"`
		}](t, false), object(`"B","A","c"`, `"B":{"type":"string"},"A":{"type":"string"},"c":{"type":"boolean"}`)},
		{"required and optional", schemaOf[struct {
			A string  `json:"a"`
			B string  `json:"b,omitempty"`
			C string  `json:"c,omitzero"`
			D *string `json:"d"`
			E int     `json:"e" default:"3"`
			F any     `json:"f"`
		}](t, false), object(`"a","f"`, `"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":["string","null"]},"e":{"type":"integer","default":3},"f":{}`)},
		{"names", schemaOf[struct {
			Skip   string `json:"-"`
			hidden string
			Plain  int `json:",omitempty"`
			Other  int `json:"a b/c~é"`
		}](t, false), object(`"a b/c~é"`, `"Plain":{"type":"integer"},"a b/c~é":{"type":"integer"}`)},
		{"embedding", schemaOf[struct {
			deepBase
			*Ptr
			Note int `json:"note"`
		}](t, false), object(`"id","deep","note"`, `"id":{"type":"string"},"deep":{"type":"integer"},"p":{"type":"integer"},"note":{"type":"integer"}`)},
		{"embedding with a name", schemaOf[struct {
			Ptr `json:"inner"`
		}](t, false), object(`"inner"`, `"inner":`+object(`"p"`, `"p":{"type":"integer"}`))},
		{"integers", schemaOf[struct {
			A int8
			B int16
			C int32
			D int64
			E int
			F uint8
			G uint16
			H uint32
			I uint64
			J uint
		}](t, false), object(`"A","B","C","D","E","F","G","H","I","J"`, `"A":{"type":"integer","minimum":-128,"maximum":127},"B":{"type":"integer","minimum":-32768,"maximum":32767},"C":{"type":"integer","minimum":-2147483648,"maximum":2147483647},"D":{"type":"integer"},"E":{"type":"integer"},"F":{"type":"integer","minimum":0,"maximum":255},"G":{"type":"integer","minimum":0,"maximum":65535},"H":{"type":"integer","minimum":0,"maximum":4294967295},"I":{"type":"integer","minimum":0},"J":{"type":"integer","minimum":0}`)},
		{"other kinds", schemaOf[struct {
			A float32
			B json.Number
			C []byte
			D time.Time
			E time.Duration
			F time.Duration `jsonschema:"how long"`
			G json.RawMessage
			H [2]bool
			I [3]byte
		}](t, false), object(`"A","B","C","D","E","F","G","H","I"`, `"A":{"type":"number"},"B":{"type":"number"},"C":{"type":"string","contentEncoding":"base64"},"D":{"type":"string","format":"date-time"},"E":{"type":"integer","description":"duration in nanoseconds"},"F":{"type":"integer","description":"how long"},"G":{},"H":{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2},"I":{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":3,"maxItems":3}`)},
		{"pointers", schemaOf[struct {
			A *int
			B **bool
			C *time.Time
			D *[]string
			E *color
			F *shade
			G *any
			H []*int
		}](t, false), object(`"H"`, `"A":{"type":["integer","null"]},"B":{"type":["boolean","null"]},"C":{"type":["string","null"],"format":"date-time"},"D":{"type":["array","null"],"items":{"type":"string"}},"E":{"type":["string","null"],"enum":["red","blue",null]},"F":{"type":["string","null"],"oneOf":[{"const":"d","title":"Dark"},{"const":"l"},{"type":"null"}]},"G":{},"H":{"type":"array","items":{"type":["integer","null"]}}`)},
		{"choices", schemaOf[struct {
			A color   `json:"a"`
			B shade   `json:"b"`
			C []color `json:"c"`
			D color   `json:"d" default:"red"`
		}](t, false), object(`"a","b","c"`, `"a":{"type":"string","enum":["red","blue"]},"b":{"type":"string","oneOf":[{"const":"d","title":"Dark"},{"const":"l"}]},"c":{"type":"array","items":{"type":"string","enum":["red","blue"]}},"d":{"type":"string","enum":["red","blue"],"default":"red"}`)},
		{"numbers as strings", schemaOf[struct {
			A int64    `json:",string"`
			B uint8    `json:",string"`
			C float64  `json:",string"`
			D bool     `json:",string"`
			E *float32 `json:",string"`
			F *bool    `json:",string"`
		}](t, false), object(`"A","B","C","D"`, `"A":{"type":"string","pattern":"^(0|-?[1-9][0-9]*)$"},"B":{"type":"string","pattern":"^(0|[1-9][0-9]*)$"},"C":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},"D":{"type":"string","enum":["true","false"]},"E":{"type":["string","null"],"pattern":"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"},"F":{"type":["string","null"],"enum":["true","false",null]}`)},
		{"maps", schemaOf[struct {
			A map[string]int
			B map[int8]bool
			C map[uint]bool
			D map[netip.Addr]bool
			E map[color]bool
		}](t, false), object(`"A","B","C","D","E"`, `"A":{"type":"object","additionalProperties":{"type":"integer"}},"B":{"type":"object","propertyNames":{"pattern":"^(0|-?[1-9][0-9]*)$"},"additionalProperties":{"type":"boolean"}},"C":{"type":"object","propertyNames":{"pattern":"^(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"boolean"}},"D":{"type":"object","additionalProperties":{"type":"boolean"}},"E":{"type":"object","propertyNames":{"enum":["red","blue"]},"additionalProperties":{"type":"boolean"}}`)},
		{"map as root", schemaOf[map[string]any](t, false), `{"type":"object","additionalProperties":{}}`},
		{"methods", schemaOf[struct {
			A temperature
			B celsius
			C kelvin // cannot read itself
			D netip.Addr
			E *big.Int
			F []temperature
		}](t, false), object(`"A","B","C","D","F"`, `"A":{},"B":{"type":"string"},"C":{"type":"integer"},"D":{"type":"string"},"E":{},"F":{"type":"array","items":{}}`)},
		{"tags", schemaOf[struct {
			A string   `json:"a" jsonschema:"say \"hi\"" minLength:"1" maxLength:"5" pattern:"^\\w+$"`
			B string   `json:"b" format:"email" default:"a@b"`
			C int      `json:"c" minimum:"-3" maximum:"10" default:"5"`
			D float64  `json:"d" minimum:"0.1" maximum:"1e3"`
			E string   `json:"e" enum:"x, y"`
			F int      `json:"f" enum:"1,-2"`
			G float64  `json:"g" enum:"0.5,1e2"`
			H []string `json:"h" enum:"x,y" minItems:"1" maxItems:"2" default:"[\"x\"]"`
			I []string `json:"i" minLength:"2" pattern:"a" format:"uri"`
			J [][]int  `json:"j" minimum:"1" minItems:"1"`
			K bool     `json:"k" default:"true"`
		}](t, false), object(`"a","d","e","f","g","i","j"`, `"a":{"type":"string","description":"say \"hi\"","pattern":"^\\w+$","minLength":1,"maxLength":5},"b":{"type":"string","format":"email","default":"a@b"},"c":{"type":"integer","minimum":-3,"maximum":10,"default":5},"d":{"type":"number","minimum":0.1,"maximum":1e3},"e":{"type":"string","enum":["x","y"]},"f":{"type":"integer","enum":[1,-2]},"g":{"type":"number","enum":[0.5,1e2]},"h":{"type":"array","items":{"type":"string","enum":["x","y"]},"minItems":1,"maxItems":2,"default":["x"]},"i":{"type":"array","items":{"type":"string","format":"uri","pattern":"a","minLength":2}},"j":{"type":"array","items":{"type":"array","items":{"type":"integer","minimum":1}},"minItems":1},"k":{"type":"boolean","default":true}`)},
		{"headers (M-14)", schemaOf[struct {
			Region string `json:"region" header:"Region" enum:"a,b"`
			Inner  struct {
				N int64 `json:"n" header:"x-n"`
			} `json:"inner"`
		}](t, false), object(`"region","inner"`, `"region":{"type":"string","enum":["a","b"],"x-mcp-header":"Region"},"inner":`+object(`"n"`, `"n":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991,"x-mcp-header":"x-n"}`))},
		{"recursive root", schemaOf[tree](t, false), object(`"name","kids"`, `"name":{"type":"string"},"kids":{"type":"array","items":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}`)},
		{"recursion below the root", schemaOf[struct {
			A tree   `json:"a" jsonschema:"first"`
			B *tree  `json:"b"`
			C list   `json:"c"`
			D nested `json:"d"`
		}](t, false), strings.TrimSuffix(object(`"a","c","d"`, `"a":{"$ref":"#/$defs/tree","description":"first"},"b":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"c":{"$ref":"#/$defs/list"},"d":{"$ref":"#/$defs/nested"}`), "}") +
			`,"$defs":{"tree":` + object(`"name","kids"`, `"name":{"type":"string"},"kids":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"next":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}`) +
			`,"list":{"type":"array","items":{"$ref":"#/$defs/list"}},"nested":{"type":"object","additionalProperties":{"$ref":"#/$defs/nested"}}}}`},
		{"names of generic types", schemaOf[struct {
			A pair[int, string] `json:"a"`
			B pair[int, []bool] `json:"b"`
		}](t, false), strings.TrimSuffix(object(`"a","b"`, `"a":{"$ref":"#/$defs/pair_int_string_"},"b":{"$ref":"#/$defs/pair_int___bool_"}`), "}") +
			`,"$defs":{"pair_int_string_":` + object(`"first","second"`, `"first":{"type":"integer"},"second":{"type":"string"},"more":{"anyOf":[{"$ref":"#/$defs/pair_int_string_"},{"type":"null"}]}`) +
			`,"pair_int___bool_":` + object(`"first","second"`, `"first":{"type":"integer"},"second":{"type":"array","items":{"type":"boolean"}},"more":{"anyOf":[{"$ref":"#/$defs/pair_int___bool_"},{"type":"null"}]}`) + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got  %s\nwant %s", c.got, c.want)
			}
			// The library checks it against the meta-schema of 2020-12 (F-23).
			if _, err := Compile([]byte(c.got)); err != nil {
				t.Error(err)
			}
			if err := CheckInputRoot([]byte(c.got)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Roots may be anything (F-08), and what Marshal always writes is required.
func TestOutputSchema(t *testing.T) {
	for _, c := range []struct {
		name, got, want string
	}{
		{"string", schemaOf[string](t, true), `{"type":"string"}`},
		{"slice", schemaOf[[]int](t, true), `{"type":"array","items":{"type":"integer"}}`},
		{"pointer", schemaOf[*bool](t, true), `{"type":["boolean","null"]}`},
		{"any", schemaOf[any](t, true), `{}`},
		{"recursive", schemaOf[list](t, true), `{"type":"array","items":{"$ref":"#"}}`},
		{"pointer to recursive", schemaOf[*list](t, true), `{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}],"$defs":{"list":{"type":"array","items":{"$ref":"#/$defs/list"}}}}`},
		{"time", schemaOf[time.Time](t, true), `{"type":"string","format":"date-time"}`},
		{"interface with methods", schemaOf[encoding.TextMarshaler](t, true), `{}`},
		{"required", schemaOf[struct {
			A *int   `json:"a"`
			B *int   `json:"b,omitempty"`
			C string `json:"c" default:"x"`
			D string `json:"d,omitzero"`
			*Ptr
		}](t, true), object(`"a","c"`, `"a":{"type":["integer","null"]},"b":{"type":["integer","null"]},"c":{"type":"string","default":"x"},"d":{"type":"string"},"p":{"type":"integer"}`)},
		{"methods", schemaOf[struct {
			A temperature
			B celsius
			C kelvin // as text only where it is addressable
			D *big.Int
			E map[celsius]int
			F []celsius
		}](t, true), object(`"A","B","C","D","E","F"`, `"A":{},"B":{"type":"string"},"C":{},"D":{},"E":{"type":"object","additionalProperties":{"type":"integer"}},"F":{"type":"array","items":{"type":"string"}}`)},
		{"headers mean nothing", schemaOf[struct {
			A string `header:"A"`
		}](t, true), object(`"A"`, `"A":{"type":"string"}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got  %s\nwant %s", c.got, c.want)
			}
			if _, err := Compile([]byte(c.got)); err != nil {
				t.Error(err)
			}
		})
	}
}

type (
	A1 struct{ Same, OnlyA string }
	B1 struct{ Same, OnlyB string }
	C1 struct {
		OnlyC string
		Named string `json:"Same"`
	}
	Root2  struct{ Deep, Base string }
	Left   struct{ Root2 }
	Right  struct{ Root2 }
	Deeper struct {
		Left
		Deep int
	}
	Loop struct {
		*Loop
		Own string
	}
	unexported struct{ Shown string }
)

// Go's rules of dominance: the least depth, then the tagged one, then none. The encoder
// is the judge: it writes the properties of the schema, in their order.
func TestDominance(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  []string
	}{
		{"two at one depth cancel", struct {
			A1
			B1
		}{}, []string{"OnlyA", "OnlyB"}},
		{"the tagged one of two", struct {
			A1
			C1
		}{}, []string{"OnlyA", "OnlyC", "Same"}},
		{"the outer one", struct {
			A1
			B1
			Same int
		}{}, []string{"OnlyA", "OnlyB", "Same"}},
		{"one struct by two ways cancels", struct {
			Left
			Right
		}{}, nil},
		{"the less deep one", struct {
			Deeper
			Right
			Last bool
		}{}, []string{"Deep", "Base", "Last"}},
		{"a loop", Loop{Loop: &Loop{}}, []string{"Own"}},
		{"an unexported struct", struct {
			First int
			unexported
		}{}, []string{"First", "Shown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, output := range []bool{false, true} {
				s := mustOf(t, reflect.TypeOf(c.value), Options{Output: output})
				if got := s.resolved().root.names(); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
					t.Errorf("properties %q, want %q", got, c.want)
				}
			}
			text, err := strictjson.Marshal(c.value)
			if err != nil {
				t.Fatal(err)
			}
			var written []string
			for name := range strictjson.Members(text) {
				written = append(written, string(name))
			}
			if !slices.Equal(written, c.want) {
				t.Errorf("the encoder writes %q", written)
			}
		})
	}
}

// encoding/json has it that "-," is the name "-".
func TestDashAsName(t *testing.T) {
	in := reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeFor[int](), Tag: `json:"-,"`}})
	want := object(`"-"`, `"-":{"type":"integer"}`)
	if got := string(mustOf(t, in, Options{}).AppendJSON(nil)); got != want {
		t.Errorf("got %s", got)
	}
	v := reflect.New(in)
	if err := strictjson.Unmarshal([]byte(`{"-":3}`), v.Interface()); err != nil || v.Elem().Field(0).Int() != 3 {
		t.Errorf("the decoder reads %v, %v", v.Elem(), err)
	}
}

func TestTextIsDeterministic(t *testing.T) {
	first := schemaOf[searchIn](t, false)
	for range 20 {
		if again := schemaOf[searchIn](t, false); again != first {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

// Walks share memory, one after the other and never two at once; a faulty type leaves
// nothing behind for the next.
func TestWalksShareNothingButMemory(t *testing.T) {
	type faulty struct {
		Tree  tree              `json:"tree" minLength:"1"`
		Count int               `json:"count" default:"x" maximum:"5"`
		Of    map[string]string `json:"of" enum:"a"`
	}
	types := []reflect.Type{reflect.TypeFor[everything](), reflect.TypeFor[searchIn](), reflect.TypeFor[tree](), reflect.TypeFor[deepBase]()}
	want := make([]string, len(types))
	for i, typ := range types {
		var w walk
		fresh := &Type{t: typ, options: Options{EnumOf: enumOf}}
		if w.of(typ, fresh.options); len(w.errs) > 0 {
			t.Fatal(w.errs)
		}
		want[i] = string(fresh.AppendJSON(nil))
	}
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			for n := range 50 {
				if _, err := Of(reflect.TypeFor[faulty](), Options{}); err == nil || strings.Count(err.Error(), "\n") != 1 {
					t.Errorf("faulty: %v", err)
				}
				i := (g + n) % len(types)
				s, err := Of(types[i], Options{EnumOf: enumOf})
				if err != nil {
					t.Error(err)
				} else if got := string(s.AppendJSON(nil)); got != want[i] {
					t.Errorf("%v: %s, want %s", types[i], got, want[i])
				}
			}
		})
	}
	wait.Wait()
}
