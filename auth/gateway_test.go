package auth

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/runtime/host"
)

func TestGateway(t *testing.T) {
	const base = `"iss":"` + testIssuer + `","sub":"alice","aud":"` + testAudience + `"`
	signer := host.IAMCaller{Account: "111122223333", Caller: "AROAEXAMPLE:build"}
	jwtOf := func(claims string) host.Identity { return host.Identity{API: "api1", JWT: claims} }
	lambdaOf := func(object string) host.Identity { return host.Identity{API: "api1", Lambda: object} }
	all := []string{"jwt", "lambda", "iam"}
	alice := thaw.Principal{Scheme: "jwt", Issuer: testIssuer, Subject: "alice"}
	tests := []struct {
		name   string
		kinds  []string
		tenant string
		id     host.Identity
		want   thaw.Principal // without claims; zero and no error: nobody
		err    error
	}{
		{"nobody", all, "", host.Identity{}, thaw.Principal{}, nil},
		{"API alone is nobody", all, "", host.Identity{API: "api1"}, thaw.Principal{}, nil},
		{"kind not named", []string{"lambda", "iam"}, "", jwtOf(`{` + base + `}`), thaw.Principal{}, nil},
		{"function not named", []string{"jwt", "iam"}, "", lambdaOf(`{"sub":"alice"}`), thaw.Principal{}, nil},
		{"IAM not named", []string{"jwt", "lambda"}, "", host.Identity{API: "api1", IAM: signer}, thaw.Principal{}, nil},

		{"token", all, "", jwtOf(`{` + base + `}`), alice, nil},
		{"token, flattened", all, "org", jwtOf(`{"iss":"` + testIssuer + `","sub":"alice","aud":"[https://x.example ` + testAudience + `]","scp":"[a b]","azp":"c","org":"acme","exp":"1796043600"}`),
			thaw.Principal{Scheme: "jwt", Issuer: testIssuer, Subject: "alice", Tenant: "acme", Client: "c", Scopes: []string{"a", "b"}}, nil},
		{"token, times as a REST API writes them", all, "", jwtOf(`{` + base + `,"exp":"Sat Nov 28 10:00:00 UTC 2026","iat":"Sat Nov 28 09:00:00 UTC 2026","scope":"a b"}`),
			thaw.Principal{Scheme: "jwt", Issuer: testIssuer, Subject: "alice", Scopes: []string{"a", "b"}}, nil},
		{"token, brackets in other claims are text", all, "", jwtOf(`{"iss":"` + testIssuer + `","sub":"[alice bob]","aud":"[` + testAudience + `]","azp":"[c d]"}`),
			thaw.Principal{Scheme: "jwt", Issuer: testIssuer, Subject: "[alice bob]", Client: "[c d]"}, nil},
		{"token, other issuer", all, "", jwtOf(`{"iss":"https://evil.example","sub":"alice","aud":"` + testAudience + `"}`), thaw.Principal{}, jwt.ErrTokenInvalidIssuer},
		{"token, other audience", all, "", jwtOf(`{"iss":"` + testIssuer + `","sub":"alice","aud":"https://other.example.com"}`), thaw.Principal{}, jwt.ErrTokenInvalidAudience},
		{"token, audience within another", all, "", jwtOf(`{"iss":"` + testIssuer + `","sub":"alice","aud":"[` + testAudience + `/x x` + testAudience + `]"}`), thaw.Principal{}, jwt.ErrTokenInvalidAudience},
		{"token, client id for the audience", all, "", jwtOf(`{"iss":"` + testIssuer + `","sub":"alice","client_id":"` + testAudience + `"}`), thaw.Principal{}, jwt.ErrTokenRequiredClaimMissing},
		{"token without sub", all, "", jwtOf(`{"iss":"` + testIssuer + `","aud":"` + testAudience + `"}`), thaw.Principal{}, errNoSubject},
		{"token, sub in other letters", all, "", jwtOf(`{"iss":"` + testIssuer + `","SUB":"alice","aud":"` + testAudience + `"}`), thaw.Principal{}, errNoSubject},
		{"token, sub twice", all, "", jwtOf(`{` + base + `,"sub":"mallory"}`), thaw.Principal{}, errIdentity},
		{"ID token", all, "", jwtOf(`{` + base + `,"token_use":"id"}`), thaw.Principal{}, errNoAccess},
		{"ID token by nonce", all, "", jwtOf(`{` + base + `,"nonce":"n"}`), thaw.Principal{}, errNoAccess},
		{"bound token", all, "", jwtOf(`{` + base + `,"cnf":"map[jkt:x]"}`), thaw.Principal{}, errBound},
		{"token without tenant", all, "org", jwtOf(`{` + base + `}`), thaw.Principal{}, errNoTenant},
		{"token, no JSON", all, "", jwtOf(`{`), thaw.Principal{}, errIdentity},
		{"token, a list", all, "", jwtOf(`[]`), thaw.Principal{}, errIdentity},
		{"token before IAM", all, "", host.Identity{API: "api1", JWT: `{` + base + `}`, IAM: signer}, alice, nil},
		{"a bad token does not fall through to IAM", all, "", host.Identity{API: "api1", JWT: `{}`, IAM: signer}, thaw.Principal{}, jwt.ErrTokenRequiredClaimMissing},

		{"function, sub", all, "", lambdaOf(`{"sub":"alice","principalId":"user|a","client_id":"c","scope":"a b"}`),
			thaw.Principal{Scheme: "gateway", Issuer: "api1", Subject: "alice", Client: "c", Scopes: []string{"a", "b"}}, nil},
		{"function, principalId", all, "", lambdaOf(`{"principalId":"user|a","integrationLatency":4,"azp":"z"}`), thaw.Principal{Scheme: "gateway", Issuer: "api1", Subject: "user|a"}, nil},
		{"function, issuer", all, "", lambdaOf(`{"iss":"` + testIssuer + `","aud":"[` + testAudience + `]","sub":"alice"}`), thaw.Principal{Scheme: "gateway", Issuer: testIssuer, Subject: "alice"}, nil},
		{"function, other issuer", all, "", lambdaOf(`{"iss":"https://evil.example","sub":"alice"}`), thaw.Principal{}, errIssuer},
		{"function, other audience", all, "", lambdaOf(`{"aud":"https://other.example.com","sub":"alice"}`), thaw.Principal{}, errAudience},
		{"function, issuer a number", all, "", lambdaOf(`{"iss":7,"sub":"alice"}`), thaw.Principal{}, wrongType("iss")},
		{"function, audience a number", all, "", lambdaOf(`{"aud":7,"sub":"alice"}`), thaw.Principal{}, wrongType("aud")},
		{"function, sub a number", all, "", lambdaOf(`{"sub":7,"principalId":"alice"}`), thaw.Principal{}, wrongType("sub")},
		{"function, client a number", all, "", lambdaOf(`{"sub":"alice","client_id":7}`), thaw.Principal{}, wrongType("client_id")},
		{"function without a subject", all, "", lambdaOf(`{"key":"value"}`), thaw.Principal{}, errNoSubject},
		{"function without anything", all, "", lambdaOf(`{}`), thaw.Principal{}, errNoSubject},
		{"function without issuer and API", all, "", host.Identity{Lambda: `{"sub":"alice"}`}, thaw.Principal{}, errIdentity},
		{"function, tenant", []string{"lambda"}, "org", lambdaOf(`{"sub":"alice","org":"acme"}`), thaw.Principal{Scheme: "gateway", Issuer: "api1", Subject: "alice", Tenant: "acme"}, nil},
		{"function without tenant", []string{"lambda"}, "org", lambdaOf(`{"sub":"alice"}`), thaw.Principal{}, errNoTenant},

		{"IAM", all, "", host.Identity{API: "api1", IAM: signer}, thaw.Principal{Scheme: "iam", Issuer: "aws:111122223333", Subject: "AROAEXAMPLE:build"}, nil},
		{"IAM without an account", all, "", host.Identity{IAM: host.IAMCaller{Caller: "AIDA"}}, thaw.Principal{}, errIdentity},
		{"IAM without a caller", all, "", host.Identity{IAM: host.IAMCaller{Account: "111122223333"}}, thaw.Principal{}, errIdentity},
		{"IAM, an ARN", all, "", host.Identity{IAM: host.IAMCaller{Account: "111122223333", Caller: "arn:aws:iam::111122223333:user/a"}}, thaw.Principal{}, errIdentity},
		{"IAM through an identity pool", all, "", host.Identity{IAM: host.IAMCaller{Account: "111122223333", Caller: "AROAEXAMPLE:CognitoIdentityCredentials", Pooled: true}}, thaw.Principal{}, errPooled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kinds := test.kinds
			if test.tenant != "" {
				kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "iam" })
			}
			g, err := Gateway(GatewayOptions{Kinds: kinds, Issuer: testIssuer, Audiences: []string{testAudience}, TenantClaim: test.tenant})
			if err != nil {
				t.Fatal(err)
			}
			r := requestWith(t, "Bearer ignored")
			r = r.WithContext(host.WithIdentity(r.Context(), test.id))
			got, ok, err := g.Authenticate(r)
			if !errors.Is(err, test.err) || ok != (test.want.Subject != "") {
				t.Fatalf("Authenticate = %+v, %t, %v; want %v", got, ok, err, test.err)
			}
			if hasClaims := got.Claims != nil; hasClaims != (ok && got.Scheme != "iam") {
				t.Errorf("claims %v", got.Claims)
			}
			got.Claims = nil
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("principal %+v, want %+v", got, test.want)
			}
		})
	}
}

