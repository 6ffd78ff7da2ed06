package schema

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/google/jsonschema-go/jsonschema" // its module carries the official test suite

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// moduleFolder is where the go command keeps a module that go.mod requires.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	folder := strings.TrimSpace(string(out))
	if err != nil || folder == "" {
		t.Fatalf("the folder of module %s: %q, %v", module, folder, err)
	}
	return folder
}

// unsupported are the groups of the suite that Compile refuses on purpose, and why. They
// have to be refused; a file's other groups have to pass.
var unsupported = map[string]string{
	"draft2020-12/refRemote.json/*":                                                               fetches,
	"draft2020-12/ref.json/remote ref, containing refs itself":                                    metaSchema,
	"draft2020-12/defs.json/validate definition against metaschema":                               metaSchema,
	"draft2020-12/dynamicRef.json/strict-tree schema, guards against misspelled properties":       fetches,
	"draft2020-12/dynamicRef.json/tests for implementation dynamic anchor and reference link":     fetches,
	"draft2020-12/dynamicRef.json/$ref and $dynamicAnchor are independent of order - $defs first": fetches,
	"draft2020-12/dynamicRef.json/$ref and $dynamicAnchor are independent of order - $ref first":  fetches,
	"draft2020-12/dynamicRef.json/$ref to $dynamicRef finds detached $dynamicAnchor":              fetches,
	"draft7/refRemote.json/*":                                        fetches,
	"draft7/ref.json/remote ref, containing refs itself":             metaSchema,
	"draft7/definitions.json/validate definition against metaschema": metaSchema,
}

const (
	fetches    = "needs a document from elsewhere, and nothing is fetched (F-24)"
	metaSchema = "refers to a meta-schema, which lies elsewhere (F-24)"
)

var suiteDialects = map[string]string{
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
	"draft7":       "http://json-schema.org/draft-07/schema#",
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func readSuite(t *testing.T, path string) (groups []suiteGroup) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &groups)
	}
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// TestSuite runs the official JSON Schema Test Suite. Its mandatory files are all there
// but content.json and format.json, of keywords that are annotations, and
// vocabulary.json, of dialects that are made to measure and always refused.
func TestSuite(t *testing.T) {
	folder := filepath.Join(moduleFolder(t, "github.com/google/jsonschema-go"), "jsonschema", "testdata")
	met := map[string]bool{}
	for _, c := range []struct {
		draft        string
		files, cases int // at least
	}{
		{"draft2020-12", 43, 1050},
		{"draft7", 37, 880},
	} {
		t.Run(c.draft, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(folder, c.draft, "*.json"))
			if err != nil || len(files) < c.files {
				t.Fatalf("%d files in %s, %v; want at least %d", len(files), folder, err, c.files)
			}
			ran, left := 0, 0
			for _, file := range files {
				for _, g := range readSuite(t, file) {
					name := filepath.Base(file) + "/" + g.Description
					v, err := Compile(withDialect(t, g.Schema, suiteDialects[c.draft]))
					if err != nil {
						left += len(g.Tests)
						listed := c.draft + "/" + name
						if unsupported[listed] == "" {
							listed = c.draft + "/" + filepath.Base(file) + "/*"
						}
						if met[listed] = true; unsupported[listed] == "" || !strings.Contains(err.Error(), "references are never fetched") {
							t.Errorf("%s: %v", name, err)
						}
						continue
					}
					for _, test := range g.Tests {
						ran++
						_, violations := v.Validate(check(t, string(test.Data)))
						if (violations == nil) != test.Valid {
							t.Errorf("%s/%s: %s: want valid %v, got %q", name, test.Description, test.Data, test.Valid, texts(violations))
						}
					}
				}
			}
			if ran < c.cases {
				t.Errorf("only %d cases ran, want at least %d", ran, c.cases)
			}
			t.Logf("%d files, %d cases ran, %d are not supported", len(files), ran, left)
		})
	}
	for name, why := range unsupported {
		if !met[name] {
			t.Errorf("%s passes or is no more, though listed: %s", name, why)
		}
	}
}

// withDialect names the dialect of a folder in a schema that names none.
func withDialect(t *testing.T, schema []byte, dialect string) []byte {
	t.Helper()
	if strictjson.Kind(schema) != '{' || strictjson.Member(schema, "$schema") != nil {
		return schema
	}
	rest := strings.TrimSpace(string(schema))[1:]
	comma := ","
	if strings.TrimSpace(rest) == "}" {
		comma = ""
	}
	return []byte(`{"$schema":"` + dialect + `"` + comma + rest)
}
