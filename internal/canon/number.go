package canon

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

func (e *encoder) number(text []byte) {
	mantissa, exponent := text, int64(0)
	fits := true
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		mantissa = text[:i]
		var err error
		exponent, err = strconv.ParseInt(string(text[i+1:]), 10, 64)
		fits = err == nil
	}
	sign := byte('+')
	if mantissa[0] == '-' {
		sign, mantissa = '-', mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	e.digits = append(append(e.digits[:0], whole...), fraction...)
	digits := bytes.TrimRight(e.digits, "0")
	shift := int64(len(e.digits) - len(digits) - len(fraction))
	digits = bytes.TrimLeft(digits, "0")
	sum := exponent + shift
	switch {
	case len(digits) == 0:
		e.pending = append(e.pending, "d0e"...)
	case !fits || (sum > exponent) != (shift > 0):
		// Its exponent has digits of its own without end. Two spellings of one such value
		// count as two: that can only refuse.
		e.pending = append(e.pending, 'd')
		e.field('x', text)
	default:
		e.pending = append(append(e.pending, 'd', sign), digits...)
		e.pending = binary.BigEndian.AppendUint64(append(e.pending, 'e'), uint64(sum))
	}
}
