package statecodec

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	k := newFakeKey("file:a", 1)
	c := newCodec(t, &Options{Now: at(vectorNow, 90*time.Second)}, k)
	token := mustSeal(t, newCodec(t, &Options{Now: at(vectorNow, 0)}, newFakeKey("file:a", 1)), someState("secret journal"), someBinding)
	foreign := mustSeal(t, newCodec(t, &Options{Now: at(vectorNow, 0)}, newFakeKey("file:b", 1)), someState(""), someBinding)
	describe := func(token string) map[string]string {
		got := map[string]string{}
		for _, a := range c.Describe(token) {
			got[a.Key] = a.Value.String()
		}
		return got
	}
	hash := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:8])
	}
	check := func(name, token string, want map[string]string) {
		t.Helper()
		want["state"] = hash(token)
		if got := describe(token); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	kidA, kidB := KID("file:a"), KID("file:b")
	check("cold", token, map[string]string{"kid": kidA, "epoch": "20787"})
	if k.calls.Load() != 0 {
		t.Error("describing called the key service")
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("genuine", token, map[string]string{"kid": kidA, "epoch": "20787", "age": "1m30s"})
	forged := rawToken(t, token)
	forged[50] ^= 1
	check("forged", encodeToken(forged), map[string]string{"kid": kidA, "epoch": "20787"})
	check("unknown key", foreign, map[string]string{"kid": kidB, "epoch": "20787"})
	check("malformed", "secret", map[string]string{})
	check("too large", strings.Repeat("A", 200_000), map[string]string{})

	var line strings.Builder
	slog.New(slog.NewTextHandler(&line, nil)).LogAttrs(t.Context(), slog.LevelInfo, "refused", c.Describe(token)...)
	if strings.Contains(line.String(), token) || strings.Contains(line.String(), token[11:43]) || strings.Contains(line.String(), "secret") {
		t.Errorf("logged %s", line.String())
	}
}
