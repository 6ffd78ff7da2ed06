package cases

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// forgeries make the states of B-34, as JSON, of a good one and of those that instances with
// other keys made for the same call.
var forgeries = []struct {
	name string
	make func(own string, foreign []string) []string
}{
	{"S with one character changed in the middle", func(own string, _ []string) []string { return changed(own, len(own)/2) }},
	{"S with the last character changed", func(own string, _ []string) []string { return changed(own, len(own)-1) }},
	{"S cut in half", func(own string, _ []string) []string { return jsonTexts(own[:len(own)/2], own[len(own)/2:]) }},
	{"S with a trailing '='", func(own string, _ []string) []string { return jsonTexts(own+"=", own+"==") }},
	{"S with spaces around it", func(own string, _ []string) []string { return jsonTexts(" "+own+" ", own+" ", " "+own, own+"\n") }},
	{"base64 of a hand-made JSON", func(own string, _ []string) []string { return jsonTexts(handMade(own)...) }},
	{"empty string", func(string, []string) []string { return jsonTexts("") }},
	{"a number instead of a string", func(string, []string) []string { return []string{"12345", "0", "null", "true", "{}", "[]"} }},
	{"S from an instance with another key", func(_ string, foreign []string) []string { return jsonTexts(foreign...) }},
	{"200 kB of 'A'", func(string, []string) []string {
		const a = 200_000
		return jsonTexts(strings.Repeat("A", a), "t1."+strings.Repeat("A", a))
	}},
}

func forgeryNames() (names []string) {
	for _, f := range forgeries {
		names = append(names, f.name)
	}
	return names
}

func jsonTexts(texts ...string) (all []string) {
	for _, text := range texts {
		all = append(all, jsonText(text))
	}
	return all
}

// changed has every other letter of the alphabet in one place of a token: the last one may
// carry bits that a decoder drops.
func changed(token string, at int) (all []string) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for _, letter := range alphabet {
		if other := token[:at] + string(letter) + token[at+1:]; other != token {
			all = append(all, jsonText(other))
		}
	}
	return all
}

// handMade are what a client may guess that a state is. One of them begins as the good one
// does, up to where the call is.
func handMade(own string) (tokens []string) {
	const text = `{"tool":"transfer","arguments":{"to":"A","amount":10},"approve":{"action":"accept"},"step":"transfer"}`
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		token := encoding.EncodeToString([]byte(text))
		tokens = append(tokens, token, "t1."+token)
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(text[:48]))
	const begin = len("t1.") + 44 // after the key's name, the day and the nonce, and whole bytes
	return append(tokens, own[:begin]+token+own[begin+len(token):])
}

// forgedStates sends every forgery to the door that made the state. To show that nothing
// but the forging is refused, the state itself comes last.
func forgedStates(t *testing.T, s *stage) {
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	others := []*stage{
		newStage(t, s.expansion, production{options: sealingWith("another")}),
		newStage(t, s.expansion, production{options: func(o *serve.Options) { o.StateKeys = []statecodec.Key{impostor{"k1"}} }}),
	}
	var first *answer
	for i, d := range s.doors(call) {
		t.Run(d.name(), func(t *testing.T) {
			own := s.suspend(t, d, call, "approve")
			var foreign []string
			for _, other := range others {
				foreign = append(foreign, other.suspend(t, other.doors(call)[i], call, "approve"))
			}
			for _, forgery := range forgeries {
				t.Run(forgery.name, func(t *testing.T) {
					for _, state := range forgery.make(own, foreign) {
						a := s.play(t, d, call.with(state, accept))
						if first == nil {
							first = a
						}
						if err := all(startAgain, no5xx, sameAs(first), keepsQuiet(append(foreign, own)...))(a); err != nil {
							t.Errorf("%.100s: %v\n%s", state, err, a)
						}
					}
				})
			}
			s.expectAt(t, d, call.with(jsonText(own), accept).adding(10), all(transferred, keepsQuiet(own)))
		})
	}
}

// impostor has the name of a key and not its secret.
type impostor struct{ stateKey }

func (k impostor) MAC(ctx context.Context, message []byte) ([]byte, error) {
	return (k.stateKey + ", guessed").MAC(ctx, message)
}

// sameAs wants an answer that tells nothing that another does not.
func sameAs(other *answer) check {
	return func(a *answer) error {
		if a.status != other.status || string(a.body) != string(other.body) {
			return fmt.Errorf("it differs from %s", other)
		}
		return nil
	}
}

// keepsQuiet wants neither answer nor log to repeat anything of some states.
func keepsQuiet(states ...string) check {
	return func(a *answer) error {
		for _, state := range states {
			for at := 0; at+40 <= len(state); at += 40 {
				if part := state[at : at+40]; strings.Contains(string(a.body), part) || strings.Contains(a.log, part) {
					return fmt.Errorf("the answer or the log has %q of a state: %s", part, a.log)
				}
			}
		}
		return nil
	}
}

