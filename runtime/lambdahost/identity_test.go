package lambdahost

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/thaw-mcp/thaw/runtime/host"
)

// identityOf returns the identity that the handler of event finds.
func identityOf(t testing.TB, event map[string]any) (host.Identity, bool) {
	t.Helper()
	r, _ := capture(t, event)
	return host.IdentityFrom(r.Context())
}

func withContext(shell map[string]any, members map[string]any) map[string]any {
	return overlay(shell, map[string]any{"requestContext": members})
}

func TestIdentity(t *testing.T) {
	signer := map[string]any{"accountId": "111122223333", "caller": "AROAEXAMPLE:build", "user": "AROAEXAMPLE:build", "userArn": "arn:aws:sts::111122223333:assumed-role/r/build", "accessKey": "ASIASECRET"}
	signer2 := map[string]any{"accountId": "111122223333", "callerId": "AROAEXAMPLE:build", "userId": "AROAEXAMPLE", "userArn": "arn:aws:sts::111122223333:assumed-role/r/build", "accessKey": "ASIASECRET", "cognitoIdentity": nil}
	caller := host.IAMCaller{Account: "111122223333", Caller: "AROAEXAMPLE:build"}
	pooled := host.IAMCaller{Account: "111122223333", Caller: "AROAEXAMPLE:CognitoIdentityCredentials", Pooled: true}
	claims := map[string]any{"sub": "alice", "scope": "[a b]"}
	const claimsText = `{"scope":"[a b]","sub":"alice"}`

	tests := []struct {
		name  string
		event map[string]any
		want  host.Identity
	}{
		{"REST, Cognito authorizer", withContext(shellV1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": claims}}),
			host.Identity{API: "api1", JWT: claimsText}},
		{"REST, authorizer function", withContext(shellV1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"principalId": "alice", "integrationLatency": 4}}),
			host.Identity{API: "api1", Lambda: `{"integrationLatency":4,"principalId":"alice"}`}},
		{"REST, function that writes claims is no token", withContext(shellV1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": claims, "principalId": "mallory"}}),
			host.Identity{API: "api1", Lambda: `{"claims":` + claimsText + `,"principalId":"mallory"}`}},
		{"REST, function that writes what payload 2.0 has", withContext(shellV1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"jwt": map[string]any{"claims": claims}, "iam": signer2}}),
			host.Identity{API: "api1", Lambda: `{"iam":{"accessKey":"ASIASECRET","accountId":"111122223333","callerId":"AROAEXAMPLE:build","cognitoIdentity":null,"userArn":"arn:aws:sts::111122223333:assumed-role/r/build","userId":"AROAEXAMPLE"},"jwt":{"claims":` + claimsText + `}}`}},
		{"REST, IAM", withContext(shellV1(), map[string]any{"apiId": "api1", "identity": signer}),
			host.Identity{API: "api1", IAM: caller}},
		{"REST, IAM through an identity pool", withContext(shellV1(), map[string]any{"apiId": "api1", "identity": overlay(signer, map[string]any{"caller": pooled.Caller, "cognitoIdentityId": "eu-west-1:1"})}),
			host.Identity{API: "api1", IAM: pooled}},
		{"REST, API key alone is nobody", withContext(shellV1(), map[string]any{"apiId": "api1", "identity": map[string]any{"apiKey": "secret", "apiKeyId": "k", "caller": nil, "accountId": nil}}),
			host.Identity{}},
		{"HTTP 1.0, no authorizer", withContext(shellHTTP1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": nil, "scopes": nil}}),
			host.Identity{}},
		{"HTTP 1.0, IAM", withContext(shellHTTP1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": nil, "scopes": nil}, "identity": signer}),
			host.Identity{API: "api1", IAM: caller}},
		{"HTTP 1.0, JWT authorizer", withContext(shellHTTP1(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": claims, "scopes": []any{"a"}}}),
			host.Identity{API: "api1", JWT: claimsText}},
		{"HTTP 2.0, JWT authorizer", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"jwt": map[string]any{"claims": claims, "scopes": nil}}}),
			host.Identity{API: "api1", JWT: claimsText}},
		{"HTTP 2.0, authorizer function", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"lambda": map[string]any{"sub": "alice", "claims": claims, "jwt": 1}}}),
			host.Identity{API: "api1", Lambda: `{"claims":` + claimsText + `,"jwt":1,"sub":"alice"}`}},
		{"HTTP 2.0, authorizer function without a context", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"lambda": nil}}),
			host.Identity{}},
		{"HTTP 2.0, IAM", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"iam": signer2}}),
			host.Identity{API: "api1", IAM: caller}},
		{"HTTP 2.0, IAM through an identity pool", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"iam": overlay(signer2, map[string]any{"callerId": pooled.Caller, "cognitoIdentity": map[string]any{"identityId": "eu-west-1:1"}})}}),
			host.Identity{API: "api1", IAM: pooled}},
		{"HTTP 2.0, members of payload 1.0 mean nothing", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": claims, "principalId": "alice"}, "identity": signer}),
			host.Identity{}},
		{"HTTP 2.0, wrong types are nobody", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"jwt": "x", "lambda": []any{1}, "iam": 7}}),
			host.Identity{}},
		{"authorizer of a wrong type", withContext(shellV2(), map[string]any{"apiId": "api1", "authorizer": "alice"}), host.Identity{}},
		{"Function URL, IAM", withContext(shellFURL(), map[string]any{"apiId": "url1", "authorizer": map[string]any{"iam": signer2}}),
			host.Identity{API: "url1", IAM: caller}},
		{"Function URL has no other kind", withContext(shellFURL(), map[string]any{"apiId": "url1", "authorizer": map[string]any{"jwt": map[string]any{"claims": claims}, "lambda": claims}}),
			host.Identity{}},
		{"ALB says nothing", withContext(shellALB(), map[string]any{"apiId": "api1", "authorizer": map[string]any{"claims": claims, "principalId": "alice"}, "identity": signer}),
			host.Identity{}},
		{"no authorizer", withContext(shellV2(), map[string]any{"apiId": "api1"}), host.Identity{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := identityOf(t, test.event)
			if got != test.want || ok != (test.want != host.Identity{}) {
				t.Errorf("identity %+v, %t; want %+v", got, ok, test.want)
			}
		})
	}
}

