package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
)

var multiRoundTrips = map[string]verdict{
	"B-34": {scenes: []scene{
		{
			says: []string{"each: JSON-RPC error -32602 (400 or 200), no transfer", "same message for all forgeries"},
			items: append(forgeryNames(), "tools/call transfer {to: A, amount: 10} → input_required with requestState S",
				"retry with inputResponses accept and each of the states below"),
			play: forgedStates,
		},
		{
			says: []string{"the state is not readable: neither arguments nor principal occur in S or its base64 decoding"},
			play: unreadableState,
		},
		{says: []string{"Every one is refused and nothing is executed"}, play: stateOfAnotherCall},
		{says: []string{"nothing is executed"}, play: usedState},
	}},

	"B-36": {scenes: []scene{
		{
			says: []string{"second and third step: complete", "fourth: -32602, not 5xx"},
			items: []string{
				"instance 1 mints S under key k1", "instance 2 (cold, same configuration) receives the retry",
				"keys rotated: k2 mints, k1 still listed; retry S", "k1 removed; retry S",
			},
			play: rotatedKeys,
		},
		{
			says: []string{"old keys verify until their states have expired; afterwards a clean refusal that tells the client to start again"},
			play: expiredState,
		},
		{
			says:  []string{"fifth: start-up error or warning", "the server refuses to start or refuses MRTR"},
			items: []string{"instance without any key configured starts"},
			play:  noKey,
		},
	}},

	"B-37": {
		production: production{server: offerMoreThatAsks},
		rules: []rule{
			{says: undeclared, on: []string{"no capability"}, holds: lacks(`{"elicitation":{"form":{}}}`)},
			{says: undeclared, on: []string{"url tool, form only"}, holds: lacks(`{"elicitation":{"url":{}}}`)},
			// The request before it, to the same instances, declared forms.
			{says: undeclared, on: []string{"declared on the request before, not on this one"}, holds: lacks(`{"elicitation":{"form":{}}}`)},
			{says: undeclared, on: []string{"sampling asked, only elicitation declared"}, holds: lacks(`{"sampling":{}}`)},
			{says: "empty object: input_required", on: []string{"empty elicitation object means form"}, holds: asks("name", mcp.MethodElicit)},
			{says: "it must carry inputRequests or requestState", on: []string{"empty elicitation object means form"}, holds: asks("name", mcp.MethodElicit)},
		},
		scenes: []scene{
			{says: []string{"Capabilities are read from this request alone."}, play: capabilitiesOfEachRequest},
			{says: []string{"Not declared → 400, -32021 with data.requiredCapabilities."}, play: capabilitiesOfEachKind},
			{says: []string{"Only tools/call, prompts/get and resources/read may answer input_required"}, play: askingMethods},
		},
	},

	"B-39": {scenes: []scene{
		{
			says: []string{
				"4096, 4097 and 20000: round trip works",
				"300000: works, or a clear -32603 that names the step and the size; nothing after that step has run",
				"The key service never sees the state", "the state travels in the body only, never in a header",
			},
			items: []string{"tool keeps state of 4096, 4097, 20000 and 300000 bytes", "fake KMS that returns ValidationException above 4096 bytes"},
			play:  largeState,
		},
		{says: []string{"no ValidationException text reaches the client"}, play: keyServiceRefuses},
	}},
}

const undeclared = "no capability, url tool, not on this one, sampling: status 400, code -32021, data.requiredCapabilities names it"

// Capabilities as clients declare them.
const (
	canFillForms = `{"elicitation":{}}`
	canDoAll     = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
)

// by is x from a client with these capabilities, which common.meta lacks.
func (x *exchange) by(capabilities string) *exchange {
	const none = `"` + mcp.MetaClientCapabilities + `":{`
	before, after, found := strings.Cut(string(x.body), none+"}")
	if !found {
		panic("the request does not declare that it has no capabilities")
	}
	y := *x
	y.body = []byte(before + strings.TrimSuffix(none, "{") + capabilities + after)
	return &y
}

