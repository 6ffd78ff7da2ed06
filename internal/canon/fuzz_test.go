package canon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

var fuzzSeeds = []string{
	`{"files":["a.txt","b.txt","c/d.txt"],"dry_run":false,"limit":42,"note":"émile"}`,
	`[1,1.0,1e0,10e-1,-0,0.00,1E+2,9007199254740993,123.4500e-3]`,
	`{"b":{"d":1,"c":[{}]},"a":"\u00e9\ud83d\ude00\u0000\"\\\/"}`,
	`[[],{},"",null,true,false,[[[{"a":{}}]]]]`,
	`1e9223372036854775807`, `1e-9223372036854775809`, `-1`, `"x"`, `{"a":null}`, `{}`,
	`{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `{} {}`, `[`,
}

// FuzzDigest compares two texts' digests with whether they are equal values, as judged by
// package big and encoding/json.
func FuzzDigest(f *testing.F) {
	for i, a := range fuzzSeeds {
		f.Add(a, fuzzSeeds[(i+1)%len(fuzzSeeds)], uint64(i))
		f.Add(a, a, uint64(i))
	}
	f.Fuzz(func(t *testing.T, a, b string, seed uint64) {
		valueA, ok := judge(a)
		digestA, err := Digest([]byte(a))
		if !ok || err != nil {
			return
		}
		rewritten := rewrite(valueA, rand.New(rand.NewPCG(seed, 0)))
		digest, err := Digest([]byte(rewritten))
		if err != nil {
			t.Fatalf("%q is %q, which is refused: %v", a, rewritten, err)
		}
		if digest != digestA {
			t.Fatalf("%q and %q are equal and have two digests", a, rewritten)
		}
		valueB, ok := judge(b)
		digestB, err := Digest([]byte(b))
		if !ok || err != nil {
			return
		}
		if equal := describe(valueA) == describe(valueB); equal != (digestA == digestB) {
			t.Fatalf("%q and %q: equal is %v, equal digests %v", a, b, equal, digestA == digestB)
		}
	})
}

// judge decodes text with the standard library; ok is false where that cannot judge:
// exponents that package big would write out.
func judge(text string) (value any, ok bool) {
	if text == "" {
		text = "{}"
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&value) != nil {
		return nil, false
	}
	return value, judgeable(value)
}

func judgeable(value any) bool {
	switch v := value.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		n, err := strconv.Atoi(exponent)
		return exponent == "" || err == nil && -500 < n && n < 500
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !judgeable(e) })
	case map[string]any:
		for _, e := range v {
			if !judgeable(e) {
				return false
			}
		}
	}
	return true
}

func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("no number: " + n)
	}
	return r
}

// describe is a text for each value, made by other means than the canonical form.
func describe(value any) string {
	switch v := value.(type) {
	case json.Number:
		return rational(v).RatString()
	case []any:
		parts := []string{}
		for _, e := range v {
			parts = append(parts, describe(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		parts := []string{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%q:%s", name, describe(v[name])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(value)
}

// rewrite writes value as another text: members in another order, space between tokens,
// other escapes, other spellings of numbers.
func rewrite(value any, r *rand.Rand) string {
	space := func() string { return []string{"", " ", "\n\t", "\r"}[r.IntN(4)] }
	var b strings.Builder
	b.WriteString(space())
	switch v := value.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprint(&b, v)
	case json.Number:
		b.WriteString(respell(v, r))
	case string:
		b.WriteString(requote(v, r))
	case []any:
		b.WriteString("[")
		for i, e := range v {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(rewrite(e, r))
		}
		b.WriteString(space() + "]")
	case map[string]any:
		b.WriteString("{")
		names := slices.Sorted(maps.Keys(v))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(space() + requote(name, r) + space() + ":" + rewrite(v[name], r))
		}
		b.WriteString(space() + "}")
	}
	b.WriteString(space())
	return b.String()
}

// respell moves the point of a number and adds zeros.
func respell(n json.Number, r *rand.Rand) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	e, _ := strconv.Atoi(exponent)
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction + strings.Repeat("0", r.IntN(3))
	e += len(whole) - len(digits)
	point := r.IntN(len(digits)) // digits before it, but for one
	whole, fraction = digits[:point+1], digits[point+1:]
	e += len(fraction)
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	text := whole
	if fraction != "" {
		text += "." + fraction
	}
	if e != 0 || r.IntN(2) == 0 {
		text += []string{"e", "E"}[r.IntN(2)]
		if e >= 0 && r.IntN(2) == 0 {
			text += "+"
		}
		text += strconv.Itoa(e)
	}
	if negative {
		text = "-" + text
	}
	if rational(json.Number(text)).Cmp(rational(n)) != 0 {
		panic(fmt.Sprintf("%s is not %s", text, n))
	}
	return text
}

func requote(s string, r *rand.Rand) string {
	var b bytes.Buffer
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case r.IntN(3) == 0 && c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04X`, high, low)
		case r.IntN(3) == 0 && c <= 0xffff, c < ' ':
			fmt.Fprintf(&b, `\u%04X`, c)
		case c == '"' || c == '\\' || c == '/' && r.IntN(2) == 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
