package deploy

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

//go:embed translate.py
var translate string

// template is what CloudFormation gets: template.yaml after SAM has translated it.
type template struct {
	text       []byte
	Parameters map[string]struct {
		Default               any
		Description           string
		AllowedPattern        string
		ConstraintDescription string
	}
	Rules map[string]struct {
		RuleCondition any
		Assertions    []struct {
			Assert            any
			AssertDescription string
		}
	}
	Mappings   map[string]map[string]map[string]string
	Conditions map[string]any
	Resources  map[string]resource
}

type resource struct {
	Type, Condition string
	Properties      map[string]any
}

// translation is made once.
var translation struct {
	sync.Mutex
	text []byte
}

func translated(t *testing.T) *template {
	t.Helper()
	translation.Lock()
	defer translation.Unlock()
	if translation.text == nil {
		file, err := filepath.Abs(root + "/template.yaml")
		if err != nil {
			t.Fatal(err)
		}
		translation.text = python(t, t.TempDir(), nil, "-c", translate, file)
	}
	tpl := template{text: translation.text}
	if err := json.Unmarshal(tpl.text, &tpl); err != nil {
		t.Fatal(err)
	}
	return &tpl
}

// The linter for CloudFormation judges the template as SAM has it, and what SAM makes of it: in
// that one alone it follows the references of an API's definition, and finds circles.
func TestLint(t *testing.T) {
	sam(t, root, nil, "validate", "--lint")
	file := filepath.Join(t.TempDir(), "template.json")
	if err := os.WriteFile(file, translated(t).text, 0o644); err != nil {
		t.Fatal(err)
	}
	python(t, root, nil, "-c", "from cfnlint.runner import main; main()", file)
}
