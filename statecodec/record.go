package statecodec

import (
	"context"
	"errors"
)

// recordFormat is the first byte of a record, before header, nonce, ciphertext and tag.
// With the header it starts what is authenticated; the caller's data follows.
const recordFormat = "\x01"

var errNoPurpose = errors.New("statecodec: a record needs a purpose")

// SealRecord seals plaintext of any size for this server itself to keep, such as the
// response of a call that may run once only. Each purpose has keys of its own. aad is
// authenticated and not part of the result. Records open for as long as tokens do and at
// least for CallLifetime and a few minutes. Errors: ErrKeyUnavailable, ErrKeyDenied.
func (c *Codec) SealRecord(ctx context.Context, purpose string, aad, plaintext []byte) ([]byte, error) {
	if purpose == "" {
		return nil, errNoPurpose
	}
	h, keys, err := c.minting(ctx)
	if err != nil {
		return nil, err
	}
	x, err := keys.recordKey(purpose)
	if err != nil {
		return nil, err
	}
	record := make([]byte, 0, len(recordFormat)+headerSize+nonceSize+len(plaintext)+tagSize)
	record = h.append(append(record, recordFormat...))
	return x.seal(record, plaintext, append(h.data(recordFormat), aad...))
}

// OpenRecord returns the plaintext of a record that SealRecord made for the same purpose
// and aad. Errors: ErrMalformed, ErrUnknownKey, ErrKeyUnavailable, ErrKeyDenied, ErrForged.
func (c *Codec) OpenRecord(ctx context.Context, purpose string, aad, sealed []byte) ([]byte, error) {
	if purpose == "" {
		return nil, errNoPurpose
	}
	if len(sealed) < len(recordFormat)+headerSize+nonceSize+tagSize || string(sealed[:len(recordFormat)]) != recordFormat {
		return nil, ErrMalformed
	}
	sealed = sealed[len(recordFormat):]
	h := readHeader(sealed)
	keys, err := c.opening(ctx, h)
	if err != nil {
		return nil, err
	}
	x, err := keys.recordKey(purpose)
	if err != nil {
		return nil, err
	}
	return x.open(sealed[headerSize:], append(h.data(recordFormat), aad...))
}
