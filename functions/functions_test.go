package functions_test

import (
	"slices"
	"testing"

	"github.com/thaw-mcp/thaw"
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
	names := namesOf(s)
	for _, want := range []string{"text_analysis", "delete_files", "provision_environment"} {
		if !slices.Contains(names, want) {
			t.Errorf("served are %q, and not %s", names, want)
		}
	}
	for _, tool := range s.Tools {
		d := tool.Definition()
		if d.Title == "" || d.Description == "" || d.Annotations == nil || d.OutputSchema == nil {
			t.Errorf("tool %s lacks a title, a description, annotations or an output schema: %+v", d.Name, d)
		}
	}
}

func TestToolsWithoutWhatTheyNeed(t *testing.T) {
	names := namesOf(functions.Server(functions.Deps{}))
	if !slices.Contains(names, "text_analysis") || slices.Contains(names, "delete_files") || slices.Contains(names, "provision_environment") {
		t.Errorf("served are %q, want text_analysis and neither of those that need something", names)
	}
}

func namesOf(s thaw.Server) (names []string) {
	for _, tool := range s.Tools {
		names = append(names, tool.Definition().Name)
	}
	return names
}
