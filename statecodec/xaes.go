package statecodec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
)

// xaes is XAES-256-GCM as https://c2sp.org/XAES-256-GCM has it: AES-256-GCM under a subkey
// made of the key and the first half of a nonce of 24 random bytes, so that one key seals
// as many messages as anyone will. It is safe for concurrent use.
type xaes struct {
	block  cipher.Block
	subkey [aes.BlockSize]byte // CMAC's K1
}

const (
	keySize       = 32
	halfNonceSize = 12
	nonceSize     = 2 * halfNonceSize
	tagSize       = 16
)

func newXAES(key []byte) (*xaes, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &xaes{block: block}
	k := &x.subkey
	block.Encrypt(k[:], k[:])
	msb := byte(0)
	for i := len(k) - 1; i >= 0; i-- {
		msb, k[i] = k[i]>>7, k[i]<<1|msb
	}
	k[len(k)-1] ^= byte(subtle.ConstantTimeSelect(int(msb), 0b10000111, 0))
	return x, nil
}

// derive returns the AES-256 key for messages whose nonce starts with half.
func (x *xaes) derive(half []byte) (cipher.Block, error) {
	var key [keySize]byte
	defer clear(key[:])
	for i, counter := range []byte{1, 2} {
		m := [aes.BlockSize]byte{0, counter, 'X', 0}
		copy(m[4:], half)
		subtle.XORBytes(m[:], m[:], x.subkey[:])
		x.block.Encrypt(key[i*aes.BlockSize:], m[:])
	}
	return aes.NewCipher(key[:])
}

// seal appends nonce, ciphertext and tag. The second half of the nonce is drawn inside
// the cipher, which is the only way that FIPS 140-3 allows.
func (x *xaes) seal(dst, plaintext, data []byte) ([]byte, error) {
	var half [halfNonceSize]byte
	rand.Read(half[:])
	block, err := x.derive(half[:])
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return gcm.Seal(append(dst, half[:]...), nil, plaintext, data), nil
}

// open takes what seal appended.
func (x *xaes) open(sealed, data []byte) ([]byte, error) {
	if len(sealed) < nonceSize+tagSize {
		return nil, ErrMalformed
	}
	block, err := x.derive(sealed[:halfNonceSize])
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	plaintext, err := gcm.Open(nil, nil, sealed[halfNonceSize:], data)
	if err != nil {
		return nil, ErrForged
	}
	return plaintext, nil
}
