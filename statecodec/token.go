package statecodec

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// A token is
//
//	"t1." base64url( kid[4] epoch[4] nonce[24] ciphertext[48k] tag[16] )
//
// where prefix, kid and epoch are authenticated with the ciphertext. It is never
// compressed: a client that sends one state with answers of its choice and watches the
// length would read the rest of the journal.
const (
	prefix     = "t1."
	headerSize = 8

	// chunk is what base64 makes of padTo bytes; all else in a token fills one chunk too.
	chunk = 64
)

var encoding = base64.RawURLEncoding.Strict()

// header is what a token says about itself in the clear, which anyone can write.
type header struct {
	kid   kid
	epoch uint32
}

func (h header) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(append(dst, h.kid[:]...), h.epoch)
}

// data is what is authenticated with a ciphertext of this format.
func (h header) data(format string) []byte {
	return h.append(append(make([]byte, 0, len(prefix)+headerSize), format...))
}

func readHeader(b []byte) header {
	return header{kid: kid(b), epoch: binary.BigEndian.Uint32(b[len(kid{}):])}
}

func sealToken(x *xaes, h header, plaintext []byte) (string, error) {
	sealed := h.append(make([]byte, 0, headerSize+nonceSize+len(plaintext)+tagSize))
	sealed, err := x.seal(sealed, plaintext, h.data(prefix))
	if err != nil {
		return "", err
	}
	return encodeToken(sealed), nil
}

func encodeToken(sealed []byte) string {
	token := make([]byte, len(prefix)+encoding.EncodedLen(len(sealed)))
	copy(token, prefix)
	encoding.Encode(token[len(prefix):], sealed)
	return string(token)
}

// parseToken takes a token apart. It has no key, so what it returns may be anything.
func parseToken(token string) (h header, sealed []byte, err error) {
	if len(token) > MaxToken {
		return h, nil, ErrTooLarge
	}
	body, ok := strings.CutPrefix(token, prefix)
	if !ok || body == "" || len(body)%chunk != 0 {
		return h, nil, ErrMalformed
	}
	raw, err := encoding.DecodeString(body)
	// Even the strict decoder skips line breaks.
	if err != nil || len(raw) != encoding.DecodedLen(len(body)) {
		return h, nil, ErrMalformed
	}
	return readHeader(raw), raw[headerSize:], nil
}