// Whatever a caller writes into headers, body, path or query makes no identity.
func TestIdentityNeverFromTheCaller(t *testing.T) {
	forged := map[string]any{
		"x-amzn-oidc-identity": "alice", "x-amzn-oidc-data": "e30.e30.", "x-amzn-oidc-accesstoken": "e30.e30.",
		"x-goog-authenticated-user-id": "alice", "x-goog-authenticated-user-email": "alice@example.com",
		"x-amzn-request-context": `{"authorizer":{"iam":{"accountId":"1","callerId":"AIDA"}}}`,
		"x-apigateway-event":     `{"requestContext":{"authorizer":{"principalId":"alice"}}}`, "x-forwarded-user": "alice",
	}
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			over := map[string]any{
				"headers": forged, "body": `{"requestContext":{"authorizer":{"principalId":"alice"}}}`,
				"rawQueryString": "authorizer=alice", "authorizer": map[string]any{"principalId": "alice"},
				"identity": map[string]any{"accountId": "111122223333", "caller": "AIDA"},
			}
			if _, has := shell["multiValueHeaders"]; has {
				over["multiValueHeaders"] = asLists(forged)
			}
			if id, ok := identityOf(t, overlay(shell, over)); ok {
				t.Errorf("identity %+v", id)
			}
		})
	}
}

// TestIdentityOfAWSFixtures reads the events that AWS publishes.
func TestIdentityOfAWSFixtures(t *testing.T) {
	fixtures := awsFixtures(t, "events")
	want := map[string]host.Identity{
		"apigw-v2-request-iam.json": {API: "api-id",
			IAM: host.IAMCaller{Account: "1234567890", Caller: "AROA7ZJZYVRE7C3DUXHH6:CognitoIdentityCredentials", Pooled: true}},
		"apigw-v2-request-jwt-authorizer.json":    {API: "api-id", JWT: `{"claim1":"value1","claim2":"value2"}`},
		"apigw-v2-request-lambda-authorizer.json": {API: "api-id", Lambda: `{"key":"value"}`},
		"apigw-v2-request-no-authorizer.json":     {},
		"lambda-urls-request.json":                {API: "<urlid>", IAM: host.IAMCaller{Account: "111122223333", Caller: "AIDA..."}},
		"apigw-request.json": {API: "gy415nuibc", Lambda: `{"clientId":1,"clientName":"Exata","principalId":"admin"}`,
			IAM: host.IAMCaller{Account: "theAccountId", Caller: "theCaller", Pooled: true}},
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Run(name, func(t *testing.T) {
			got, ok := identityOf(t, decodeAs[map[string]any](t, fixtures[name]))
			got.JWT, got.Lambda = compact(t, got.JWT), compact(t, got.Lambda)
			if got != want[name] || ok != (want[name] != host.Identity{}) {
				t.Errorf("identity %+v, %t; want %+v", got, ok, want[name])
			}
		})
	}
}

// compact puts an object's members in order.
func compact(t testing.TB, object string) string {
	t.Helper()
	if object == "" {
		return ""
	}
	return string(encodeEvent(t, decodeAs[map[string]json.RawMessage](t, []byte(object))))
}