// Nothing that a caller can write into a request is an identity.
func TestGatewayReadsNoHeader(t *testing.T) {
	g, err := Gateway(GatewayOptions{Kinds: []string{"jwt", "lambda", "iam"}, Issuer: testIssuer, Audiences: []string{testAudience}})
	if err != nil {
		t.Fatal(err)
	}
	r := requestWith(t, "Bearer "+goodToken(t, nil))
	for _, name := range []string{"X-Amzn-Oidc-Identity", "X-Amzn-Oidc-Data", "X-Amzn-Oidc-Accesstoken", "X-Goog-Authenticated-User-Id", "X-Goog-Authenticated-User-Email", "X-Amzn-Request-Context", "X-Api-Key", "X-Forwarded-User"} {
		r.Header.Set(name, "alice")
	}
	r.URL.RawQuery = "principalId=alice"
	r.TLS = nil
	if who, ok, err := g.Authenticate(r); ok || err != nil {
		t.Errorf("Authenticate = %+v, %t, %v", who, ok, err)
	}
	var empty http.Request
	if _, ok, err := g.Authenticate(&empty); ok || err != nil {
		t.Errorf("Authenticate of an empty request = %t, %v", ok, err)
	}
}

func TestGatewayOptions(t *testing.T) {
	audiences := []string{testAudience}
	tests := []struct {
		name string
		o    GatewayOptions
		says string
	}{
		{"jwt", GatewayOptions{Kinds: []string{"jwt"}, Issuer: testIssuer, Audiences: audiences, TenantClaim: "org"}, ""},
		{"lambda needs nothing", GatewayOptions{Kinds: []string{"lambda"}}, ""},
		{"iam needs nothing", GatewayOptions{Kinds: []string{"iam"}}, ""},
		{"no kind", GatewayOptions{Issuer: testIssuer, Audiences: audiences}, "Kinds is empty; allowed are jwt, lambda and iam"},
		{"unknown kind", GatewayOptions{Kinds: []string{"JWT"}}, `Kinds has "JWT"; allowed are jwt, lambda and iam`},
		{"jwt without issuer", GatewayOptions{Kinds: []string{"jwt"}, Audiences: audiences}, "Issuer"},
		{"jwt without audience", GatewayOptions{Kinds: []string{"jwt"}, Issuer: testIssuer}, "Audiences"},
		{"audience that brackets could not hold", GatewayOptions{Kinds: []string{"jwt"}, Issuer: testIssuer, Audiences: []string{"a b"}}, "Audiences"},
		{"tenants of iam", GatewayOptions{Kinds: []string{"iam"}, TenantClaim: "org"}, "TenantClaim is set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := Gateway(test.o)
			if test.says == "" {
				if err != nil || g == nil {
					t.Errorf("Gateway = %v, %v", g, err)
				}
			} else if err == nil || g != nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("Gateway = %v, %v; want an error with %q", g, err, test.says)
			}
		})
	}
}

