package schema

import (
	"regexp"
	"regexp/syntax"
)

// pattern is a regular expression and what looking through a text with it costs: RE2
// takes time in the length of the text times the size of the program.
type pattern struct {
	*regexp.Regexp
	size int // instructions of the program
}

// leastPatternSize is where the cost of a step through the text is more than that of the
// instructions.
const leastPatternSize = 16

func compilePattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	// Package regexp keeps the program to itself, and what it compiles also parses.
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	return &pattern{re, max(len(program.Inst), leastPatternSize)}, nil
}

// cost is that of a text of n bytes, in bytes looked at by one instruction each.
func (p *pattern) cost(n int) int { return n * p.size }

// match reports whether p matches text, or false if there is no work left for it.
func (e *evaluation) match(p *pattern, text []byte) bool {
	e.spend(64 + p.cost(len(text)))
	return e.steps > 0 && p.Match(text)
}

// What the patterns of a Go type may cost in one document, in the unit of cost: so much,
// and more for each byte of the document.
const (
	patternCostForAny  = 50_000_000
	patternCostForByte = 16
)

// match returns what is wrong with a string that has to match p, or "".
func (v *validation) match(p *pattern, text []byte) string {
	v.patternCost += p.cost(len(text))
	if v.patternCost > patternCostForAny+patternCostForByte*len(v.doc) {
		return "is too long for its pattern"
	}
	if !p.Match(text) {
		return "must match the pattern " + clip(p.String())
	}
	return ""
}
