package cases

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw/mcp"
)

// message is one JSON-RPC message of a server.
type message struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    jsontext.Value `json:"data"`
	} `json:"error"`
}

// decode is strict: names match exactly and once, texts are UTF-8.
func decode(b []byte, v any) bool { return json.Unmarshal(b, v) == nil }

// answer is what came back for an exchange.
type answer struct {
	to   *exchange
	door string

	status   int
	header   http.Header
	body     []byte
	streamed bool
	messages []message // one if it is JSON, any number if it is a stream

	ran []run // handlers of tools that ran meanwhile
	log string
}

// take reads the messages of the body by its media type.
func (a *answer) take() error {
	if len(a.body) == 0 {
		return nil
	}
	switch media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";"); media {
	case "application/json":
		if strings.Contains(a.to.path, "/.well-known/") {
			return nil // a document
		}
		var m message
		if err := json.Unmarshal(a.body, &m, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("the body is no JSON-RPC message: %w", err)
		}
		a.messages = []message{m}
	case "text/event-stream":
		a.streamed = true
		return a.takeStream()
	case "text/plain":
		if a.to.path == "/mcp" {
			return fmt.Errorf("the body is %s", media)
		}
	default:
		return fmt.Errorf("the body is %q", media)
	}
	return nil
}

// takeStream reads one message an event. A message takes one data line, and there are no
// other fields (H-19); comments may stand anywhere between (H-18).
func (a *answer) takeStream() error {
	body, whole := bytes.CutSuffix(a.body, []byte("\n\n"))
	if !whole {
		return fmt.Errorf("the stream ends inside an event: %.80q", a.body)
	}
	for event := range bytes.SplitSeq(body, []byte("\n\n")) {
		if bytes.HasPrefix(event, []byte(":")) && !bytes.Contains(event, []byte("\n")) {
			continue
		}
		data, ok := bytes.CutPrefix(event, []byte("data: "))
		if !ok || bytes.ContainsAny(data, "\r\n") {
			return fmt.Errorf("an event is not one data line: %.80q", event)
		}
		var m message
		if err := json.Unmarshal(data, &m, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("an event is no JSON-RPC message: %w", err)
		}
		a.messages = append(a.messages, m)
	}
	return nil
}

// final is the response; nil if there is none.
func (a *answer) final() *message {
	if len(a.messages) == 0 {
		return nil
	}
	return &a.messages[len(a.messages)-1]
}

// code is the code of the error, or 0.
func (a *answer) code() int {
	if m := a.final(); m != nil && m.Error != nil {
		return m.Error.Code
	}
	return 0
}

// notifications are those of one method, before the response.
func (a *answer) notifications(method string) (all []message) {
	for _, m := range a.messages {
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// String shows an answer in a failure.
func (a *answer) String() string {
	return fmt.Sprintf("status %d, %s, body %.600q", a.status, a.header.Get("Content-Type"), a.body)
}

// leaks are texts that no answer may hold: of stacks, of file names, of the platform.
var leaks = []string{
	"goroutine ", ".go:", "runtime error", "runtime.", "panic:", "panic(", "invalid memory",
	"arn:aws", "/home/", "ValidationException", "net/http", "github.com/",
}

// wellFormed is what every answer has to be (B-01, B-04, B-05, B-10, B-19 and what the case
// file says of all cases).
func wellFormed(a *answer) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !utf8.Valid(a.body) {
		wrong("the body is not valid UTF-8")
	}
	texts := []string{string(a.body)}
	for name, values := range a.header {
		for _, text := range append(values, name) {
			if strings.ContainsAny(text, "\r\n") {
				wrong("header %q holds a line break", name)
			}
			texts = append(texts, text)
		}
	}
	for _, leak := range slices.Concat(leaks, a.to.credentials()) {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, leak) }) {
			wrong("the answer holds %q", leak)
		}
	}
	for i := range a.messages {
		m := &a.messages[i]
		if m.JSONRPC != "2.0" {
			wrong(`"jsonrpc" is %q`, m.JSONRPC)
		}
		if i < len(a.messages)-1 {
			if m.Method == "" || m.ID != nil || m.Result != nil || m.Error != nil {
				wrong("message %d, not the last of a stream, is no notification", i)
			}
			continue
		}
		if m.Method != "" || (m.Result == nil) == (m.Error == nil) {
			wrong("the last message is no response")
		}
		if m.Error != nil && m.Error.Message == "" {
			wrong("the error has no message")
		}
		errs = append(errs, sameID(a.to.id(), m))
	}
	return errors.Join(errs...)
}

// sameID wants the response to carry the id that was sent: digit for digit, or the same
// text.
func sameID(sent jsontext.Value, m *message) error {
	switch {
	case m.ID == nil:
		// An error may lack it where it could not be read, or nobody looked (B-05).
		unread := m.Error != nil && (m.Error.Code == mcp.CodeParseError || m.Error.Code == mcp.CodeInvalidRequest)
		if sent != nil && !unread || m.Error == nil {
			return fmt.Errorf("the response has no id, sent was %q", sent)
		}
	case sent == nil:
		return fmt.Errorf("the response has id %s, sent was none that can be one", m.ID)
	case sent.Kind() == '"' && m.ID.Kind() == '"':
		if want, got := unquoted(sent), unquoted(m.ID); got != want {
			return fmt.Errorf("id %q came back as %q", want, got)
		}
	case string(m.ID) != string(sent):
		return fmt.Errorf("id %s came back as %s", sent, m.ID)
	}
	return nil
}

func unquoted(v jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, v)
	return string(b)
}

// at is a member of a JSON value by its path; nil if there is none.
func at(v jsontext.Value, path ...string) jsontext.Value {
	for _, name := range path {
		var members map[string]jsontext.Value
		if !decode(v, &members) {
			return nil
		}
		v = members[name]
	}
	return v
}

// result is a member of the result.
func (a *answer) result(path ...string) jsontext.Value {
	m := a.final()
	if m == nil || m.Result == nil {
		return nil
	}
	return at(m.Result, path...)
}

// texts are the text blocks of a tool result.
func (a *answer) texts() (all []string) {
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	decode(a.result("content"), &blocks)
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return all
}
