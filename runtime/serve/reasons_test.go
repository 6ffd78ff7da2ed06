package serve

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Every reason is explained, and nothing is explained that does not occur.
func TestReasonsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok {
			reason, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			n++
			if !strings.Contains(string(doc), "\n| `"+reason+"` |") {
				t.Errorf("docs/errors.md does not explain %s", reason)
			}
		}
		return true
	})
	if rows := strings.Count(string(doc), "\n| `") - strings.Count(string(doc), "\n| `*") - strings.Count(string(doc), "\n| `thaw."); rows != n || n == 0 {
		t.Errorf("docs/errors.md explains %d reasons, there are %d", rows, n)
	}
}
