package schema

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
)

// form is what the text of a string has to be, beside its length and pattern.
type form uint8

const (
	formAny      form = iota
	formBase64        // RFC 4648 section 4, with padding, as []byte decodes it
	formInteger       // plain decimal digits within the node's limits
	formFloat         // a JSON number
	formBool          // true or false
	formDateTime      // the rest are values of the format tag
	formDate
	formTime
	formEmail
	formURI
	formUUID
	formIPv4
	formIPv6
)

// formats are the names that the format tag may have. Those with a form are checked,
// the rest are annotations for the model.
var formats = []struct {
	name    string
	form    form
	example string
}{
	{"date-time", formDateTime, "2026-07-28T09:30:00Z"},
	{"date", formDate, "2026-07-28"},
	{"time", formTime, "09:30:00Z"},
	{"email", formEmail, "name@example.com"},
	{"uri", formURI, "https://example.com/a"},
	{"uuid", formUUID, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
	{"ipv4", formIPv4, "192.0.2.1"},
	{"ipv6", formIPv6, "2001:db8::1"},
	{name: "duration"}, {name: "hostname"}, {name: "idn-email"}, {name: "idn-hostname"},
	{name: "iri"}, {name: "iri-reference"}, {name: "json-pointer"}, {name: "regex"},
	{name: "relative-json-pointer"}, {name: "uri-reference"}, {name: "uri-template"},
}

func formatNamed(name string) (form, bool) {
	for _, f := range formats {
		if f.name == name {
			return f.form, true
		}
	}
	return formAny, false
}

func formatNames() string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// wrongForm is the message for a text that f refuses.
func wrongForm(f form) string {
	switch f {
	case formBase64:
		return "must be base64 (standard alphabet, with padding)"
	case formFloat:
		return `must be a number written as a string, such as "1.5"`
	case formBool:
		return `must be "true" or "false", as a string`
	}
	for _, known := range formats {
		if known.form == f {
			return "must be a valid " + known.name + ` such as "` + known.example + `"`
		}
	}
	return "has the wrong form"
}

func (f form) accepts(text []byte) bool {
	switch f {
	case formBase64:
		return isBase64(text)
	case formBool:
		return string(text) == "true" || string(text) == "false"
	case formDateTime:
		return len(text) > 10 && text[10] == 'T' && isDate(text[:10]) && isTime(text[11:])
	case formDate:
		return isDate(text)
	case formTime:
		return isTime(text)
	case formEmail:
		return isEmail(text)
	case formURI:
		return isURI(text)
	case formUUID:
		return isUUID(text)
	case formIPv4, formIPv6:
		a, err := netip.ParseAddr(string(text))
		return err == nil && a.Is4() == (f == formIPv4) && a.Zone() == ""
	}
	return true
}

// CheckFormat says what is wrong with text as a string of this format, or "". An unknown
// format has nothing wrong: in a hand-written schema format is an annotation.
func CheckFormat(format, text string) string {
	if f, ok := formatNamed(format); ok && !f.accepts([]byte(text)) {
		return wrongForm(f)
	}
	return ""
}

func isBase64(text []byte) bool {
	if len(text)%4 != 0 {
		return false
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("=")), []byte("="))
	for _, c := range text {
		if !isLetter(c) && c-'0' > 9 && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return (c|0x20)-'a' < 26 }

// isNumber checks the grammar of a JSON number.
func isNumber(text []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(text) && text[n]-'0' <= 9 {
			n++
		}
		text = text[n:]
		return n > 0
	}
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	zero := len(text) > 0 && text[0] == '0'
	if zero {
		text = text[1:]
	} else if !digits() {
		return false
	}
	if len(text) > 0 && text[0] == '.' {
		text = text[1:]
		if !digits() {
			return false
		}
	}
	if len(text) > 0 && text[0]|0x20 == 'e' {
		text = text[1:]
		if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(text) == 0
}

// twoDigits reads two digits, or -1.
func twoDigits(text []byte) int {
	if len(text) < 2 || text[0]-'0' > 9 || text[1]-'0' > 9 {
		return -1
	}
	return int(text[0]-'0')*10 + int(text[1]-'0')
}

// isDate checks an RFC 3339 full-date.
func isDate(text []byte) bool {
	if len(text) != 10 || text[4] != '-' || text[7] != '-' {
		return false
	}
	century, year, month, day := twoDigits(text), twoDigits(text[2:]), twoDigits(text[5:]), twoDigits(text[8:])
	if century < 0 || year < 0 || month < 1 || month > 12 || day < 1 {
		return false
	}
	year += century * 100
	days := 31
	switch month {
	case 4, 6, 9, 11:
		days = 30
	case 2:
		days = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			days = 29
		}
	}
	return day <= days
}

// isTime checks an RFC 3339 full-time as package time reads it: no leap second, the
// letter Z in upper case.
func isTime(text []byte) bool {
	if len(text) < 9 || text[2] != ':' || text[5] != ':' {
		return false
	}
	hour, minute, second := twoDigits(text), twoDigits(text[3:]), twoDigits(text[6:])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return false
	}
	text = text[8:]
	if text[0] == '.' {
		n := 1
		for n < len(text) && text[n]-'0' <= 9 {
			n++
		}
		if n == 1 {
			return false
		}
		text = text[n:]
	}
	if len(text) == 1 {
		return text[0] == 'Z'
	}
	if len(text) != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' {
		return false
	}
	hour, minute = twoDigits(text[1:]), twoDigits(text[4:])
	return hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59
}

// isEmail is loose on purpose: one @ inside, no space or control character. Whether
// mail arrives only sending can tell.
func isEmail(text []byte) bool {
	at := bytes.IndexByte(text, '@')
	if at < 1 || at == len(text)-1 || bytes.IndexByte(text[at+1:], '@') >= 0 {
		return false
	}
	for _, c := range text {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isURI checks for a scheme, and for the characters of RFC 3986.
func isURI(text []byte) bool {
	colon := bytes.IndexByte(text, ':')
	if colon < 1 || colon == len(text)-1 || !isLetter(text[0]) {
		return false
	}
	for _, c := range text[:colon] {
		if !isLetter(c) && c-'0' > 9 && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	for i := colon + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '%':
			if i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2]) {
				return false
			}
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return c-'0' <= 9 || (c|0x20)-'a' < 6 }

func isUUID(text []byte) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}
