package main

import (
	"bytes"
	"go/format"
	"testing"
)

func TestAddTool(t *testing.T) {
	const head = "package functions\n\n"
	tests := []struct{ name, before, after string }{
		{"one line",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n\t\"x.y/m/functions/b\"\n)\n\nvar tools = []*thaw.Tool{b.New()}\n",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n\t\"x.y/m/functions/a\"\n\t\"x.y/m/functions/b\"\n)\n\nvar tools = []*thaw.Tool{b.New(), a.New()}\n"},
		{"a line each, with remarks",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n\n\t\"x.y/m/functions/b\" // why b\n\t\"x.y/m/functions/c\"\n)\n\nvar tools = []*thaw.Tool{\n\tc.New(),\n\t// b is last.\n\tb.New(), // indeed\n\t// No more.\n}\n",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n\n\t\"x.y/m/functions/a\"\n\t\"x.y/m/functions/b\" // why b\n\t\"x.y/m/functions/c\"\n)\n\nvar tools = []*thaw.Tool{\n\tc.New(),\n\t// b is last.\n\tb.New(), // indeed\n\t// No more.\n\ta.New(),\n}\n"},
		{"empty, one import",
			head + "import \"github.com/thaw-mcp/thaw\"\n\nvar tools = []*thaw.Tool{}\n",
			head + "import \"github.com/thaw-mcp/thaw\"\nimport \"x.y/m/functions/a\"\n\nvar tools = []*thaw.Tool{a.New()}\n"},
		{"empty but for a remark",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n)\n\nvar tools = []*thaw.Tool{\n\t// None yet.\n}\n",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n\t\"x.y/m/functions/a\"\n)\n\nvar tools = []*thaw.Tool{\n\t// None yet.\n\ta.New(),\n}\n"},
		{"thaw by another name, in a function, not formatted",
			head + "import (\n\t\"fmt\"\n  t \"github.com/thaw-mcp/thaw\"\n)\n\nfunc Server() t.Server {\n  fmt.Println()\n\treturn t.Server{Name: \"é\", Tools: []*t.Tool{one(),\ntwo()}}\n}\n",
			head + "import (\n\t\"fmt\"\n\tt \"github.com/thaw-mcp/thaw\"\n\t\"x.y/m/functions/a\"\n)\n\nfunc Server() t.Server {\n\tfmt.Println()\n\treturn t.Server{Name: \"é\", Tools: []*t.Tool{one(),\n\t\ttwo(), a.New()}}\n}\n"},
		{"the last behind a blank line",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n)\n\nvar tools = []*thaw.Tool{\n\tone(),\n\n\ttwo(func() {\n\t\tx()\n\t}),\n}\n",
			head + "import (\n\t\"github.com/thaw-mcp/thaw\"\n\t\"x.y/m/functions/a\"\n)\n\nvar tools = []*thaw.Tool{\n\tone(),\n\n\ttwo(func() {\n\t\tx()\n\t}),\n\ta.New(),\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := addTool([]byte(tt.before), "x.y/m/functions/a")
			if err != nil || string(got) != tt.after {
				t.Errorf("error %v, got\n%s\nwant\n%s", err, got, tt.after)
			}
		})
	}
}

// FuzzAddTool: whatever the file is, it is refused or becomes one that is formatted and that
// the same tool cannot be added to again.
func FuzzAddTool(f *testing.F) {
	f.Add("package p\n\nimport \"github.com/thaw-mcp/thaw\"\n\nvar tools = []*thaw.Tool{}\n")
	f.Add("package p; import (\"github.com/thaw-mcp/thaw\"; \"x.y/m/functions/b\"); var tools = []*thaw.Tool{b.New(),}")
	f.Add("package p\nimport t \"github.com/thaw-mcp/thaw\" // t\nvar tools = []*t.Tool{ /* none */ }\n")
	f.Add("package p\r\nimport (\r\n\"github.com/thaw-mcp/thaw\"\r\n)\r\nvar tools = []*thaw.Tool{\r\n0: nil, //\r\n}\r\n")
	f.Fuzz(func(t *testing.T, src string) {
		got, err := addTool([]byte(src), "x.y/m/functions/a")
		if err != nil {
			return
		}
		if formatted, err := format.Source(got); err != nil || !bytes.Equal(formatted, got) {
			t.Fatalf("%q became %q, formatted %q (%v)", src, got, formatted, err)
		}
		if _, err := addTool(got, "x.y/m/functions/a"); err == nil {
			t.Fatalf("%q became %q, to which the tool can be added again", src, got)
		}
	})
}
