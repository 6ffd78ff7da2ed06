package schema

import (
	"math"
	"math/bits"
	"strconv"
)

// Numbers are judged on their text, so 2^53 and 2^53+1 differ and 0.1 is a tenth.

// integer is a whole number of up to 64 bits and a sign; zero is never negative.
type integer struct {
	neg bool
	mag uint64
}

func (a integer) cmp(b integer) int {
	switch {
	case a.neg != b.neg:
		if a.neg {
			return -1
		}
		return 1
	case a.mag == b.mag:
		return 0
	case (a.mag < b.mag) != a.neg:
		return -1
	}
	return 1
}

func (a integer) append(dst []byte) []byte {
	if a.neg {
		dst = append(dst, '-')
	}
	return strconv.AppendUint(dst, a.mag, 10)
}

func (a integer) String() string { return string(a.append(nil)) }

// integerLimits are the smallest and largest value of a Go integer type.
func integerLimits(bitSize int, unsigned bool) (lo, hi integer) {
	if unsigned {
		return integer{}, integer{mag: math.MaxUint64 >> (64 - bitSize)}
	}
	half := uint64(1) << (bitSize - 1)
	return integer{true, half}, integer{false, half - 1}
}

// safeInteger is 2^53-1, the largest magnitude of a mirrored integer (M-16).
const safeInteger = 1<<53 - 1

type integerForm uint8

const (
	integerPlain    integerForm = iota // digits that Go decodes as they are
	integerRewrite                     // whole, but written as 3.0, 1e2 or -0
	integerFraction                    // not whole
	integerHuge                        // whole, beyond 64 bits
)

// parseInteger reads a JSON number as a whole number.
func parseInteger(text []byte) (integer, integerForm) {
	i, neg := 0, false
	if text[0] == '-' {
		i, neg = 1, true
	}
	// Up to 19 digits cannot overflow.
	if len(text)-i <= 19 {
		var mag uint64
		for _, c := range text[i:] {
			if c-'0' > 9 {
				return parseDecimal(text).integer()
			}
			mag = mag*10 + uint64(c-'0')
		}
		if neg && mag == 0 {
			return integer{}, integerRewrite
		}
		return integer{neg, mag}, integerPlain
	}
	v, form := parseDecimal(text).integer()
	if form == integerRewrite && isDigits(text[i:]) {
		form = integerPlain
	}
	return v, form
}

func isDigits(text []byte) bool {
	for _, c := range text {
		if c-'0' > 9 {
			return false
		}
	}
	return len(text) > 0
}

// decimal is a number as its significant digits: 0.DIGITS x 10^point. Zero has none.
type decimal struct {
	neg    bool
	digits []byte // from the first to the last digit that is not 0; may hold the '.'
	count  int    // of digits
	point  int64
}

// maxPoint stands for every larger exponent. No text that fits in memory has enough
// digits to tell.
const maxPoint = 1 << 48

// parseDecimal reads a JSON number.
func parseDecimal(text []byte) decimal {
	var d decimal
	i := 0
	if text[0] == '-' {
		d.neg, i = true, 1
	}
	first, last := -1, -1 // positions of significant digits in text
	firstDigit, lastDigit := 0, 0
	digit, whole := 0, -1 // digits so far; digits before the '.'
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' {
			whole = digit
			continue
		}
		if c == 'e' || c == 'E' {
			break
		}
		if c != '0' {
			if first < 0 {
				first, firstDigit = i, digit
			}
			last, lastDigit = i, digit
		}
		digit++
	}
	if first < 0 {
		return decimal{}
	}
	if whole < 0 {
		whole = digit
	}
	d.digits = text[first : last+1]
	d.count = lastDigit - firstDigit + 1
	d.point = int64(whole - firstDigit)
	if i < len(text) {
		d.point += parseExponent(text[i+1:])
	}
	return d
}

func parseExponent(text []byte) int64 {
	neg := text[0] == '-'
	if neg || text[0] == '+' {
		text = text[1:]
	}
	var e int64
	for _, c := range text {
		if e = e*10 + int64(c-'0'); e > maxPoint {
			e = maxPoint
		}
	}
	if neg {
		return -e
	}
	return e
}

func (d decimal) isWhole() bool { return d.count == 0 || d.point >= int64(d.count) }

