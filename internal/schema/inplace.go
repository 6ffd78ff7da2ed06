package schema

import "fmt"

// inPlace checks the schemas that s applies to the same value.
func (e *evaluation) inPlace(s *schema, i int, sc *scope, own seen, r *findings) bool {
	valid := true
	if s.ref != nil {
		valid = e.check(s.ref, i, sc, own, r)
	}
	if s.dynamicRef != nil {
		valid = e.check(e.dynamicTarget(s, sc), i, sc, own, r) && valid
	}
	for _, sub := range s.allOf {
		if e.decided(valid, r) {
			return false
		}
		valid = e.check(sub, i, sc, own, r) && valid
	}
	if len(s.anyOf) > 0 {
		valid = e.anyOf(s.anyOf, i, sc, own, r) && valid
	}
	if len(s.oneOf) > 0 {
		valid = e.oneOf(s.oneOf, i, sc, own, r) && valid
	}
	if s.not != nil && e.check(s.not, i, sc, nil, nil) {
		valid = e.fail(r, func() string { return "must not match the schema under not" })
	}
	if s.cond != nil {
		branch := s.els
		if e.check(s.cond, i, sc, own, nil) {
			branch = s.then
		}
		if branch != nil {
			valid = e.check(branch, i, sc, own, r) && valid
		}
	}
	return valid
}

// dynamicTarget is the outermost schema in scope that has the dynamic anchor.
func (e *evaluation) dynamicTarget(s *schema, sc *scope) *schema {
	target := s.dynamicRef
	if s.dynamicName == "" {
		return target
	}
	for ; sc != nil; sc = sc.parent {
		e.spend(8)
		if t, ok := sc.res.dynamic[s.dynamicName]; ok {
			target = t
		}
	}
	return target
}

// unevaluated checks what no other keyword has judged.
func (e *evaluation) unevaluated(s *schema, i int, sc *scope, own seen, r *findings) bool {
	object := e.items[i].kind == '{'
	rest := s.unevaluatedItems
	if object {
		rest = s.unevaluatedProps
	}
	if rest == nil {
		return true
	}
	valid, n := true, -1
	for m := range e.children(i) {
		if n++; own[n] {
			continue
		}
		own[n] = true
		switch {
		case !rest.never:
			valid = e.below(rest, m, n, sc, r) && valid
		case object:
			valid = e.fail(r, func() string { return "unknown property " + quoted(e.name(m)) })
		default:
			valid = e.fail(r, func() string { return fmt.Sprintf("item %d is one too many: no rule allows it", n) })
		}
		if e.decided(valid, r) {
			return false
		}
	}
	return valid
}
