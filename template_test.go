package thaw

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTemplateValues(t *testing.T) {
	for _, c := range []struct {
		template, uri, want string // "": no match
	}{
		{"docs://item/{id}", "docs://item/7", "map[id:7]"},
		{"docs://item/{id}", "docs://item/", "map[id:]"},
		{"docs://item/{id}", "docs://item/a%2Fb", "map[id:a/b]"},
		{"docs://item/{id}", "docs://item/%E6%97%A5", "map[id:日]"},
		{"docs://item/{id}", "docs://item/a/b", ""},
		{"docs://item/{id}", "docs://item/a,b", ""},
		{"docs://item/{id}", "xdocs://item/a", ""},
		{"docs://item/{id}", "docs://item/a\n", ""},
		{"docs://item/{id}", "docs://item/%ff", ""},
		{"docs://item/{id}", "docs://item/%zz", ""},
		{"docs://item/{id}", "docs://item/日", ""},
		{"docs://item/{id}/data", "docs://item/7/data", "map[id:7]"},
		{"docs://item.json/{id}", "docs://itemxjson/7", ""},
		{"x://{a,b}", "x://1,2", "map[a:1 b:2]"},
		{"x://{a,b}", "x://1", "map[a:1]"},
		{"file:///{+path}", "file:///a/b?c", "map[path:a/b?c]"},
		{"x://a{#f}", "x://a#part", "map[f:part]"},
		{"x://a{#f}", "x://a", "map[]"},
		{"x://a{.ext}", "x://a.json", "map[ext:json]"},
		{"x://a{/b,c}", "x://a/1/2", "map[b:1 c:2]"},
		{"x://a{;v,w}", "x://a;v=1;w", "map[v:1]"},
		{"x://a{?q,n}", "x://a?q=1&n=2", "map[n:2 q:1]"},
		{"x://a{?q,n}", "x://a?n=2", "map[n:2]"},
		{"x://a{?q,n}", "x://a", "map[]"},
		{"x://a{?q,n}", "x://a&q=1", ""},
		{"x://a{?q,n}", "x://a?q=1?n=2", ""},
		{"x://a{?q,n}", "x://a&n=2", ""},
		{"x://a?fixed=1{&n}", "x://a?fixed=1&n=2", "map[n:2]"},
		{"x://a/{id}", "x://a/" + strings.Repeat("a", maxTemplateURI), ""},
	} {
		template, err := parseTemplate(c.template)
		if err != nil {
			t.Fatalf("%s: %v", c.template, err)
		}
		values, ok := template.values(c.uri)
		if got := fmt.Sprint(values); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s in %.60q: %s, %v; want %s", c.template, c.uri, got, ok, c.want)
		}
	}
	for _, bad := range []string{"x://{id:3}", "x://{list*}", "x://{id}/{id}", "x://{a,a}", "x://{", "x://{=a}"} {
		if _, err := parseTemplate(bad); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// expanded is a value as RFC 6570 puts it into a URI. The library's own expansion drops and
// mangles characters, so it is no judge here.
func expanded(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Every value comes back from the URI that it makes, and whatever matches decodes to UTF-8.
func FuzzTemplate(f *testing.F) {
	f.Add("7", "x", "docs://item/7?q=x")
	f.Add("a/b", "", "docs://item/a%2Fb")
	f.Add("日", "ü&=\x00", "docs://item/%ff?q=")
	f.Add("", "", "docs://item/"+strings.Repeat("a,", 2000))
	template, err := parseTemplate("docs://item/{id}{?q}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, q, uri string) {
		if values, ok := template.values(uri); ok && (!utf8.ValidString(values["id"]) || !utf8.ValidString(values["q"])) {
			t.Fatalf("%q gave %q", uri, values)
		}
		if !utf8.ValidString(id) || !utf8.ValidString(q) || len(id)+len(q) > 1000 {
			return
		}
		made := "docs://item/" + expanded(id) + "?q=" + expanded(q)
		if values, ok := template.values(made); !ok || values["id"] != id || values["q"] != q {
			t.Fatalf("%q, %q made %q, which gave %q, %v", id, q, made, values, ok)
		}
	})
}
