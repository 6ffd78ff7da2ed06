package serve

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"
)

// M-08 to M-13, with the page's own vectors.
func TestDecodeMirrored(t *testing.T) {
	for _, c := range []struct {
		header, want string
		ok           bool
	}{
		{"us-west1", "us-west1", true},
		{"", "", true},
		{"=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界", true},
		{"=?base64?IHBhZGRlZCA=?=", " padded ", true},
		{"=?base64?bGluZTEKbGluZTI=?=", "line1\nline2", true},
		{"=?base64?5pel5pys6Kqe?=", "日本語", true},
		{"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?=", true},
		{"=?base64??=", "", true},
		{"=?base64?=", "=?base64?=", true},
		{"=?BASE64?ZWNobw==?=", "=?BASE64?ZWNobw==?=", true},
		{"SGVsbG8=", "SGVsbG8=", true},
		{"=?base64?SGVsbG8=", "=?base64?SGVsbG8=", true},
		{"inner spaces stay", "inner spaces stay", true},
		{"=?base64?SGVsbG8?=", "", false},
		{"=?base64?SGVs!!!bG8=?=", "", false},
		{"=?base64?SGVsbG9=?=", "", false}, // bits left over
		{"=?base64?w/8=?=", "", false},     // no UTF-8
		{"=?base64?SGVs\nbG8=?=", "", false},
		{"=?base64?-_-_?=", "", false}, // the other alphabet
		{"docs://測試", "", false},
		{"a\x00b", "", false},
		{"a\x7fb", "", false},
	} {
		if got, ok := decodeMirrored(c.header); got != c.want || ok != c.ok {
			t.Errorf("decodeMirrored(%q) = %q, %v; want %q, %v", c.header, got, ok, c.want, c.ok)
		}
	}
}

// Whatever a client encodes as it should is read back; nothing else decodes to it than
// its own two forms.
func FuzzMirroredHeader(f *testing.F) {
	for _, s := range []string{"us-west1", "Hello, 世界", " padded ", "=?base64?literal?=", "=?base64?SGVsbG8=?=", "=?base64?=", "line1\nline2", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if utf8.ValidString(s) {
			header := encodeMirrored(s)
			if strings.ContainsAny(header, "\r\n\x00") {
				t.Fatalf("encodeMirrored(%q) = %q, which no header can hold", s, header)
			}
			if got, ok := decodeMirrored(header); !ok || got != s {
				t.Fatalf("%q became %q, %v by way of %q", s, got, ok, header)
			}
		}
		if text, ok := decodeMirrored(s); ok {
			if !utf8.ValidString(text) {
				t.Fatalf("decodeMirrored(%q) gave bad UTF-8", s)
			}
			if text != s && s != encodedPrefix+base64.StdEncoding.EncodeToString([]byte(text))+encodedSuffix {
				t.Fatalf("%q is a second encoding of %q", s, text)
			}
		}
		_ = sameInteger(s, "42")
		if sameInteger(s, s) && strings.ContainsAny(s, "xX_/+ ") {
			t.Fatalf("%q passed for a decimal integer", s)
		}
	})
}

// M-16, M-20.
func TestSameInteger(t *testing.T) {
	for _, c := range []struct {
		header, body string
		want         bool
	}{
		{"42", "42", true},
		{"42.0", "42", true},
		{"42", "42.0", true},
		{"4.2e1", "42", true},
		{"420e-1", "42", true},
		{"-0", "0", true},
		{"-7", "-7", true},
		{"9007199254740991", "9007199254740991", true},
		{"1.0000000001", "1", false},
		{"1", "2", false},
		{"9007199254740993", "9007199254740992", false},
		{"9007199254740992", "9007199254740992", false}, // beyond the safe range
		{"-9007199254740992", "-9007199254740992", false},
		{"0x2A", "42", false},
		{"4_2", "42", false},
		{"+42", "42", false},
		{"042", "42", false},
		{" 42", "42", false},
		{"42 ", "42", false},
		{"", "0", false},
		{"1/1", "1", false},
		{"1.5", "1.5", false},
		{"1e999999999", "1e999999999", false},
		{"Inf", "1", false},
	} {
		if got := sameInteger(c.header, c.body); got != c.want {
			t.Errorf("sameInteger(%q, %q) = %v", c.header, c.body, got)
		}
	}
}