func (d decimal) integer() (integer, integerForm) {
	switch {
	case d.count == 0:
		return integer{}, integerRewrite
	case !d.isWhole():
		return integer{}, integerFraction
	case d.point > 20:
		return integer{}, integerHuge
	}
	var mag uint64
	for i, n := 0, int(d.point); n > 0; i++ {
		var c byte // zeros follow the digits
		if i < len(d.digits) {
			if d.digits[i] == '.' {
				continue
			}
			c = d.digits[i] - '0'
		}
		hi, lo := bits.Mul64(mag, 10)
		lo, carry := bits.Add64(lo, uint64(c), 0)
		if hi+carry != 0 {
			return integer{}, integerHuge
		}
		mag = lo
		n--
	}
	return integer{d.neg, mag}, integerRewrite
}

func (d decimal) cmp(o decimal) int {
	sign := func(d decimal) int {
		switch {
		case d.count == 0:
			return 0
		case d.neg:
			return -1
		}
		return 1
	}
	s, so := sign(d), sign(o)
	switch {
	case s != so:
		if s < so {
			return -1
		}
		return 1
	case s == 0:
		return 0
	case d.point != o.point:
		if d.point < o.point {
			return -s
		}
		return s
	}
	return s * compareDigits(d.digits, o.digits)
}

// compareDigits compares as if both went on with zeros for ever.
func compareDigits(a, b []byte) int {
	for i, j := 0, 0; i < len(a) || j < len(b); i, j = i+1, j+1 {
		if i < len(a) && a[i] == '.' {
			i++
		}
		if j < len(b) && b[j] == '.' {
			j++
		}
		x, y := byte('0'), byte('0')
		if i < len(a) {
			x = a[i]
		}
		if j < len(b) {
			y = b[j]
		}
		if x != y {
			if x < y {
				return -1
			}
			return 1
		}
	}
	return 0
}

// overflowsFloat reports whether text is beyond the largest finite float of that size.
func overflowsFloat(text []byte, bitSize int) bool {
	if len(text) <= 30 && !hasExponent(text) {
		return false
	}
	last := int64(309) // 1.8e308 has its point there
	if bitSize == 32 {
		last = 39
	}
	switch d := parseDecimal(text); {
	case d.point < last:
		return false
	case d.point > last:
		return true
	}
	_, err := strconv.ParseFloat(string(text), bitSize)
	return err != nil
}

func hasExponent(text []byte) bool {
	for _, c := range text {
		if c|0x20 == 'e' {
			return true
		}
	}
	return false
}

// appendCanonical appends a text that is the same for equal numbers only.
func (d decimal) appendCanonical(dst []byte) []byte {
	if d.count == 0 {
		return append(dst, '0')
	}
	if d.neg {
		dst = append(dst, '-')
	}
	for _, c := range d.digits {
		if c != '.' {
			dst = append(dst, c)
		}
	}
	return strconv.AppendInt(append(dst, 'e'), d.point, 10)
}

// divisor is the value of multipleOf: mag x 10^exponent, mag no multiple of 10.
type divisor struct {
	mag      uint64
	exponent int64
}

// A divisor that is no more than this fits in 64 bits, and leaves exponents room.
const (
	maxDivisorDigits   = 19
	maxDivisorExponent = 1 << 32
)

func newDivisor(d decimal) (divisor, bool) {
	if d.neg || d.count == 0 || d.count > maxDivisorDigits || d.point > maxDivisorExponent || d.point < -maxDivisorExponent {
		return divisor{}, false
	}
	var mag uint64
	for _, c := range d.digits {
		if c != '.' {
			mag = mag*10 + uint64(c-'0')
		}
	}
	return divisor{mag, d.point - int64(d.count)}, true
}

// divides reports whether v is a multiple, whatever its size.
func (d *divisor) divides(v decimal) bool {
	if v.count == 0 {
		return true
	}
	// v's last digit is not 0, so no fraction of ten makes it a multiple.
	zeros := v.point - int64(v.count) - d.exponent
	if zeros < 0 {
		return false
	}
	rest := uint64(0)
	next := func(digit byte) {
		hi, lo := bits.Mul64(rest, 10)
		lo, carry := bits.Add64(lo, uint64(digit), 0)
		rest = bits.Rem64(hi+carry, lo, d.mag)
	}
	for _, c := range v.digits {
		if c != '.' {
			next(c - '0')
		}
	}
	// No number of 64 bits has more factors of 2 or 5, so further zeros change nothing.
	for range min(zeros, 64) {
		next(0)
	}
	return rest == 0
}
