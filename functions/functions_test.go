package functions_test

import (
	"testing"

	"github.com/thaw-mcp/thaw/functions"
	"github.com/thaw-mcp/thaw/functions/deletefiles/dirfiles"
)

func TestServer(t *testing.T) {
	dir, err := dirfiles.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s := functions.Server(functions.Deps{Files: dir})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	for _, tool := range s.Tools {
		d := tool.Definition()
		if d.Title == "" || d.Description == "" || d.Annotations == nil || d.OutputSchema == nil {
			t.Errorf("tool %s lacks a title, a description, annotations or an output schema: %+v", d.Name, d)
		}
	}
}

func TestToolsWithoutWhatTheyNeed(t *testing.T) {
	var names []string
	for _, tool := range functions.Server(functions.Deps{}).Tools {
		names = append(names, tool.Definition().Name)
	}
	if len(names) != 1 || names[0] != "text_analysis" {
		t.Errorf("served are %q, want text_analysis alone", names)
	}
}
