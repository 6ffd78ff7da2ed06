package schema

import (
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// appendCanonical appends a text that is the same for equal JSON values only: members
// sorted, numbers by value, strings without needless escapes.
func (t *tape) appendCanonical(dst []byte, i int) []byte {
	switch t.items[i].kind {
	case '{':
		members := make([]string, 0, t.items[i].size)
		for c := range t.children(i) {
			m := append(strictjson.AppendString(nil, t.name(c)), ':')
			members = append(members, string(t.appendCanonical(m, c)))
		}
		// Quoted names end at the first bare quote, so no name is a prefix of another.
		slices.SortFunc(members, strings.Compare)
		dst = append(dst, '{')
		for _, m := range members {
			dst = append(append(dst, m...), ',')
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for c := range t.children(i) {
			dst = append(t.appendCanonical(dst, c), ',')
		}
		return append(dst, ']')
	case '"':
		return strictjson.AppendString(dst, t.text(i))
	case '0':
		return parseDecimal(t.raw(i)).appendCanonical(dst)
	}
	return append(dst, t.raw(i)...)
}
