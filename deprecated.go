package thaw

import (
	"context"
	"encoding/json"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Sample asks the client's model: params are those of sampling/createMessage, with
// maxTokens. The answer is the client's bare result, {"role", "content", "model"}.
// It suspends and fails as every question does; params that are no object, or lack messages
// or maxTokens, are misuse.
//
// Deprecated: sampling is deprecated by the protocol (SEP-2577, earliest removal
// 2027-07-28).
func Sample(ctx context.Context, key string, params json.RawMessage) (json.RawMessage, error) {
	at := call.Here(1)
	compact, err := strictjson.AppendCompact(nil, params)
	switch {
	case err != nil:
		return nil, misuse(ctx, key, at, "the parameters: "+err.Error())
	case strictjson.Kind(compact) != '{' || strictjson.Kind(strictjson.Member(compact, "messages")) != '[':
		return nil, misuse(ctx, key, at, "the parameters are no object with messages")
	case strictjson.Kind(strictjson.Member(compact, "maxTokens")) != '0':
		return nil, misuse(ctx, key, at, "the parameters have no maxTokens")
	}
	return ask(ctx, call.Question{Key: key, Method: mcp.MethodSample, Params: compact}, at)
}

// Roots asks for the URIs of the client's roots: guidance about where to work, no rights
// . It suspends and fails as every question does.
//
// Deprecated: roots are deprecated by the protocol (SEP-2577, earliest removal 2027-07-28).
func Roots(ctx context.Context, key string) ([]string, error) {
	answer, err := ask(ctx, call.Question{Key: key, Method: mcp.MethodRoots, Params: []byte("{}")}, call.Here(1))
	if err != nil {
		return nil, err
	}
	uris := []string{}
	for root := range strictjson.Elements(strictjson.Member(answer, "roots")) {
		uri, _ := strictjson.String(strictjson.Member(root, "uri")) // the answer was checked
		uris = append(uris, uri)
	}
	return uris, nil
}
