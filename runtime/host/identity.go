package host

import "context"

// Identity is the caller as the platform in front of a host has verified it: what a gateway
// says beside the request, never in one of its headers, which anybody can send. It is raw;
// whoever reads it decides which of its kinds to trust. The zero value is nobody.
type Identity struct {
	// API is the platform's id of the gateway that speaks.
	API string
	// JWT is the JSON object of a token's claims; "" if the gateway judged no token.
	JWT string
	// Lambda is the JSON object that an authorizer function put together; "" if there was none.
	Lambda string
	// IAM is the caller whose signature the platform verified.
	IAM IAMCaller
}

// IAMCaller is an AWS principal.
type IAMCaller struct {
	// Account is the account of the caller, not of the API.
	Account string
	// Caller is its unique id: of a user AIDA…, of a role's session AROA…:session.
	Caller string
	// Pooled: the caller came through a Cognito identity pool, all of whose users share one id.
	Pooled bool
}

type identityKey struct{}

// WithIdentity hands a verified identity to the handler. Only a host may call it, and only
// with what its platform says outside of the request that the caller wrote.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityFrom is the identity that the host handed over; ok is false if it had none.
func IdentityFrom(ctx context.Context) (id Identity, ok bool) {
	id, ok = ctx.Value(identityKey{}).(Identity)
	return id, ok
}