// unreadableState looks for what a call is about and who makes it in the states of both its
// rounds. What it looks for is too long to be there by chance.
func unreadableState(t *testing.T, s *stage) {
	who := statecodec.Principal("none", "", "", "", "")
	transfer := s.call("transfer", `{"to":"an account of Mallory","amount":9876543210123}`, "").by(canFillForms)
	twice := s.call("test_input_required_result_multi_round", `{}`, "").by(canFillForms)
	keep := s.call("keep_state", `{"bytes":2000}`, "").by(canFillForms)
	for _, d := range s.doors(transfer) {
		first := s.suspend(t, d, twice, "step1")
		const named = `"step1":{"action":"accept","content":{"name":"a name for nobody else"}}`
		for _, state := range []string{
			s.suspend(t, d, transfer, "approve"), first, s.suspend(t, d, twice.with(jsonText(first), named), "step2"),
			s.suspend(t, d, keep.adding(1), "go_on"),
		} {
			decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(state, "t1."))
			if err != nil {
				t.Fatalf("the state cannot be looked into: %v", err)
			}
			for _, text := range []string{
				"account of Mallory", "9876543210123", "Transfer ", "transfer", "approve", "multi_round", "nobody else", "accept", "kkkkkkkk",
				"BugLog", mcp.MethodElicit, string(who[:]),
			} {
				if strings.Contains(state, text) || strings.Contains(string(decoded), text) {
					t.Errorf("%s: a state has %q in it: %s", d.name(), text, state)
				}
			}
		}
		if again := s.suspend(t, d, twice, "step1"); again == first {
			t.Errorf("%s: two calls have the same state", d.name())
		}
	}
}

// stateOfAnotherCall takes a good state to requests that it was not made for. Those
// that only spell the same call in another way may use it.
func stateOfAnotherCall(t *testing.T, s *stage) {
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	prompt := s.request(mcp.MethodGetPrompt, `"name":"test_input_required_result_prompt"`, "").by(canFillForms)
	for _, d := range s.doors(call) {
		t.Run(d.name(), func(t *testing.T) {
			state, ofPrompt := jsonText(s.suspend(t, d, call, "approve")), jsonText(s.suspend(t, d, prompt, "user_context"))
			for _, x := range []*exchange{
				s.call("transfer", `{"to":"A","amount":11}`, ""),
				s.call("transfer", `{"to":"B","amount":10}`, ""),
				s.call("transfer", `{"to":"A","amount":10,"more":null}`, ""),
				s.call("transfer", `{"to":"A","amount":"10"}`, ""),
				s.call("keep_state", `{"to":"A","amount":10}`, ""),
				s.call("echo", `{"text":"x"}`, ""),
				s.request(mcp.MethodGetPrompt, `"name":"transfer"`, ""),
				s.request(mcp.MethodGetPrompt, `"name":"test_input_required_result_prompt"`, ""),
				s.request(mcp.MethodReadResource, `"uri":"transfer"`, ""),
			} {
				s.expectAt(t, d, x.by(canFillForms).with(state, accept), all(code(mcp.CodeInvalidParams), no5xx, nothingRan))
			}
			s.expectAt(t, d, call.with(ofPrompt, accept), startAgain)
			for _, arguments := range []string{`{ "amount" : 1e1, "to":"\u0041" }`, `{"amount":10.0,"to":"A"}`} {
				same := s.call("transfer", arguments, "").by(canFillForms)
				s.expectAt(t, d, same.with(state, accept).adding(10), transferred)
			}
		})
	}
}

// usedState has two instances share a store: who brings a used state again gets the
// answer that there was, from either of them, and who answers otherwise is refused.
func usedState(t *testing.T, s *stage) {
	start := instances(t, s.expansion)
	store := memstore.New(nil)
	shared := func(o *serve.Options) { o.Store = store }
	one, two := start(shared), start(shared)
	call := s.call("transfer", `{"to":"A","amount":10}`, "").by(canFillForms)
	for _, d := range one.doors(call) {
		t.Run(d.name(), func(t *testing.T) {
			state := jsonText(one.suspend(t, d, call, "approve"))
			retry := call.with(state, accept)
			first := one.play(t, d, retry.adding(10))
			if err := transferred(first); err != nil {
				t.Fatalf("%v: %s", err, first)
			}
			for _, on := range []*stage{one, two} {
				on.expect(t, retry, all(nothingRan, sameAs(first)))
				on.expect(t, call.with(state, `"approve":{"action":"decline"}`), startAgain)
				on.expect(t, call.with(state, ""), startAgain)
			}
		})
	}
}
