package functions_test

import (
	"testing"

	"github.com/thaw-mcp/thaw/functions"
)

func TestServer(t *testing.T) {
	s := functions.Server()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if len(s.Tools) == 0 {
		t.Fatal("no tools")
	}
	for _, tool := range s.Tools {
		d := tool.Definition()
		if d.Title == "" || d.Description == "" || d.Annotations == nil || d.OutputSchema == nil {
			t.Errorf("tool %s lacks a title, a description, annotations or an output schema: %+v", d.Name, d)
		}
	}
}
