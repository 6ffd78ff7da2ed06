package deletefiles

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
)

const (
	// shown is how many names a question lists.
	shown = 20
	// nameEnds is how many characters a question shows of each end of a long name.
	nameEnds = 50
)

// question is what the user is asked. An answer counts for this text alone, so a text that
// does not have every name in full ends in a digest of all of them.
func question(found []File) string {
	var b strings.Builder
	if len(found) == 1 {
		b.WriteString("Delete 1 file?")
	} else {
		fmt.Fprintf(&b, "Delete %d files?", len(found))
	}
	all := sha256.New()
	whole := len(found) <= shown
	for i, file := range found {
		fmt.Fprintf(all, "%q\n", file.Path)
		if i < shown {
			name := quote(file.Path)
			b.WriteString("\n" + name)
			whole = whole && name == strconv.Quote(file.Path)
		}
	}
	if more := len(found) - shown; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	if !whole {
		fmt.Fprintf(&b, "\n(list %x)", all.Sum(nil)[:8])
	}
	return b.String()
}

// quote shows a name as it is but for what cannot be seen, which might pass one name off
// for another. Of a long name it shows both ends.
func quote(name string) string {
	r := []rune(name)
	if len(r) <= 2*nameEnds {
		return strconv.Quote(name)
	}
	return strconv.Quote(string(r[:nameEnds])) + "…" + strconv.Quote(string(r[len(r)-nameEnds:]))
}
