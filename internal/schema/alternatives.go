package schema

import (
	"fmt"
	"strings"
)

func (e *evaluation) anyOf(list []*schema, i int, sc *scope, own seen, r *findings) bool {
	reports := e.reports(list, r)
	matched := false
	for n, sub := range list {
		if e.check(sub, i, sc, own, reports.of(n)) {
			if matched = true; own == nil {
				return true // without a seen to fill, the other branches say nothing
			}
		}
	}
	if !matched {
		e.explain("anyOf", reports, r)
	}
	return matched
}

func (e *evaluation) oneOf(list []*schema, i int, sc *scope, own seen, r *findings) bool {
	reports := e.reports(list, r)
	match := -1
	for n, sub := range list {
		var judged seen
		if own != nil {
			judged = make(seen, len(own))
		}
		if !e.check(sub, i, sc, judged, reports.of(n)) {
			continue
		}
		if match >= 0 {
			return e.fail(r, func() string {
				return fmt.Sprintf("must match exactly one of the alternatives of oneOf, but matches alternatives %d and %d", match+1, n+1)
			})
		}
		match = n
		for m, j := range judged {
			own[m] = own[m] || j
		}
	}
	if match < 0 {
		e.explain("oneOf", reports, r)
	}
	return match >= 0
}

// branches are the findings of each alternative; none if they are not wanted.
type branches []findings

func (e *evaluation) reports(list []*schema, r *findings) branches {
	if r == nil || r.full {
		return nil
	}
	reports := make(branches, len(list))
	for n := range reports {
		reports[n].level = len(e.trail)
	}
	return reports
}

func (b branches) of(n int) *findings {
	if b == nil {
		return nil
	}
	return &b[n]
}

// explain reports why no alternative matched: the violations of the one that was
// meant, if only one can have been, else a line with the first of each.
func (e *evaluation) explain(keyword string, reports branches, r *findings) {
	if r == nil || r.full {
		return
	}
	var meant *findings
	candidates := 0
	for n := range reports {
		if !reports[n].other {
			candidates++
			meant = &reports[n]
		}
	}
	if candidates == 1 {
		for _, v := range meant.list {
			r.add(v)
		}
		return
	}
	e.fail(r, func() string {
		const most = 6
		here := e.pointer()
		var text strings.Builder
		fmt.Fprintf(&text, "must match one of the %d alternatives of %s:", len(reports), keyword)
		for n := range reports {
			if n == most {
				text.WriteString(" …")
				break
			}
			if list := reports[n].list; len(list) > 0 {
				first := Violation{strings.TrimPrefix(list[0].Path, here), list[0].Message}
				fmt.Fprintf(&text, " (%d) %s", n+1, clipTo(first.String(), 160))
			}
		}
		return text.String()
	})
}
