package statecodec

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"testing"
	"time"
)

// The vector of the format's design, made by independent code.
const (
	vectorNow    = 1796040000
	vectorDigest = "60f8468d8f072fdd8e033e8d0d861dec65bfa9b4a45cf079fba531b5440a50ac"
	vectorToken  = "t1.6puX8gAAUTNBQkNERUZHSElKS0xNTk9QUVJTVFVWV1jjtL24WO6AqxeVUB5zfcXPDa5NTB4ujxi6QGFObUBaFniUxDanzuLO44MjIYl3gLNyXUpiYwjq3JfkbI27BgNKFb8G6J8sTb8XE9cvff72d2icozToI4Gv5qyzvZHGpfRKIFzRgw-3aDnP9tIgIfbu6ZU9itIl-7FejQd9KA4FbltFZ_MoYRQ9kBIWJ1awrPyv-T6ONvkMb7eLiePaOmOphNQ0NPDwpARKGodzF2dbqEKk1dCYSqjow2m_8yExBZpbkkm3tz4YzdzkGjy1ahAT"
)

var (
	vectorKey   = newFakeKey("file:k1", 7)
	vectorNonce = []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
	vectorState = State{
		CallID:  CallID(bytes.Repeat([]byte{0xd1}, 16)),
		Started: time.Unix(vectorNow, 0).UTC(), Issued: time.Unix(vectorNow, 0).UTC(), Expires: time.Unix(vectorNow+3600, 0).UTC(),
		Round:   1,
		Journal: []byte(`{"a":{"confirm_delete":["9f2c11d0a7e45b38",{"action":"accept"}]}}`),
	}
)

func vectorBinding(t testing.TB) Binding {
	t.Helper()
	digest, err := hex.DecodeString(vectorDigest)
	if err != nil {
		t.Fatal(err)
	}
	return Binding{
		Audience:  Audience("https://mcp.example.com/mcp"),
		Principal: Principal("jwt", "https://idp.example.com", "auth0|6650f2c1e4b0a1", "", "https://client.example/cimd.json"),
		Request:   Request("tools/call", "delete_files", [32]byte(digest)),
	}
}

func TestVector(t *testing.T) {
	now := time.Unix(vectorNow, 0)
	h := header{kid: kidOf(vectorKey.ID()), epoch: epochOf(now)}
	if got := KID(vectorKey.ID()); got != "ea9b97f2" || got != hex.EncodeToString(h.kid[:]) {
		t.Errorf("kid %s", got)
	}
	if h.epoch != 20787 {
		t.Errorf("epoch %d", h.epoch)
	}
	root, err := vectorKey.MAC(t.Context(), rootMessage(h.epoch))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(root); got != "15c10df041b54a552682e62e0766057162fd0a72b27fe0fad6a22903780f94a6" {
		t.Errorf("root %s", got)
	}
	k, err := hkdf.Expand(sha256.New, root, "thaw/v1/requestState/XAES-256-GCM", keySize)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(k); got != "a065ca494ed5401bf7f095cad94baef47d63345ff9149fc715a8f536da809609" {
		t.Errorf("K %s", got)
	}
	keys, err := deriveKeys(root)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(root, make([]byte, rootSize)) {
		t.Error("the root was not cleared")
	}
	b := vectorBinding(t)
	s := State{CallID: vectorState.CallID, Round: 1, Journal: vectorState.Journal}
	if err := s.stamp(now, DefaultTTL); err != nil {
		t.Fatal(err)
	}
	sealed := keys.state.sealFixed(t, vectorNonce, s.encode(&b), h.data(prefix))
	if got := encodeToken(append(h.append(nil), sealed...)); got != vectorToken {
		t.Errorf("sealed to\n%s, want\n%s", got, vectorToken)
	}
}

func TestVectorOpens(t *testing.T) {
	for _, after := range []time.Duration{0, time.Hour - time.Nanosecond, -time.Minute} {
		c := newCodec(t, &Options{Now: at(vectorNow, after)}, vectorKey)
		got, err := c.Open(t.Context(), vectorToken, vectorBinding(t), 0)
		if err != nil {
			t.Fatalf("%v after it was sealed: %v", after, err)
		}
		if !reflect.DeepEqual(got, vectorState) {
			t.Errorf("opened to %+v, want %+v", got, vectorState)
		}
	}
}
