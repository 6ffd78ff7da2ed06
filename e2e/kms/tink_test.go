package kms

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/xaesgcm"
	"github.com/tink-crypto/tink-go/v2/insecuresecretdataaccess"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/secretdata"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/thaw-mcp/thaw/statecodec"
)

// plainKey is a key whose secret the test has.
type plainKey []byte

func (plainKey) ID() string { return "test:plain" }

func (k plainKey) MAC(_ context.Context, message []byte) ([]byte, error) {
	h := hmac.New(sha256.New, k)
	h.Write(message)
	return h.Sum(nil), nil
}

// tinkFor is Tink's XAES-256-GCM under the key that tokens of k and this epoch have.
func tinkFor(t *testing.T, k plainKey, epoch []byte) tink.AEAD {
	t.Helper()
	root, err := k.MAC(t.Context(), append([]byte("thaw/v1/root\x00"), epoch...))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := hkdf.Expand(sha256.New, root, "thaw/v1/requestState/XAES-256-GCM", 32)
	if err != nil {
		t.Fatal(err)
	}
	// A salt of 12 bytes is the first half of the nonce as the specification has it.
	parameters, err := xaesgcm.NewParameters(xaesgcm.VariantNoPrefix, 12)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xaesgcm.NewKey(secretdata.NewBytesFromData(secret, insecuresecretdataaccess.Token{}), 0, parameters)
	if err != nil {
		t.Fatal(err)
	}
	manager := keyset.NewManager()
	id, err := manager.AddKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.SetPrimary(id); err != nil {
		t.Fatal(err)
	}
	handle, err := manager.Handle()
	if err != nil {
		t.Fatal(err)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		t.Fatal(err)
	}
	return primitive
}

// TestTink: Tink opens what we seal, and we open what Tink seals.
func TestTink(t *testing.T) {
	k := plainKey("a secret that the test knows too")
	c := instance(t, k)
	for _, n := range []int{0, 1, 44, 45, 5000, statecodec.MaxJournal} {
		s := statecodec.State{CallID: statecodec.NewCallID(), Round: 1, Journal: bytes.Repeat([]byte("j"), n)}
		token, err := c.Seal(t.Context(), s, binding)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "t1."))
		if err != nil {
			t.Fatal(err)
		}
		header, sealed := raw[:8], raw[8:]
		data := append([]byte("t1."), header...)
		theirs := tinkFor(t, k, header[4:])
		plaintext, err := theirs.Decrypt(sealed, data)
		if err != nil {
			t.Fatalf("Tink does not open a state of %d bytes: %v", n, err)
		}
		if !bytes.Equal(plaintext[:16], s.CallID[:]) || int(binary.BigEndian.Uint16(plaintext[98:])) != n || !bytes.Equal(plaintext[100:100+n], s.Journal) {
			t.Errorf("Tink opens a state of %d bytes to another", n)
		}

		resealed, err := theirs.Encrypt(plaintext, data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Open(t.Context(), "t1."+base64.RawURLEncoding.EncodeToString(append(bytes.Clone(header), resealed...)), binding, 0)
		if err != nil || got.CallID != s.CallID || !bytes.Equal(got.Journal, s.Journal) {
			t.Errorf("what Tink sealed of %d bytes opens to %v, %v", n, got.CallID, err)
		}
	}
}
