package serve

import "slices"

// basicScopes are what a client asks for at its first login: the operator's word, else those
// that everything needs. More is asked for by the operation that needs it (A-06, S-05).
func (h *Handler) basicScopes(c *catalog) []string {
	if len(h.scopesSupported) > 0 {
		return h.scopesSupported
	}
	return c.basicScopes
}

// allScopes yields what each tool, prompt, resource and template needs.
func (c *catalog) allScopes(yield func(what string, scopes []string) bool) {
	for name, t := range c.tools {
		if !yield("tool "+name, t.Scopes) {
			return
		}
	}
	for name, p := range c.prompts {
		if !yield("prompt "+name, p.Scopes) {
			return
		}
	}
	for uri, r := range c.resources {
		if !yield("resource "+uri, r.scopes) {
			return
		}
	}
	for _, t := range c.templates {
		if !yield("resource template "+t.template.Definition.URITemplate, t.scopes) {
			return
		}
	}
}

// commonScopes are those that everything needs.
func (c *catalog) commonScopes() (common []string) {
	first := true
	for _, scopes := range c.allScopes {
		if first {
			common, first = slices.Clone(scopes), false
			continue
		}
		common = slices.DeleteFunc(common, func(scope string) bool { return !slices.Contains(scopes, scope) })
	}
	slices.Sort(common)
	common = slices.DeleteFunc(common, func(scope string) bool { return checkScopeSupported(scope) != nil })
	return slices.Compact(common)
}