func TestBracketed(t *testing.T) {
	tests := []struct {
		text string
		want []string
		ok   bool
	}{
		{"[a b c]", []string{"a", "b", "c"}, true},
		{"[a]", []string{"a"}, true},
		{"[]", []string{}, true},
		{"[ a  b ]", []string{"a", "b"}, true},
		{"[[a] b]", []string{"[a]", "b"}, true},
		{"[a,b]", []string{"a,b"}, true},
		{"[", nil, false},
		{"]", nil, false},
		{"", nil, false},
		{"a b", nil, false},
		{"[a b", nil, false},
		{"a b]", nil, false},
		{" [a]", nil, false},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			if got, ok := bracketed(test.text); ok != test.ok || !slices.Equal(got, test.want) {
				t.Errorf("bracketed = %q, %t; want %q, %t", got, ok, test.want, test.ok)
			}
		})
	}
}

// FuzzBracketed: what a gateway makes of a list of words becomes that list again.
func FuzzBracketed(f *testing.F) {
	for _, text := range []string{"", "[]", "[a b]", "[[a b]]", "a", "[ ", " ]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, ok := bracketed(text)
		if ok != (len(text) > 1 && strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")) {
			t.Errorf("bracketed(%q) = %q, %t", text, list, ok)
		}
		for _, element := range list {
			if element == "" || strings.Contains(element, " ") || !strings.Contains(text, element) {
				t.Errorf("bracketed(%q) has %q", text, element)
			}
		}
		again, ok := bracketed("[" + strings.Join(words(text), " ") + "]")
		if !ok || !slices.Equal(again, words(text)) {
			t.Errorf("%q became %q", words(text), again)
		}
	})
}
