package functions_test

import (
	"testing"

	"github.com/thaw-mcp/thaw/functions"
	"github.com/thaw-mcp/thaw/functions/deletefiles/dirfiles"
	"github.com/thaw-mcp/thaw/functions/provision/dircloud"
)

func TestServer(t *testing.T) {
	dir, err := dirfiles.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	s := functions.Server(functions.Deps{Files: dir, Cloud: dircloud.New(t.TempDir(), nil)})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if len(s.Tools) != 3 {
		t.Errorf("%d tools are served, want 3", len(s.Tools))
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
