package wire

import "testing"

// TestSchema: the validator accepts what is right and refuses each kind of wrong, or
// "every message was valid" would mean nothing.
func TestSchema(t *testing.T) {
	s, err := LoadSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, method, message string
		valid                 bool
	}{
		{"result", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"x"}]}}`, true},
		{"result without its type", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, false},
		{"result without content", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`, false},
		{"block without text", "tools/call", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text"}]}}`, false},
		{"list without hints", "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}`, false},
		{"list", "tools/list", `{"jsonrpc":"2.0","id":"1","result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}`, true},
		{"result of another method", "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}`, false},
		{"error without an id", "tools/call", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, true},
		{"error with id null", "tools/call", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, false},
		{"unsupported version without data", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x"}}`, false},
		{"missing capability with a list", "tools/call", `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"x","data":{"requiredCapabilities":["sampling"]}}}`, false},
		{"progress", "tools/call", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}`, true},
		{"progress without progress", "tools/call", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`, false},
		{"unknown notification", "tools/call", `{"jsonrpc":"2.0","method":"notifications/other"}`, false},
		{"unknown method", "tools/other", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := s.Validate(c.method, []byte(c.message)); (err == nil) != c.valid {
				t.Errorf("valid is %v, want %v: %v", err == nil, c.valid, err)
			}
		})
	}
}
