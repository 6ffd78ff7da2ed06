package statecodec

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// Binding is what a state is good for and nothing else: one server, one caller, one
// request. Nothing else of a request is bound: not its headers, host or path, so nobody
// may take a tenant from those.
type Binding struct {
	Audience, Principal [16]byte
	Request             [32]byte
}

// Audience is the server's part of a Binding, made of its first public URL.
func Audience(publicURL string) [16]byte {
	sum := digest("thaw/v1/audience", publicURL)
	return [16]byte(sum[:16])
}

// Principal is the caller's part of a Binding. What an authentication scheme does not
// have is "".
func Principal(scheme, issuer, subject, tenant, client string) [16]byte {
	sum := digest("thaw/v1/principal", scheme, issuer, subject, tenant, client)
	return [16]byte(sum[:16])
}

// Request is the request's part of a Binding: its method, the name or URI it is about, and
// a digest of its arguments that is the same for equal JSON only.
func Request(method, name string, argsDigest [32]byte) [32]byte {
	return digest("thaw/v1/request", method, name, string(argsDigest[:]))
}

// check compares what a token was sealed for with what it came with.
func (b *Binding) check(sealed *Binding) error {
	switch {
	case subtle.ConstantTimeCompare(sealed.Audience[:], b.Audience[:]) == 0:
		return ErrAudience
	case subtle.ConstantTimeCompare(sealed.Principal[:], b.Principal[:]) == 0:
		return ErrPrincipal
	case subtle.ConstantTimeCompare(sealed.Request[:], b.Request[:]) == 0:
		return ErrRequest
	}
	return nil
}

// digest hashes fields under a label. Each part goes with its length, so fields cannot
// flow into each other; a label always has the same number of fields.
func digest(label string, fields ...string) [sha256.Size]byte {
	b := appendField(make([]byte, 0, 256), label)
	for _, f := range fields {
		b = appendField(b, f)
	}
	return sha256.Sum256(b)
}

func appendField(dst []byte, field string) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(field))), field...)
}
