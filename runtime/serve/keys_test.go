package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k", "state.key")
	ran := 0
	for _, c := range []struct {
		name     string
		env      []string
		args     []string
		code     int
		out, err string
	}{
		{"list of nothing", nil, []string{"list", path}, 1, "", "does not exist"},
		{"new", nil, []string{"new", path}, 0, "serve with THAW_STATE_KEY=file:" + path, ""},
		{"new again", nil, []string{"new", path}, 1, "", "exists already"},
		{"list by setting", []string{"THAW_STATE_KEY", "awskms:x,file:" + path}, []string{"list"}, 0, "seals and opens", ""},
		{"rotate", nil, []string{"rotate", "file:" + path}, 0, "seals; the others open", ""},
		{"list both", nil, []string{"list", path}, 0, ", opens; replaced ", ""},
		{"retire too early", nil, []string{"retire", path}, 0, "nothing to retire", ""},
		{"retire at once", nil, []string{"retire", "-now", path}, 0, "retired ", ""},
		{"nothing said", nil, nil, 2, "", "keys takes new, list, rotate or retire"},
		{"something else", nil, []string{"eat"}, 2, "", `keys has no "eat"`},
		{"two files", nil, []string{"list", "a", "b"}, 2, "", "at most one file"},
		{"a flag of another", nil, []string{"list", "-now", path}, 2, "", "usage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := runProgram(t, testServer(&ran), env(c.env...), "", append([]string{"keys"}, c.args...)...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("exit %d, out %q, err %q", code, out, errs)
			}
			secret, err := os.ReadFile(path)
			if err == nil && strings.Contains(out+errs, strings.Fields(string(secret))[1]) {
				t.Error("the secret is shown")
			}
		})
	}
	if lines, err := os.ReadFile(path); err != nil || strings.Count(string(lines), "THAW-STATE-KEY-1") != 1 {
		t.Errorf("%d keys, %v", strings.Count(string(lines), "THAW-STATE-KEY-1"), err)
	}
}
