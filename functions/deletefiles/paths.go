package deletefiles

import (
	"errors"
	"path"
	"strings"
	"unicode"

	"github.com/thaw-mcp/thaw"
)

// maxPath is the longest path in bytes; the schema counts characters.
const maxPath = 1024

// cleanPaths makes the paths what Files takes, each once, in their order. The error names
// what is wrong with any of them.
func cleanPaths(given []string) ([]string, error) {
	var paths, wrong []string
	seen := map[string]bool{}
	for _, p := range given {
		clean, err := cleanPath(p)
		if err != nil {
			wrong = append(wrong, quote(p)+" "+err.Error())
			continue
		}
		if !seen[clean] {
			seen[clean] = true
			paths = append(paths, clean)
		}
	}
	if wrong != nil {
		return nil, thaw.Errorf("nothing was deleted: %s; allowed are relative paths of files, with forward slashes", list(wrong))
	}
	return paths, nil
}

func cleanPath(p string) (string, error) {
	switch {
	case len(p) > maxPath:
		return "", errors.New("is longer than 1024 bytes")
	case strings.ContainsFunc(p, unspeakable):
		return "", errors.New("has a control character")
	case strings.HasPrefix(p, "/"):
		return "", errors.New("is absolute")
	}
	clean := path.Clean(p)
	switch {
	case clean == "." || strings.HasSuffix(p, "/"):
		return "", errors.New("names a folder")
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return "", errors.New("leads outside")
	}
	return clean, nil
}

// unspeakable holds for what no file is named with in good faith and XML, in which a bucket
// is told what to delete, cannot say: it would turn into the name of another file.
func unspeakable(r rune) bool { return unicode.IsControl(r) || r == '\uFFFE' || r == '\uFFFF' }
