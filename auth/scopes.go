package auth

import "slices"

// HasAll returns which of the required scopes are not granted, in their order; nil if all are.
// implies may say that a granted scope covers a required one; nil means only equal ones
// do. Scopes are compared byte by byte (RFC 6749, 3.3).
func HasAll(granted, required []string, implies func(granted, required string) bool) (missing []string) {
	for _, r := range required {
		if !slices.ContainsFunc(granted, func(g string) bool { return g == r || implies != nil && implies(g, r) }) {
			missing = append(missing, r)
		}
	}
	return missing
}
