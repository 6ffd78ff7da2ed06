package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// addTool is the source of a list of tools with one more: the import of its package and its
// New() at the end of the list. Everything else stays as it is, formatted.
func addTool(src []byte, importPath string) ([]byte, error) {
	src, err := format.Source(src)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	name := path.Base(importPath)
	if usesName(file, name) {
		return nil, fmt.Errorf("the name %s is used in it", name)
	}
	list, err := toolList(file)
	if err != nil {
		return nil, err
	}
	at := fset.File(file.Pos())
	src = insert(src, lineOfTool(at, list, name+".New()"), lineOfImport(at, file, importPath))
	if src, err = format.Source(src); err != nil {
		return nil, err
	}
	return src, mustHave(src, importPath, len(list.Elts)+1)
}

// mustHave is an error if a list has not got the tool that was written into it: a comment over
// several lines swallows what is written there.
func mustHave(src []byte, importPath string, tools int) error {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	list, err := toolList(file)
	if err != nil {
		return err
	}
	imported := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return importedBy(i) == importPath })
	if !imported || len(list.Elts) != tools {
		return errors.New("a comment stands where a line belongs")
	}
	return nil
}

// text is something to be written at an offset.
type text struct {
	offset int
	what   string
}

// insert writes texts into src.
func insert(src []byte, texts ...text) []byte {
	slices.SortFunc(texts, func(a, b text) int { return b.offset - a.offset }) // later ones move nothing
	for _, t := range texts {
		src = slices.Concat(src[:t.offset], []byte(t.what), src[t.offset:])
	}
	return src
}

// usesName says whether anything in the file is called name, which a package of that name
// would hide or be hidden by.
func usesName(file *ast.File, name string) (used bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		used = used || ok && id.Name == name
		return !used
	})
	return used || slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Name == nil && path.Base(importedBy(i)) == name
	})
}

// importedBy is the path that an import names; the parser has seen that it is a string.
func importedBy(i *ast.ImportSpec) string {
	p, _ := strconv.Unquote(i.Path.Value)
	return p
}

// toolList finds the one []*thaw.Tool{…} of a file.
func toolList(file *ast.File) (*ast.CompositeLit, error) {
	thaw := ""
	for _, i := range file.Imports {
		switch {
		case importedBy(i) != thawModule:
		case i.Name == nil:
			thaw = path.Base(thawModule)
		default:
			thaw = i.Name.Name
		}
	}
	var lists []*ast.CompositeLit
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.CompositeLit); ok && isListOfTools(l.Type, thaw) {
			lists = append(lists, l)
		}
		return true
	})
	switch len(lists) {
	case 0:
		return nil, errors.New("it has no []*thaw.Tool{…}")
	case 1:
		return lists[0], nil
	}
	return nil, fmt.Errorf("it has %d times []*thaw.Tool{…}, and which is the list is not known", len(lists))
}

// isListOfTools holds for []*thaw.Tool, thaw being what its package is called here.
func isListOfTools(e ast.Expr, thaw string) bool {
	array, ok := e.(*ast.ArrayType)
	if !ok || array.Len != nil {
		return false
	}
	pointer, ok := array.Elt.(*ast.StarExpr)
	if !ok {
		return false
	}
	tool, ok := pointer.X.(*ast.SelectorExpr)
	if !ok || tool.Sel.Name != "Tool" {
		return false
	}
	of, ok := tool.X.(*ast.Ident)
	return ok && of.Name == thaw
}

// lineOfTool writes a tool behind the last of the list: on a line of its own if those have
// one.
func lineOfTool(at *token.File, list *ast.CompositeLit, tool string) text {
	end := list.Lbrace
	if n := len(list.Elts); n > 0 {
		end = list.Elts[n-1].End()
	}
	switch closing := at.Line(list.Rbrace); {
	case at.Line(end) != closing:
		return text{at.Offset(at.LineStart(closing)), tool + ",\n"}
	case len(list.Elts) == 0:
		return text{at.Offset(list.Rbrace), tool}
	default:
		return text{at.Offset(end), ", " + tool}
	}
}

// lineOfImport writes an import below the last of its neighbours, or below that of thaw;
// the formatter sorts the lines of a block.
func lineOfImport(at *token.File, file *ast.File, importPath string) text {
	var beside *ast.ImportSpec
	for _, i := range file.Imports {
		if importedBy(i) == thawModule && beside == nil || strings.HasPrefix(importedBy(i), path.Dir(importPath)+"/") {
			beside = i
		}
	}
	line := strconv.Quote(importPath) + "\n"
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && !g.Lparen.IsValid() && g.Specs[0] == ast.Spec(beside) {
			line = "import " + line
		}
	}
	return text{at.Offset(at.LineStart(at.Line(beside.End()) + 1)), line}
}

// byHand says what addTool would have done.
func byHand(importPath string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "import %q\nand to the tools of the server %s.New()", importPath, path.Base(importPath))
	return b.String()
}
