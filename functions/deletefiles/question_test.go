package deletefiles

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// many are n files of different names.
func many(n int) []File {
	var files []File
	for i := range n {
		files = append(files, File{Path: fmt.Sprintf("dir/%03d.txt", i), Version: "v"})
	}
	return files
}

func TestQuestion(t *testing.T) {
	long := strings.Repeat("a", 60) + strings.Repeat("b", 60)
	tests := []struct {
		name  string
		files []File
		want  string
	}{
		{"one", []File{{"a.txt", "v"}}, "Delete 1 file?\n\"a.txt\""},
		{"two", []File{{"b.txt", "v"}, {"a.txt", "v"}}, "Delete 2 files?\n\"b.txt\"\n\"a.txt\""},
		{"escaped", []File{{`"x" and "y"`, "v"}, {"exe\u202etxt", "v"}}, "Delete 2 files?\n\"\\\"x\\\" and \\\"y\\\"\"\n\"exe\\u202etxt\""},
		{"long name", []File{{long, "v"}}, "Delete 1 file?\n\"" + long[:50] + "\"…\"" + long[70:] + "\"\n(list 70eb02d15665115e)"},
	}
	for _, tt := range tests {
		if got := question(tt.files); got != tt.want {
			t.Errorf("%s: asks\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestQuestionIsCut(t *testing.T) {
	if got := question(many(20)); strings.Contains(got, "more") || strings.Contains(got, "list") || !strings.Contains(got, "019.txt") {
		t.Errorf("20 files are cut:\n%s", got)
	}
	got := question(many(100))
	if !strings.HasPrefix(got, "Delete 100 files?\n") || !strings.Contains(got, "019.txt") || strings.Contains(got, "020.txt") ||
		!strings.Contains(got, "\nand 80 more\n(list ") {
		t.Errorf("100 files are asked for as\n%s", got)
	}
}

// Lists that differ are different questions, also where the difference is not shown.
func TestDifferentListsAreDifferentQuestions(t *testing.T) {
	seen := map[string]string{}
	ask := func(name string, files []File) {
		t.Helper()
		q := question(files)
		if other, ok := seen[q]; ok {
			t.Errorf("%s and %s are the same question:\n%s", name, other, q)
		}
		seen[q] = name
	}
	ask("all", many(100))
	ask("one less", many(99))
	for _, at := range []int{0, 19, 20, 99} {
		files := many(100)
		files[at].Path = "other"
		ask(fmt.Sprintf("another at %d", at), files)
	}
	swapped := many(100)
	swapped[50], swapped[51] = swapped[51], swapped[50]
	ask("another order", swapped)
	for _, middle := range []string{"x", "y"} {
		ask("long with "+middle, []File{{strings.Repeat("a", 60) + middle + strings.Repeat("b", 60), "v"}})
	}
	ask("two", []File{{"a", "v"}, {"b", "v"}})
	ask("one that looks like two", []File{{"a\"\n\"b", "v"}})
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"a.txt", "./a", "a//b", "a/../b", "../a", "/a", "a/", "", ".", "..", "a/..", "a\x00", "é", "a\\b", "..a/..b", "\u202e", strings.Repeat("x", 1025)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		if !utf8.ValidString(given) {
			return // no JSON string
		}
		clean, err := cleanPath(given)
		if err != nil {
			if clean != "" {
				t.Errorf("%q is refused and gives %q", given, clean)
			}
			return
		}
		if !fs.ValidPath(clean) || clean == "." || len(clean) > maxPath || strings.ContainsFunc(clean, unspeakable) {
			t.Errorf("%q gives %q", given, clean)
		}
		if again, err := cleanPath(clean); err != nil || again != clean {
			t.Errorf("%q gives %q and that %q, %v", given, clean, again, err)
		}
		if got, want := path.Join("/root", clean), path.Join("/root", given); got != want || !strings.HasPrefix(got, "/root/") {
			t.Errorf("%q gives %q: %q is not %q", given, clean, got, want)
		}
	})
}
