package journal

import (
	"fmt"
	"slices"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Logged is one entry of a journal that is kept entry by entry, as a task's is: a recorded
// fact, or a question under the key that the client knows it by.
type Logged struct {
	Entry
	Asked bool
	Wire  string // of a question
}

// AppendJSON appends the entry: an object of "k", its key, and one of "a": [digest, answer],
// "v": value, "f": failure, "t": tries, "q": [digest, wire key].
func (l *Logged) AppendJSON(dst []byte) []byte {
	dst = strictjson.AppendString(append(dst, `{"k":`...), l.Key)
	switch {
	case l.Asked:
		dst = append(l.Digest.append(append(dst, `,"q":[`...)), ',')
		return append(strictjson.AppendString(dst, l.Wire), "]}"...)
	case l.Kind == Answer:
		dst = append(l.Digest.append(append(dst, `,"a":[`...)), ',')
		return append(append(dst, l.Data...), "]}"...)
	default:
		dst = append(append(append(dst, `,"`...), members[l.Kind]...), `":`...)
	}
	return append(append(dst, l.Data...), '}')
}

// ParseLogged reads what AppendJSON wrote. The entry aliases text.
func ParseLogged(text []byte) (l Logged, err error) {
	if err := strictjson.Check(text, maxDepth); err != nil {
		return l, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if strictjson.Kind(text) != '{' {
		return l, errMalformed
	}
	n := 0
	for name, value := range strictjson.Members(text) {
		n++
		switch string(name) {
		case "k":
			key, ok := strictjson.String(value)
			if !ok {
				return l, errMalformed
			}
			l.Key = key
		case members[Value], members[Failure], members[Tried]:
			l.Kind, l.Data = Kind(slices.Index(members[:], string(name))), value
			if l.Kind == Tried && !checkTries(value) {
				return l, errMalformed
			}
		case "a", "q":
			first, second, ok := pair(value)
			digest, whole := readDigest(first)
			if !ok || !whole {
				return l, errMalformed
			}
			l.Kind, l.Digest, l.Data = Answer, digest, second
			if name[0] == 'q' {
				l.Asked, l.Data = true, nil
				if l.Wire, ok = strictjson.String(second); !ok {
					return l, errMalformed
				}
			}
		default:
			return l, fmt.Errorf("%w: unknown member %q", errMalformed, name)
		}
	}
	if n != 2 || l.Key == "" {
		return l, errMalformed
	}
	return l, nil
}