// with is x as a new request with what goes on with its call: a state, as JSON or
// "" for none, and the members of inputResponses.
func (x *exchange) with(state, responses string) *exchange {
	body, whole := strings.CutSuffix(string(x.body), "}}")
	if !whole {
		panic("the request does not end with its params")
	}
	if state != "" {
		body += `,"requestState":` + state
	}
	y := *x
	y.body = []byte(strings.Replace(body, `"id":"of-the-test"`, `"id":"of-the-retry"`, 1) + `,"inputResponses":{` + responses + `}}}`)
	return &y
}

// adding is x that adds to the counter.
func (x *exchange) adding(n int64) *exchange {
	y := *x
	y.adds = n
	return &y
}

// jsonText is a text as JSON.
func jsonText(s string) string {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// suspend plays x, which has to ask under key for an elicitation, and returns the state.
func (s *stage) suspend(t *testing.T, d door, x *exchange, key string) string {
	t.Helper()
	a := s.play(t, d, x)
	if err := asks(key, mcp.MethodElicit)(a); err != nil {
		t.Fatalf("%v\n%s: %s", err, d.name(), a)
	}
	return unquoted(a.result("requestState"))
}

// asks wants the client to be asked one thing, with all that a retry needs.
func asks(key, method string) check {
	return all(status(200), member(`"input_required"`, "resultType"), without("content", "isError", "ttlMs", "cacheScope"), func(a *answer) error {
		var requests map[string]map[string]jsontext.Value
		if !decode(a.result("inputRequests"), &requests) || len(requests) != 1 || requests[key] == nil {
			return fmt.Errorf("inputRequests is %s, want one that is called %q", a.result("inputRequests"), key)
		}
		q := requests[key]
		if string(q["method"]) != jsonText(method) || q["params"].Kind() != '{' || len(q) != 2 {
			return fmt.Errorf("the request is %s, want %s with method and params alone", q, method)
		}
		if state := a.result("requestState"); state.Kind() != '"' || len(state) < 100 {
			return fmt.Errorf("requestState is %.80q", state)
		}
		return nil
	})
}

// lacks wants the refusal of a client that cannot be asked, down to the capability.
func lacks(capabilities string) check {
	return all(status(400), code(mcp.CodeMissingCapability), oneMessage,
		data("requiredCapabilities", func(v jsontext.Value) bool { return string(v) == capabilities }))
}

// capabilitiesOfEachRequest has one client declare what it can, and take it back.
func capabilitiesOfEachRequest(t *testing.T, s *stage) {
	form := lacks(`{"elicitation":{"form":{}}}`)
	ask := s.call("ask_name", `{}`, "")
	twice := s.call("test_input_required_result_multi_round", `{}`, "")
	for _, d := range s.doors(ask) {
		t.Run(d.name(), func(t *testing.T) {
			for range 2 {
				s.expectAt(t, d, ask.by(canFillForms), asks("name", mcp.MethodElicit))
				s.expectAt(t, d, ask, form)
			}
			// What the first round declared is no part of the state.
			first := jsonText(s.suspend(t, d, twice.by(canFillForms), "step1"))
			const ann = `"step1":{"action":"accept","content":{"name":"Ann"}}`
			s.expectAt(t, d, twice.with(first, ann), form)
			s.expectAt(t, d, twice.by(`{"sampling":{}}`).with(first, ann), form)
			second := s.suspend(t, d, twice.by(canFillForms).with(first, ann), "step2")
			// Who is asked nothing more needs no capability.
			done := twice.with(jsonText(second), `"step2":{"action":"accept","content":{"color":"blue"}}`)
			s.expectAt(t, d, done, all(status(200), complete, text("Ann likes blue")))
		})
	}
}

// capabilitiesOfEachKind tells the kinds of questions and their modes apart.
func capabilitiesOfEachKind(t *testing.T, s *stage) {
	form, url, sampling := lacks(`{"elicitation":{"form":{}}}`), lacks(`{"elicitation":{"url":{}}}`), lacks(`{"sampling":{}}`)
	for _, test := range []struct {
		capabilities, tool string
		holds              check
	}{
		{`{"elicitation":{"form":{}}}`, "ask_name", asks("name", mcp.MethodElicit)},
		{`{"elicitation":{"url":{}}}`, "ask_name", form},
		{`{"elicitation":null}`, "ask_name", form},
		{`{"Elicitation":{}}`, "ask_name", form},
		{`{"experimental":{"elicitation":{}}}`, "ask_name", form},
		{`{"elicitation":{}}`, "ask_login", url},
		{`{"elicitation":{"url":{}}}`, "ask_login", asks("login", mcp.MethodElicit)},
		{`{"elicitation":{"form":{},"url":{}}}`, "ask_login", asks("login", mcp.MethodElicit)},
		{`{"roots":{}}`, "ask_model", sampling},
		{`{"sampling":{}}`, "ask_model", asks("model", mcp.MethodSample)},
	} {
		t.Run(test.tool+" by "+test.capabilities, func(t *testing.T) {
			x := s.call(test.tool, `{}`, "").by(test.capabilities)
			s.expect(t, x, test.holds)
			s.expect(t, s.post(x.body, streamOnly), test.holds)
		})
	}
}

// Names of what offerMoreThatAsks offers.
const (
	askingDocument = "docs://asking"
	askingArgument = "asking_argument"
)

// offerMoreThatAsks adds a resource that asks, and a completion that tries to.
func offerMoreThatAsks(s *thaw.Server) {
	s.Resources = append(s.Resources, thaw.NewResource(askingDocument, "asking", func(ctx context.Context) ([]mcp.ResourceContents, error) {
		if ok, err := thaw.Confirm(ctx, "read", "Read it?"); err != nil || !ok {
			return nil, errors.Join(err, thaw.ErrNotFound)
		}
		return []mcp.ResourceContents{mcp.TextResource("", "text/plain", "it")}, nil
	}, nil))
	type in struct {
		Text string `json:"text"`
	}
	s.Prompts = append(s.Prompts, thaw.NewPrompt(askingArgument, "", func(context.Context, in) ([]mcp.PromptMessage, error) {
		return nil, nil
	}, &thaw.PromptOptions{Complete: map[string]thaw.CompleteFunc{"text": func(ctx context.Context, _ string, _ map[string]string) ([]string, error) {
		_, err := thaw.Confirm(ctx, "complete", "Complete it?")
		return nil, err
	}}}))
}

// askingMethods has a client that can do all send state and answers to every method.
func askingMethods(t *testing.T, s *stage) {
	const unasked = `"name":{"action":"accept"}`
	completion := func(prompt, argument string) string {
		return `"ref":{"type":"ref/prompt","name":"` + prompt + `"},"argument":{"name":"` + argument + `","value":""}`
	}
	for _, test := range []struct{ method, members string }{
		{mcp.MethodDiscover, ""}, {mcp.MethodListTools, ""}, {mcp.MethodListPrompts, ""}, {mcp.MethodListResources, ""},
		{mcp.MethodListResourceTemplates, ""}, {mcp.MethodComplete, completion("test_prompt_with_arguments", "arg1")},
	} {
		t.Run(test.method, func(t *testing.T) {
			x := s.request(test.method, test.members, "").by(canDoAll)
			never := all(status(200), complete, without("inputRequests", "requestState"))
			s.expect(t, x, never)
			s.expect(t, x.with(`"no state"`, unasked), never)
		})
	}
	t.Run("a completion that asks", func(t *testing.T) {
		s.expect(t, s.request(mcp.MethodComplete, completion(askingArgument, "text"), "").by(canDoAll), code(mcp.CodeInternalError))
	})
	for _, test := range []struct{ method, members, key, content, want string }{
		{mcp.MethodCallTool, `"name":"ask_name","arguments":{}`, "name", `{"name":"Ann"}`, `"text":"Hello, Ann"`},
		{mcp.MethodGetPrompt, `"name":"test_input_required_result_prompt"`, "user_context", `{"context":"tea"}`, `"text":"Use this context: tea"`},
		{mcp.MethodReadResource, `"uri":"` + askingDocument + `"`, "read", `{}`, `"text":"it"`},
	} {
		t.Run(test.method, func(t *testing.T) {
			x := s.request(test.method, test.members, "")
			s.expect(t, x, lacks(`{"elicitation":{"form":{}}}`))
			for _, d := range s.doors(x) {
				state := s.suspend(t, d, x.by(canFillForms), test.key)
				retry := x.by(canFillForms).with(jsonText(state), `"`+test.key+`":{"action":"accept","content":`+test.content+`}`)
				s.expectAt(t, d, retry, all(status(200), complete, bodyHas(test.want)))
			}
		})
	}
}
