package statecodec

import (
	"bytes"
	"crypto/cipher"
	"crypto/sha3"
	"encoding/hex"
	"testing"
)

// sealFixed is seal with a nonce of the test's choice.
func (x *xaes) sealFixed(t testing.TB, nonce, plaintext, data []byte) []byte {
	t.Helper()
	block, err := x.derive(nonce[:halfNonceSize])
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.Clone(nonce), gcm.Seal(nil, nonce[halfNonceSize:], plaintext, data)...)
}

func mustXAES(t testing.TB, key []byte) *xaes {
	t.Helper()
	x, err := newXAES(key)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestXAESVectors are the vectors of c2sp.org/XAES-256-GCM: one for each value of the bit
// that the subkey depends on.
func TestXAESVectors(t *testing.T) {
	for _, c := range []struct {
		name                  string
		key                   byte
		subkey, data, want    string
		plaintext, nonceAscii string
	}{
		{"MSB of L is 0", 1, "e531954aca063d5b8d9c47a47d4cc6f0", "",
			"ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271", "XAES-256-GCM", "ABCDEFGHIJKLMNOPQRSTUVWX"},
		{"MSB of L is 1", 3, "23810ec50edb99f374409466ed1f4b7b", "c2sp.org/XAES-256-GCM",
			"986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d", "XAES-256-GCM", "ABCDEFGHIJKLMNOPQRSTUVWX"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := mustXAES(t, bytes.Repeat([]byte{c.key}, keySize))
			if got := hex.EncodeToString(x.subkey[:]); got != c.subkey {
				t.Errorf("K1 is %s, want %s", got, c.subkey)
			}
			sealed := x.sealFixed(t, []byte(c.nonceAscii), []byte(c.plaintext), []byte(c.data))
			if got := hex.EncodeToString(sealed[nonceSize:]); got != c.want {
				t.Errorf("sealed to %s, want %s", got, c.want)
			}
			if got, err := x.open(sealed, []byte(c.data)); err != nil || string(got) != c.plaintext {
				t.Errorf("opened to %q, %v", got, err)
			}
		})
	}
}

// TestXAESAccumulated is the specification's randomized test with 10,000 rounds.
func TestXAESAccumulated(t *testing.T) {
	source, sum := sha3.NewSHAKE128(), sha3.NewSHAKE128()
	read := func(n int) []byte {
		b := make([]byte, n)
		source.Read(b)
		return b
	}
	for range 10_000 {
		key, nonce := read(keySize), read(nonceSize)
		plaintext := read(int(read(1)[0]))
		data := read(int(read(1)[0]))
		x := mustXAES(t, key)
		sealed := x.sealFixed(t, nonce, plaintext, data)
		if got, err := x.open(sealed, data); err != nil || !bytes.Equal(got, plaintext) {
			t.Fatalf("does not open: %v", err)
		}
		sum.Write(sealed[nonceSize:])
	}
	got := make([]byte, 32)
	sum.Read(got)
	if want := "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939"; hex.EncodeToString(got) != want {
		t.Errorf("accumulated to %x, want %s", got, want)
	}
}

func TestXAESSealsAnewEachTime(t *testing.T) {
	x := mustXAES(t, bytes.Repeat([]byte{1}, keySize))
	first, second := map[string]bool{}, map[string]bool{}
	const n = 1000
	for range n {
		sealed, err := x.seal([]byte("head"), []byte("text"), nil)
		if err != nil || string(sealed[:4]) != "head" {
			t.Fatalf("sealed %q, %v", sealed, err)
		}
		sealed = sealed[4:]
		first[string(sealed[:halfNonceSize])] = true
		second[string(sealed[halfNonceSize:nonceSize])] = true
		if got, err := x.open(sealed, nil); err != nil || string(got) != "text" {
			t.Fatalf("opened to %q, %v", got, err)
		}
	}
	if len(first) != n || len(second) != n {
		t.Errorf("%d and %d different halves of %d nonces", len(first), len(second), n)
	}
}
