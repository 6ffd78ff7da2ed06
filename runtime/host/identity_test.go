package host_test

import (
	"context"
	"testing"

	"github.com/thaw-mcp/thaw/runtime/host"
)

func TestIdentity(t *testing.T) {
	if id, ok := host.IdentityFrom(t.Context()); ok || id != (host.Identity{}) {
		t.Errorf("IdentityFrom = %+v, %t out of nowhere", id, ok)
	}
	want := host.Identity{API: "api123", JWT: `{"sub":"alice"}`, IAM: host.IAMCaller{Account: "111122223333", Caller: "AROAEXAMPLE:build", Pooled: true}}
	ctx := host.WithIdentity(t.Context(), want)
	if id, ok := host.IdentityFrom(ctx); !ok || id != want {
		t.Errorf("IdentityFrom = %+v, %t", id, ok)
	}
	// The key is a type that no other package can name.
	type identityKey struct{}
	forged := context.WithValue(t.Context(), identityKey{}, want)
	if _, ok := host.IdentityFrom(forged); ok {
		t.Error("an identity under another key was taken")
	}
}
