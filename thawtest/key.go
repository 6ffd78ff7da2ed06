package thawtest

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// memoryKey is a state key that lives as long as its test.
type memoryKey [32]byte

func newMemoryKey() (k memoryKey) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// ID implements statecodec.Key.
func (k memoryKey) ID() string {
	id, _ := k.MAC(context.Background(), []byte("id"))
	return "thawtest:" + hex.EncodeToString(id[:8])
}

// MAC implements statecodec.Key.
func (k memoryKey) MAC(_ context.Context, message []byte) ([]byte, error) {
	h := hmac.New(sha256.New, k[:])
	h.Write(message)
	return h.Sum(nil), nil
}
