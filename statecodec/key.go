package statecodec

import (
	"context"
	"encoding/hex"
)

// Key is a secret held by a key service (KMS GenerateMac, Cloud KMS MacSign) or a local
// file. Implementations are safe for concurrent use.
type Key interface {
	// ID names the key. It is equal wherever the secret is equal, different elsewhere, and
	// no secret: logs show it.
	ID() string
	// MAC is the HMAC-SHA-256 of message under the secret, 32 bytes that become the
	// caller's. It returns when ctx ends and does not try again by itself. Its errors match
	// ErrKeyUnavailable or ErrKeyDenied and name action and key; any other counts as
	// ErrKeyUnavailable.
	MAC(ctx context.Context, message []byte) ([]byte, error)
}

// Ring is a Key that holds several, such as a file with a key a line. Taken as a plain
// Key it is the first of them. A Codec takes its members in its place, and reads it again
// when a token names a key that it does not know, at most once a second, and when it
// seals, at most once a minute.
type Ring interface {
	Key
	// Keys returns the members, at least one; the first mints. It does no I/O.
	Keys() []Key
	// Reload reads the members again from where they are kept, which is near: requests
	// wait for it. After an error Keys returns what it did before.
	Reload(ctx context.Context) error
}

// KeyScheme opens keys of one kind, such as awskms:ARN.
type KeyScheme struct {
	// Name is what stands before the colon; Usage says what may follow it.
	Name, Usage string
	// Open makes a key of what follows the colon. It does not call a key service.
	Open func(ctx context.Context, rest string) (Key, error)
	// Create is Open, and makes a key that is not there. It is used only on hosts whose disk
	// stays: elsewhere each instance would make one of its own. Nil: keys of this kind are made
	// elsewhere.
	Create func(ctx context.Context, rest string) (Key, error)
}

// KID is the short form of a key's ID that tokens carry and logs show: 8 hex digits.
func KID(id string) string {
	kid := kidOf(id)
	return hex.EncodeToString(kid[:])
}

type kid [4]byte

func kidOf(id string) kid {
	sum := digest("thaw/v1/key", id)
	return kid(sum[:4])
}
