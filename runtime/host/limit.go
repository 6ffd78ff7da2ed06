package host

import "context"

type fitsKey struct{}

// WithResponseLimit tells the handler that a response body must satisfy fits.
// Hosts that hand a whole response to a platform with a size limit set it, so
// that a handler can answer with a small error of its own protocol instead of
// losing the response. fits must be safe for concurrent use and must not keep
// the slice.
func WithResponseLimit(ctx context.Context, limit int, fits func(body []byte) bool) context.Context {
	return context.WithValue(ctx, fitsKey{}, responseLimit{limit, fits})
}

type responseLimit struct {
	limit int
	fits  func([]byte) bool
}

// Fits reports whether a response with this body can be delivered, and the
// platform's limit in bytes for the whole encoded response (0: none). The limit
// counts what the platform counts, escaping included, so a body shorter than the
// limit may still not fit.
func Fits(ctx context.Context, body []byte) (ok bool, limit int) {
	l, has := ctx.Value(fitsKey{}).(responseLimit)
	if !has {
		return true, 0
	}
	return l.fits(body), l.limit
}
