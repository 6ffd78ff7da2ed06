package schema

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestForms(t *testing.T) {
	for _, c := range []struct {
		form form
		yes  []string
		no   []string
	}{
		{formDateTime,
			[]string{"2026-07-28T09:30:00Z", "2026-07-28T09:30:00.123456789+02:00", "2024-02-29T00:00:00-23:59", "0000-01-01T00:00:00Z"},
			[]string{"", "2026-07-28", "2026-07-28 09:30:00Z", "2026-07-28t09:30:00Z", "2026-07-28T09:30:00z", "2026-07-28T09:30:00", "2026-07-28T24:00:00Z", "2026-07-28T09:60:00Z", "2026-06-30T23:59:60Z", "2026-02-29T00:00:00Z", "2026-07-28T09:30:00.Z", "2026-07-28T09:30:00,5Z", "2026-07-28T9:30:00Z", "2026-07-28T09:30:00+24:00", "2026-07-28T09:30:00+0200"}},
		{formDate,
			[]string{"2026-07-28", "2000-02-29"},
			[]string{"", "2026-7-28", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-01", "2026-01-00", "26-01-01", "2026-01-01Z"}},
		{formTime,
			[]string{"09:30:00Z", "23:59:59.9-05:30"},
			[]string{"", "09:30", "09:30:00", "25:00:00Z", "09:30:00.Z", "09:30:00+2"}},
		{formEmail,
			[]string{"name@example.com", "é@例え.jp"},
			[]string{"", "name", "@example.com", "name@", "a@b@c", "a b@c", "a@b\n"}},
		{formURI,
			[]string{"https://example.com/a?b=c#d", "urn:isbn:123", "mailto:a@b", "a+b-c.d:%20"},
			[]string{"", "/a", "example.com", "://x", "https:", "1a:b", "a:b c", "a:%2", "a:%zz", "a:é", "a:<b>"}},
		{formUUID,
			[]string{"f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"},
			[]string{"", "f81d4fae7dec11d0a76500a0c91e6bf6", "{81d4fae-7dec-11d0-a765-00a0c91e6bf6}", "g81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae-7dec-11d0-a765-00a0c91e6bf67"}},
		{formIPv4, []string{"192.0.2.1"}, []string{"", "192.0.2", "192.0.2.256", "192.0.02.1", "::1"}},
		{formIPv6, []string{"2001:db8::1", "::"}, []string{"", "192.0.2.1", "fe80::1%eth0", "2001:db8:::1"}},
		{formBase64, []string{"", "AA==", "AAA=", "AAAA", "+/+/"}, []string{"A", "AA", "AAA", "A===", "====", "AA==AAAA", "-_-_", "AA A", "AA\r\n"}},
		{formBool, []string{"true", "false"}, []string{"", "null", "True", "1"}},
	} {
		for _, text := range c.yes {
			if !c.form.accepts([]byte(text)) {
				t.Errorf("form %d refuses %q", c.form, text)
			}
		}
		for _, text := range c.no {
			if c.form.accepts([]byte(text)) {
				t.Errorf("form %d accepts %q", c.form, text)
			}
		}
	}
}

// What a message offers as an example has to be right.
func TestFormExamples(t *testing.T) {
	for _, f := range formats {
		if f.form == formAny {
			continue
		}
		if !f.form.accepts([]byte(f.example)) {
			t.Errorf("format %s refuses its own example %q", f.name, f.example)
		}
		if m := wrongForm(f.form); !strings.Contains(m, f.name) || !strings.Contains(m, f.example) {
			t.Errorf("message %q names neither format %s nor an example", m, f.name)
		}
	}
}

// A text that is accepted has to decode: package time and base64 are the judges.
func FuzzForms(f *testing.F) {
	for _, s := range []string{"2026-07-28T09:30:00Z", "2026-07-28T09:30:00.5+02:00", "2024-02-29T23:59:59.999Z", "AA==", "QUJD"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var tm time.Time
		if got, err := formDateTime.accepts([]byte(text)), tm.UnmarshalText([]byte(text)); got != (err == nil) {
			t.Errorf("date-time %q accepted: %v, package time says %v", text, got, err)
		}
		if formBase64.accepts([]byte(text)) {
			if _, err := base64.StdEncoding.DecodeString(text); err != nil {
				t.Errorf("base64 %q: %v", text, err)
			}
		}
	})
}

func TestFormatNames(t *testing.T) {
	names := strings.Split(formatNames(), ", ")
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(formats) {
		t.Errorf("format names %q are not sorted and unique", names)
	}
	for _, name := range names {
		if _, ok := formatNamed(name); !ok {
			t.Errorf("format %s is not found", name)
		}
	}
}
