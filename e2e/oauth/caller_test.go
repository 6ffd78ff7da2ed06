package oauth

import (
	"testing"
	"time"
)

// what a call keeps while it asks opens for its own caller alone, which is the user and
// the client.
func TestQuestionOfAnotherCaller(t *testing.T) {
	p := startProvider(t, time.Hour)
	endpoint := p.serve(t)
	alice := p.logIn(t, settings{Endpoint: endpoint, User: "alice"})
	for _, tt := range []struct {
		name  string
		other settings
	}{
		{"another user", settings{Endpoint: endpoint, User: "bob"}},
		{"another client", settings{Endpoint: endpoint, User: "alice"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := alice.ask(t)
			other := p.logIn(t, tt.other)
			r := other.answer(t, state, "Mallory")
			if r.Error == nil || r.Error.Code != "-32602" || r.Error.Reason != "requestState" {
				t.Errorf("the answer is %+v, %+v", r.Result, r.Error)
			}
			other.answer(t, other.ask(t), "Bob").said(t, "Hello, Bob")
			alice.answer(t, state, "Alice").said(t, "Hello, Alice")
		})
	}
}
