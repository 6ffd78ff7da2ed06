package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/wire"
)

// answered are the questions that the requests for each tool and prompt that asks have to
// answer, in the order they are sent. "" begins a call anew.
var answered = map[string][]string{
	"test_input_required_result_elicitation":     {"", "user_name", "", "user_name"},
	"test_input_required_result_multi_round":     {"", "step1", "step2"},
	"test_input_required_result_sampling":        {"", "capital_question"},
	"test_input_required_result_list_roots":      {"", "client_roots"},
	"test_input_required_result_multiple_inputs": {"", "client_roots greeting user_name"},
	"test_input_required_result_prompt":          {"", "user_context"},
}

// rounds follows the calls that ask through a recording.
type rounds struct {
	open     map[string]*asked   // by tool or prompt, the last answer that asks
	answered map[string][]string // as the variable answered
	ids      map[string]bool     // of requests
}

// asked is what an answer asks.
type asked struct {
	keys, state string
}

func newRounds() *rounds {
	return &rounds{open: map[string]*asked{}, answered: map[string][]string{}, ids: map[string]bool{}}
}

// add takes one request and its answer, and says how the request differs from what the
// answer before it asked for: each question answered, the state as it was, another id.
func (r *rounds) add(x *exchange) error {
	var request struct {
		ID     json.RawMessage
		Params struct {
			Name           string
			InputResponses map[string]json.RawMessage
			RequestState   *string
		}
	}
	if err := json.Unmarshal(x.body, &request); err != nil {
		return err
	}
	p := &request.Params
	if answered[p.Name] == nil {
		return nil
	}
	if r.ids[string(request.ID)] {
		return fmt.Errorf("%s: the id %s is used again", p.Name, request.ID)
	}
	r.ids[string(request.ID)] = true
	keys := joined(p.InputResponses)
	r.answered[p.Name] = append(r.answered[p.Name], keys)
	before := r.open[p.Name]
	delete(r.open, p.Name)
	switch {
	case before == nil && (p.RequestState != nil || p.InputResponses != nil):
		return fmt.Errorf("%s: a first request answers %q: %s", p.Name, keys, x.body)
	case before != nil && (p.RequestState == nil || *p.RequestState != before.state || keys != before.keys):
		return fmt.Errorf("%s: asked %q with state %s, the client sends %s", p.Name, before.keys, before.state, x.body)
	}
	for _, m := range wire.Messages(x.answer.Get("Content-Type"), x.written) {
		var answer struct {
			Result *struct {
				ResultType    string
				InputRequests map[string]json.RawMessage
				RequestState  string
			}
		}
		if err := json.Unmarshal(m, &answer); err != nil {
			return err
		}
		if a := answer.Result; a != nil && a.ResultType == "input_required" {
			r.open[p.Name] = &asked{joined(a.InputRequests), a.RequestState}
		}
	}
	return nil
}

func joined(m map[string]json.RawMessage) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), " ")
}

// checkRounds holds the calls that ask against what they have to be on the wire.
func checkRounds(t *testing.T, all []*exchange) {
	t.Helper()
	r := newRounds()
	for _, x := range all {
		if err := r.add(x); err != nil {
			t.Error(err)
		}
	}
	for name, want := range answered {
		if got := r.answered[name]; !slices.Equal(got, want) {
			t.Errorf("%s: the requests answered %q, want %q", name, got, want)
		}
	}
	for name, left := range r.open {
		t.Errorf("%s: nobody answered %q", name, left.keys)
	}
}

// TestRounds: each kind of wrong retry is found, or "the client answered" would mean nothing.
func TestRounds(t *testing.T) {
	send := func(id int, members string) string {
		return fmt.Sprintf(`{"id":%d,"params":{"name":"test_input_required_result_elicitation"%s}}`, id, members)
	}
	const asks, ends = `{"result":{"resultType":"input_required","inputRequests":{"user_name":{}},"requestState":"s1"}}`, `{"result":{"resultType":"complete"}}`
	for _, c := range []struct {
		name, retry string
		right       bool
	}{
		{"right", send(2, `,"inputResponses":{"user_name":{}},"requestState":"s1"`), true},
		{"no state", send(2, `,"inputResponses":{"user_name":{}}`), false},
		{"another state", send(2, `,"inputResponses":{"user_name":{}},"requestState":"s2"`), false},
		{"no answer", send(2, `,"requestState":"s1"`), false},
		{"another answer", send(2, `,"inputResponses":{"name":{}},"requestState":"s1"`), false},
		{"the same id", send(1, `,"inputResponses":{"user_name":{}},"requestState":"s1"`), false},
		{"begun anew", send(2, ""), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRounds()
			header := map[string][]string{"Content-Type": {"application/json"}}
			if err := r.add(&exchange{body: []byte(send(1, "")), answer: header, written: []byte(asks)}); err != nil || len(r.open) != 1 {
				t.Fatalf("the first request: %v, open %v", err, r.open)
			}
			if err := r.add(&exchange{body: []byte(c.retry), answer: header, written: []byte(ends)}); (err == nil) != c.right {
				t.Errorf("right is %v, want %v: %v", err == nil, c.right, err)
			}
			if err := r.add(&exchange{body: []byte(send(3, `,"requestState":"s1"`)), answer: header}); err == nil {
				t.Error("a first request with a state is right")
			}
		})
	}
}