// M-19 to M-24 on real requests.
func TestMirroredParameters(t *testing.T) {
	ran := 0
	h, _ := newHandler(t, testServer(&ran), Options{Host: resident})
	for _, c := range []struct {
		name      string
		arguments map[string]any
		headers   map[string]string
		ok        bool
	}{
		{"none", map[string]any{}, nil, true},
		{"string", map[string]any{"region": "eu"}, map[string]string{"Mcp-Param-Region": "eu"}, true},
		{"string, encoded", map[string]any{"region": "日本語"}, map[string]string{"Mcp-Param-Region": "=?base64?5pel5pys6Kqe?="}, true},
		{"empty string", map[string]any{"region": ""}, map[string]string{"Mcp-Param-Region": ""}, true},
		{"empty string, no header", map[string]any{"region": ""}, nil, false},
		{"string differs", map[string]any{"region": "eu"}, map[string]string{"Mcp-Param-Region": "us"}, false},
		{"string in another case", map[string]any{"region": "eu"}, map[string]string{"Mcp-Param-Region": "EU"}, false},
		{"a number's text for a string", map[string]any{"region": "1"}, map[string]string{"Mcp-Param-Region": "1.0"}, false},
		{"missing", map[string]any{"region": "eu"}, nil, false},
		{"integer", map[string]any{"priority": 42}, map[string]string{"Mcp-Param-Priority": "42"}, true},
		{"integer as 42.0", map[string]any{"priority": 42}, map[string]string{"Mcp-Param-Priority": "42.0"}, true},
		{"no integer, equal", map[string]any{"priority": 1.5}, map[string]string{"Mcp-Param-Priority": "1.5"}, true},
		{"beyond the safe range, equal", map[string]any{"priority": 1 << 60}, map[string]string{"Mcp-Param-Priority": "1152921504606846976"}, false},
		{"boolean", map[string]any{"dry_run": true}, map[string]string{"Mcp-Param-Dry-Run": "true"}, true},
		{"boolean differs", map[string]any{"dry_run": true}, map[string]string{"Mcp-Param-Dry-Run": "True"}, false},
		{"nested", map[string]any{"target": map[string]any{"tenant": "a"}}, map[string]string{"Mcp-Param-Tenant": "a"}, true},
		{"nested, missing", map[string]any{"target": map[string]any{"tenant": "a"}}, nil, false},
		{"null", map[string]any{"region": nil}, nil, true},
		{"null, header there", map[string]any{"region": nil}, map[string]string{"Mcp-Param-Region": "eu"}, false},
		{"absent, header there", map[string]any{}, map[string]string{"Mcp-Param-Region": "eu"}, false},
		{"unrecognised header", map[string]any{}, map[string]string{"Mcp-Param-Other": "x\x7f"}, true},
		{"broken encoding", map[string]any{"region": "eu"}, map[string]string{"Mcp-Param-Region": "=?base64?***?="}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ran
			got := do(t, h, post{method: "tools/call", params: map[string]any{"name": "route", "arguments": c.arguments}, headers: c.headers}.request(t))
			if c.ok && got.status != 200 || !c.ok && (got.status != 400 || got.code() != -32020) {
				t.Errorf("got %d %s", got.status, got.raw)
			}
			runs := c.ok && c.name != "null" && c.name != "no integer, equal" // which the schema refuses afterwards
			if (ran > before) != runs {
				t.Errorf("ran: %v", ran > before)
			}
		})
	}
	// M-24: two lines.
	r := post{method: "tools/call", params: map[string]any{"name": "route", "arguments": map[string]any{"region": "eu"}}}.request(t)
	r.Header["Mcp-Param-Region"] = []string{"eu", "eu"}
	if got := do(t, h, r); got.code() != -32020 {
		t.Errorf("two lines: %s", got.raw)
	}
	r = post{method: "tools/list"}.request(t)
	r.Header["Mcp-Method"] = []string{"tools/list", "tools/list"}
	if got := do(t, h, r); got.code() != -32020 {
		t.Errorf("two lines: %s", got.raw)
	}
}
