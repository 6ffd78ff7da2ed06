package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
)

// gatewayEvent is a call of t as the event of a front door, with this request context.
func gatewayEvent(t *testing.T, payload, requestContext string, headers map[string]string) []byte {
	t.Helper()
	lines := map[string]string{"content-type": "application/json", "mcp-protocol-version": mcp.Version, "mcp-method": "tools/call", "mcp-name": "t"}
	for name, value := range headers {
		lines[name] = value
	}
	event := map[string]any{
		"headers": lines, "requestContext": json.RawMessage(requestContext), "isBase64Encoded": false,
		"body": `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":` + goodMeta + `,"name":"t"}}`,
	}
	if payload == "2.0" {
		event["version"], event["rawPath"] = payload, "/mcp"
	} else {
		event["httpMethod"], event["path"] = http.MethodPost, "/mcp"
	}
	raw, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Whom a gateway has verified calls, and nobody else: an identity is taken from the event's
// request context by the kinds that are named, never from a header (S-01).
func TestGatewayIdentities(t *testing.T) {
	const jwtContext = `{"apiId":"api1","stage":"$default","domainName":"api1.execute-api.eu-west-1.amazonaws.com","http":{"method":"POST","path":"/mcp"},
		"authorizer":{"jwt":{"claims":{"iss":"https://idp.example.com","aud":"[https://mcp.example.com/mcp]","sub":"alice","scope":"files:read files:write","client_id":"app"},"scopes":null}}}`
	for _, c := range []struct {
		name, kinds, payload, context string
		headers                       map[string]string
		status                        int
		caller                        string
	}{
		{"a token's", "jwt", "2.0", jwtContext, nil, 200, "jwt https://idp.example.com alice app [files:read files:write]"},
		{"a token's for another server", "jwt", "2.0", strings.Replace(jwtContext, "mcp.example.com/mcp", "other.example.com/mcp", 1), nil, 401, ""},
		{"a token's without the scopes", "jwt", "2.0", strings.Replace(jwtContext, "files:write", "files:none", 1), nil, 403, ""},
		{"a token's where only signatures count", "iam", "2.0", jwtContext, nil, 401, ""},
		{"an authorizer's", "lambda", "1.0", `{"apiId":"api1","httpMethod":"POST","path":"/mcp","authorizer":{"principalId":"robot","scope":"files:read files:write"}}`, nil, 200, "gateway api1 robot  [files:read files:write]"},
		{"nobody's", "jwt,lambda,iam", "2.0", `{"apiId":"api1","http":{"method":"POST","path":"/mcp"}}`, nil, 401, ""},
		{"one that the caller wrote", "jwt,lambda,iam", "2.0", `{"apiId":"api1","http":{"method":"POST","path":"/mcp"}}`,
			map[string]string{"x-amzn-oidc-identity": "alice", "authorization": "Bearer junk", "x-goog-authenticated-user-id": "alice"}, 401, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pairs := []string{"THAW_AUTH", "gateway", "THAW_GATEWAY", c.kinds, "THAW_STORE", "none", "THAW_STATE_KEY", "none"}
			if strings.Contains(c.kinds, "jwt") {
				pairs = append(pairs, "THAW_JWT_ISSUER", "https://idp.example.com", "THAW_PUBLIC_URL", publicURL)
			}
			o, problems := configured(env(pairs...), lambdahost.Host())
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var caller string
			h, _ := newHandler(t, thaw.Server{Tools: []*thaw.Tool{tool1(func(ctx context.Context) (any, error) {
				p := thaw.CallInfoFrom(ctx).Principal
				caller = fmt.Sprint(p.Scheme, " ", p.Issuer, " ", p.Subject, " ", p.Client, " ", p.Scopes)
				return 1, nil
			}, &thaw.ToolOptions{Scopes: []string{"files:read", "files:write"}})}}, *o)
			raw, err := lambdahost.NewInvoker(h).Invoke(t.Context(), gatewayEvent(t, c.payload, c.context, c.headers))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				StatusCode        int
				Headers           map[string]string
				MultiValueHeaders map[string][]string
				Body              string
			}
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != c.status || caller != c.caller {
				t.Errorf("got %d %s, caller %q", got.StatusCode, got.Body, caller)
			}
			challenged := len(got.MultiValueHeaders["Www-Authenticate"])+len(got.Headers["Www-Authenticate"]) > 0
			if challenged != (c.status != 200) {
				t.Errorf("headers %v %v", got.Headers, got.MultiValueHeaders)
			}
		})
	}
}
