package oauth

import (
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/npm"
)

// settings are who uses which client.
type settings struct {
	Endpoint   string `json:"endpoint"`
	User       string `json:"user"`
	Negotiates bool   `json:"negotiates"` // the version; otherwise it is known
	Refresh    bool   `json:"refresh"`    // it can use refresh tokens
	Resource   string `json:"resource"`   // what it wants tokens for; "": what the metadata says
}

// command is to connect, or to make a call.
type command struct {
	Call   *call `json:"call,omitempty"`
	Manual bool  `json:"manual"` // questions are left to a later command
}

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
	State     string         `json:"requestState,omitempty"`
	Answers   map[string]any `json:"inputResponses,omitempty"`
}

// reply is what became of a command, and how.
type reply struct {
	Result struct {
		Content           []struct{ Text string }
		StructuredContent caller
		IsError           bool
		RequestState      string
	}
	Error      *failure
	Key        string   // id of the key that signed the client's token
	Steps      []string // requests and pages; AS is the authorization server, the server's address is left out
	Challenges []string // of the server, as the client saw them
}

// failure is an error of the SDK, with the code and the reason of the server's.
type failure struct{ Name, Message, Code, Reason string }

// caller is what whoami answers.
type caller struct {
	Scheme, Issuer, Subject, Tenant, Client string
	Scopes                                  []string
}

// client is a running client.
type client struct {
	input   io.Writer
	replies <-chan string
	shorten *strings.Replacer
}

// start starts a client, which does nothing yet.
func (p *provider) start(t *testing.T, s settings) *client {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	cmd := npm.Command(packages, clientModule, string(text))
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &client{input, linesAfter(fixture.Start(t, cmd), "reply"), strings.NewReplacer(p.issuer, "AS", u.Scheme+"://"+u.Host, "")}
}

func (c *client) do(t *testing.T, what command) *reply {
	t.Helper()
	if err := json.NewEncoder(c.input).Encode(what); err != nil {
		t.Fatal(err)
	}
	var r reply
	if text := await(t, c.replies); json.Unmarshal([]byte(text), &r) != nil {
		t.Fatalf("reply %s", text)
	}
	for i, step := range r.Steps {
		r.Steps[i] = c.shorten.Replace(step)
	}
	return &r
}

// connect connects for the first time.
func (c *client) connect(t *testing.T) *reply {
	t.Helper()
	return c.do(t, command{})
}

// logIn is connect where that has to succeed.
func (p *provider) logIn(t *testing.T, s settings) *client {
	t.Helper()
	c := p.start(t, s)
	c.connect(t).succeeded(t)
	return c
}

// whoami asks the server, which wants these scopes for the answer.
func (c *client) whoami(t *testing.T, scopes ...string) *reply {
	t.Helper()
	arguments := map[string]any{}
	if len(scopes) > 0 {
		arguments["scopes"] = scopes
	}
	return c.do(t, command{Call: &call{Name: "whoami", Arguments: arguments}})
}

// ask makes a call that asks for a name, and leaves the question open.
func (c *client) ask(t *testing.T) (state string) {
	t.Helper()
	r := c.do(t, command{Call: &call{Name: "ask_name", Arguments: map[string]any{}}, Manual: true})
	if r.succeeded(t); r.Result.RequestState == "" {
		t.Fatalf("it asked nothing: %+v", r)
	}
	return r.Result.RequestState
}

// answer answers the question that state belongs to.
func (c *client) answer(t *testing.T, state, name string) *reply {
	t.Helper()
	answers := map[string]any{"name": map[string]any{"action": "accept", "content": map[string]any{"name": name}}}
	return c.do(t, command{Call: &call{"ask_name", map[string]any{}, state, answers}, Manual: true})
}

func (r *reply) succeeded(t *testing.T) {
	t.Helper()
	switch {
	case r.Error != nil:
		t.Fatalf("%+v after %q, challenges %q", *r.Error, r.Steps, r.Challenges)
	case r.Result.IsError:
		t.Fatalf("the tool failed: %+v", r.Result.Content)
	}
}

// said wants the text of a result.
func (r *reply) said(t *testing.T, want string) {
	t.Helper()
	if r.succeeded(t); len(r.Result.Content) != 1 || r.Result.Content[0].Text != want {
		t.Errorf("the answer is %+v, want %q", r.Result.Content, want)
	}
}

// took wants these steps on the way to the answer.
func (r *reply) took(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.Steps, want) {
		t.Errorf("the steps are\n%s\nwant\n%s", strings.Join(r.Steps, "\n"), strings.Join(want, "\n"))
	}
}

// challenged wants these values of WWW-Authenticate.
func (r *reply) challenged(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.Challenges, want) {
		t.Errorf("the challenges are\n%s\nwant\n%s", strings.Join(r.Challenges, "\n"), strings.Join(want, "\n"))
	}
}
