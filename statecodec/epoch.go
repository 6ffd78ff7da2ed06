package statecodec

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// An epoch is a day, counted from 1970 in UTC. Each has keys of its own.

const day = 24 * time.Hour

func epochOf(t time.Time) uint32 { return uint32(t.Unix() / int64(day/time.Second)) }

func startOf(epoch uint32) time.Time {
	return time.Unix(int64(epoch)*int64(day/time.Second), 0)
}

// rootSize is that of HMAC-SHA-256.
const rootSize = sha256.Size

// rootMessage is what a key service computes the MAC of. All instances that ask for an
// epoch get the same root.
func rootMessage(epoch uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("thaw/v1/root\x00"), epoch)
}

// epochKeys are what the root of a key and an epoch is for.
type epochKeys struct {
	state   *xaes
	records []byte // of which recordKey makes one a purpose
}

// deriveKeys clears root.
func deriveKeys(root []byte) (*epochKeys, error) {
	defer clear(root)
	state, err := expand(root, "thaw/v1/requestState/XAES-256-GCM")
	if err != nil {
		return nil, err
	}
	records, err := hkdf.Expand(sha256.New, root, "thaw/v1/records", rootSize)
	if err != nil {
		return nil, err
	}
	return &epochKeys{state, records}, nil
}

func (k *epochKeys) recordKey(purpose string) (*xaes, error) { return expand(k.records, purpose) }

func expand(secret []byte, info string) (*xaes, error) {
	key, err := hkdf.Expand(sha256.New, secret, info, keySize)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return newXAES(key)
}

// openState opens what sealToken sealed, without a look at times or binding.
func (k *epochKeys) openState(h header, sealed []byte) (State, Binding, error) {
	plaintext, err := k.state.open(sealed, h.data(prefix))
	if err != nil {
		return State{}, Binding{}, err
	}
	s, b, ok := decode(plaintext)
	if !ok {
		return State{}, Binding{}, ErrForged
	}
	return s, b, nil
}
