package statecodec

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
)

// Describe returns what a log may show of a token: the start of its hash; if it has the
// form of one, the key and epoch that it claims; and, if the key is in memory and it is
// genuine, its age. It calls no key service.
func (c *Codec) Describe(token string) []slog.Attr {
	sum := sha256.Sum256([]byte(token))
	attrs := []slog.Attr{slog.String("state", hex.EncodeToString(sum[:8]))}
	h, sealed, err := parseToken(token)
	if err != nil {
		return attrs
	}
	attrs = append(attrs, slog.String("kid", hex.EncodeToString(h.kid[:])), slog.Uint64("epoch", uint64(h.epoch)))
	k := c.keys.Load().byKID[h.kid]
	if k == nil {
		return attrs
	}
	keys := k.cached(h.epoch)
	if keys == nil {
		return attrs
	}
	s, _, err := keys.openState(h, sealed)
	if err != nil {
		return attrs
	}
	return append(attrs, slog.Duration("age", c.now().Sub(s.Issued)))
}
