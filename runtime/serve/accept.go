package serve

import (
	"mime"
	"strconv"
	"strings"
)

// acceptsMedia reports whether Accept lines allow kind/sub: the most specific range that
// matches decides (RFC 9110, 12.5.1). Lines are one list; ranges that cannot be read are
// passed over, and if none can be read everything is allowed.
func acceptsMedia(lines []string, kind, sub string) bool {
	best, allowed, readable := -1, false, false
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			media, params, err := mime.ParseMediaType(strings.TrimSpace(item))
			if err != nil {
				continue
			}
			readable = true
			specificity := -1
			switch media {
			case kind + "/" + sub:
				specificity = 2
			case kind + "/*":
				specificity = 1
			case "*/*":
				specificity = 0
			}
			if specificity > best {
				best = specificity
				q, err := strconv.ParseFloat(params["q"], 64)
				allowed = err != nil || q > 0
			}
		}
	}
	return allowed || !readable
}
