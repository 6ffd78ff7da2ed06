package schema

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestParseInteger(t *testing.T) {
	for _, c := range []struct {
		text, want string
		form       integerForm
	}{
		{"0", "0", integerPlain},
		{"-0", "0", integerRewrite},
		{"42", "42", integerPlain},
		{"-42", "-42", integerPlain},
		{"42.0", "42", integerRewrite},
		{"-0.00", "0", integerRewrite},
		{"1e2", "100", integerRewrite},
		{"1.50E+1", "15", integerRewrite},
		{"1200e-2", "12", integerRewrite},
		{"0e999999999999999999999", "0", integerRewrite},
		{"1.5", "0", integerFraction},
		{"1e-1", "0", integerFraction},
		{"0.000001", "0", integerFraction},
		{"1e-999999999999999999999", "0", integerFraction},
		{"9007199254740993", "9007199254740993", integerPlain},
		{"9007199254740993.0", "9007199254740993", integerRewrite},
		{"9223372036854775807", "9223372036854775807", integerPlain},
		{"-9223372036854775808", "-9223372036854775808", integerPlain},
		{"18446744073709551615", "18446744073709551615", integerPlain},
		{"18446744073709551616", "0", integerHuge},
		{"99999999999999999999", "0", integerHuge},
		{"1e20", "0", integerHuge},
		{"1e999999999999999999999", "0", integerHuge},
	} {
		got, form := parseInteger([]byte(c.text))
		if form != c.form || form <= integerRewrite && got.String() != c.want {
			t.Errorf("parseInteger(%s) = %v, form %d; want %s, %d", c.text, got, form, c.want, c.form)
		}
	}
}

func TestDivides(t *testing.T) {
	for _, c := range []struct {
		value, divisor string
		want           bool
	}{
		{"0", "7", true}, {"-0.0", "1e-9", true}, {"-14", "7", true}, {"15", "7", false},
		{"4.35", "0.01", true}, {"4.355", "0.01", false}, {"1e-300", "1e-301", true}, {"1e-301", "1e-300", false},
		{"1e300", "9223372036854775808", true},
		{"5e1000000000", "7", false}, {"7e1000000000", "7", true}, {"7e-1000000000", "7", false},
		{"1e4294967295", "1e4294967295", true}, {"1e4294967294", "1e4294967295", false},
	} {
		d, ok := newDivisor(parseDecimal([]byte(c.divisor)))
		if !ok {
			t.Errorf("%s is no divisor", c.divisor)
		} else if got := d.divides(parseDecimal([]byte(c.value))); got != c.want {
			t.Errorf("%s is a multiple of %s: %v", c.value, c.divisor, got)
		}
	}
	for _, text := range []string{"0", "-1", "0.0", "1.0000000000000000001", "1e99999999999", "1e-99999999999"} {
		if _, ok := newDivisor(parseDecimal([]byte(text))); ok {
			t.Errorf("%s is a divisor", text)
		}
	}
}

// Package big is the judge of every operation, for numbers it can hold.
func FuzzNumbers(f *testing.F) {
	for _, s := range [][2]string{{"0", "-0.0"}, {"9007199254740993", "9007199254740992"}, {"1e2", "100.00"}, {"-1.5e-3", "0.0015"}, {"123456789012345678901234567890", "1.2345678901234567890123456789e29"}, {"3.4e38", "3.5e38"}, {"1.8e308", "1e309"}, {"4.35", "0.01"}, {"1e300", "9223372036854775808"}, {"36893488147419103232", "1e-19"}, {"99999999999999999999", "9999999999999999999"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := ratOf(a), ratOf(b)
		if x == nil || y == nil {
			return
		}
		da, db := parseDecimal([]byte(a)), parseDecimal([]byte(b))
		if got, want := da.cmp(db), x.Cmp(y); got != want {
			t.Errorf("%s compared with %s is %d, want %d", a, b, got, want)
		}
		if same := string(da.appendCanonical(nil)) == string(db.appendCanonical(nil)); same != (x.Cmp(y) == 0) {
			t.Errorf("%s and %s have the same canonical form: %v", a, b, same)
		}
		if d, ok := newDivisor(db); ok {
			if got, want := d.divides(da), new(big.Rat).Quo(x, y).IsInt(); got != want {
				t.Errorf("%s is a multiple of %s: %v", a, b, got)
			}
		} else if y.Sign() > 0 && db.count <= maxDivisorDigits {
			t.Errorf("%s is no divisor", b)
		}
		if da.isWhole() != x.IsInt() {
			t.Errorf("%s whole: %v", a, da.isWhole())
		}
		switch v, form := parseInteger([]byte(a)); form {
		case integerFraction:
			if x.IsInt() {
				t.Errorf("%s is an integer", a)
			}
		case integerHuge:
			if limit := new(big.Int).Lsh(big.NewInt(1), 64); !x.IsInt() || x.Num().CmpAbs(limit) < 0 {
				t.Errorf("%s fits", a)
			}
		default:
			if !x.IsInt() || x.Num().String() != v.String() {
				t.Errorf("%s read as %v", a, v)
			}
			if form == integerPlain && v.String() != a {
				t.Errorf("%s is not plain", a)
			}
		}
		for _, bits := range []int{32, 64} {
			_, err := strconv.ParseFloat(a, bits)
			if got := overflowsFloat([]byte(a), bits); got != (err != nil) {
				t.Errorf("%s overflows %d bits: %v, ParseFloat says %v", a, bits, got, err)
			}
		}
	})
}

// ratOf is nil for what is no JSON number, or too large for package big.
func ratOf(text string) *big.Rat {
	if len(text) > 400 || !isNumber([]byte(text)) {
		return nil
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > 1000 || e < -1000 {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

func TestIsNumber(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-0": true, "10": true, "1.5": true, "1e5": true, "1E+5": true, "-1.25e-7": true,
		"": false, "-": false, "01": false, "+1": false, ".5": false, "1.": false, "1e": false, "1e+": false,
		" 1": false, "1 ": false, "0x1": false, "NaN": false, "1_000": false, "--1": false,
	} {
		if isNumber([]byte(text)) != want {
			t.Errorf("isNumber(%q) = %v", text, !want)
		}
	}
}
