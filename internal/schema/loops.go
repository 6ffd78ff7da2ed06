package schema

import (
	"fmt"
	"slices"
)

// refuseLoops reports schemas that lead back to themselves at the same value, so that no
// document could ever be judged, and longer chains of them than any schema needs.
func (c *compiler) refuseLoops() {
	const open = -1
	height := map[*schema]int{} // how many are at one value from there, or open
	var visit func(s *schema, depth int) (int, string)
	visit = func(s *schema, depth int) (int, string) {
		if h := height[s]; h > 0 {
			return h, ""
		} else if h == open {
			return 0, "the schema refers to itself without going down to a property or item"
		}
		height[s] = open
		inPlace := slices.Concat(s.allOf, s.anyOf, s.oneOf, []*schema{s.not, s.cond, s.then, s.els, s.ref, s.dynamicRef})
		for _, d := range s.dependents {
			inPlace = append(inPlace, d.schema)
		}
		most := 0
		for _, next := range inPlace {
			if next == nil {
				continue
			}
			if depth == maxSchemaDepth {
				return 0, tooLongChain
			}
			h, wrong := visit(next, depth+1)
			if wrong != "" {
				return 0, wrong
			}
			most = max(most, h)
		}
		if height[s] = most + 1; most >= maxSchemaDepth {
			return 0, tooLongChain
		}
		return most + 1, ""
	}
	for _, i := range c.scanned {
		if _, wrong := visit(c.schemas[i], 1); wrong != "" {
			c.fail(i, "%s", wrong)
			return
		}
	}
}

var tooLongChain = fmt.Sprintf("more than %d schemas lead from one to the next without going down to a property or item", maxSchemaDepth)
