package cases

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw/conformance/fixture"
	"github.com/thaw-mcp/thaw/mcp"
)

var runtimeLimits = map[string]verdict{
	"B-71": {scenes: []scene{{
		says: []string{"proxy response below the limit in all cases", "body is a JSON-RPC message with the id", "no partial JSON"},
		items: []string{
			"text of 5.9 MB of quotes (escaping doubles it)", "text of 7 MB", "image content of 5 MB (base64)", "resource blob of 6 MB",
			"1.1 MB through an ALB event", "V1, V2, FURL, ALB events",
		},
		play: tooLarge,
	}, {
		says: []string{"Structured content and its text copy both count."},
		play: tooLargeTwice,
	}}},

	"B-72": {scenes: []scene{{
		says: []string{"process lives in every case", "code -32603 and right id", "response free of panic text, file names and goroutine dumps"},
		items: []string{
			"nil map write in a tool", "panic in a goroutine the framework started", "panic in a prompt, a resource and a completion handler",
			"panic in middleware", "panic(nil)", "runtime.Goexit", "panic with a value whose String method panics",
			"panic after the first SSE event", "custom MarshalJSON that panics",
		},
		play: panics,
	}}},
}

// tooLarge asks for results above the limits of the front doors. That each proxy response
// is below its own is asserted of every answer.
func tooLarge(t *testing.T, s *stage) {
	big := func(shape string) *exchange { return s.call("big_result", `{"shape":"`+shape+`"}`, "") }
	for _, test := range []struct {
		name  string
		x     *exchange
		bytes int // of the content, at least
	}{
		{"text of 5.9 MB of quotes (escaping doubles it)", big("quotes"), 5_900_000},
		{"text of 7 MB", big("text"), 7_000_000},
		{"image content of 5 MB (base64)", big("image"), 5_000_000},
		{"resource blob of 6 MB", big("blob"), 6_000_000},
		{"resource blob of 6 MB, read", s.request("resources/read", `"uri":"docs://big"`, ""), 6_000_000},
		{"1.1 MB through an ALB event", big("alb"), 1_100_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, l := range s.lambdas {
				holds := saysTooLarge(test.bytes, l.limit())
				if test.bytes < maxALBPayload*2 && l.shell != "ALB" {
					holds = whole(test.bytes)
				}
				s.expectAt(t, l, test.x, all(oneMessage, holds))
			}
		})
	}
}

// tooLargeTwice asks for a value that fits once and not twice.
func tooLargeTwice(t *testing.T, s *stage) {
	const size = 3_500_000
	x := s.call("big_result", `{"shape":"structured"}`, "")
	for _, l := range s.lambdas {
		s.expectAt(t, l, x, all(oneMessage, saysTooLarge(2*size, l.limit())))
	}
}

// whole wants a result that is all there.
func whole(bytes int) check {
	return all(status(200), complete, func(a *answer) error {
		if len(a.body) < bytes {
			return fmt.Errorf("the body has %d bytes, less than the %d of the content", len(a.body), bytes)
		}
		return nil
	})
}

var numbers = regexp.MustCompile(`\d+`)

// saysTooLarge wants a small error that gives the size and the limit.
func saysTooLarge(size, limit int) check {
	return func(a *answer) error {
		message := strings.Join(a.texts(), "")
		if a.code() == mcp.CodeInternalError {
			message = a.final().Error.Message
		} else if !a.failed() {
			return errors.New("neither -32603 nor isError")
		}
		if len(a.body) > 1000 {
			return fmt.Errorf("the error has %d bytes", len(a.body))
		}
		saidSize, saidLimit := false, false
		for _, digits := range numbers.FindAllString(message, -1) {
			n, err := strconv.Atoi(digits)
			saidSize = saidSize || err == nil && n >= size
			saidLimit = saidLimit || n == limit
		}
		if !saidSize || !saidLimit {
			return fmt.Errorf("%q does not say the size, %d or more, and the limit, %d", message, size, limit)
		}
		return nil
	}
}

// panics calls handlers that end in every way but by returning. What becomes of the next
// request is asserted of every answer.
func panics(t *testing.T, s *stage) {
	tool := func(name string) *exchange { return s.call(name, `{}`, "") }
	complete := `"ref":{"type":"ref/prompt","name":"panic_prompt"},"argument":{"name":"topic","value":""}`
	for _, test := range []struct {
		name   string
		x      *exchange
		logged string // what the log has of the panic
	}{
		{"nil map write in a tool", tool("panic_nil_map"), "assignment to entry in nil map"},
		{"panic in a goroutine the framework started", tool("panic_goroutine"), fixture.PanicText},
		{"panic in a prompt", s.request("prompts/get", `"name":"panic_prompt"`, ""), fixture.PanicText},
		{"panic in a resource", s.request("resources/read", `"uri":"docs://panic"`, ""), fixture.PanicText},
		{"panic in a completion handler", s.request("completion/complete", complete, ""), fixture.PanicText},
		{"panic in middleware", tool("panic_middleware"), fixture.PanicText},
		{"panic(nil)", tool("panic_nil"), "panic called with nil argument"},
		{"runtime.Goexit", tool("panic_goexit"), "Goexit"},
		{"panic with a value whose String method panics", tool("panic_stringer"), ""},
		{"panic after the first SSE event", s.call("panic_after_event", `{}`, `"progressToken":1`), fixture.PanicText},
		{"custom MarshalJSON that panics", tool("panic_marshal"), fixture.PanicText},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, d := range s.doors(test.x) {
				a := s.provoke(t, d, test.x)
				if err := all(wellFormed, neutral, free(fixture.PanicText, "nil map", "goroutine", "Goexit", ".go"))(a); err != nil {
					t.Errorf("%v\n%s: %s", err, d.name(), a)
				}
				if !strings.Contains(a.log, test.logged) || !strings.Contains(a.log, "stack=") {
					t.Errorf("%s: the log has not the panic and its stack: %s", d.name(), a.log)
				}
				streams := d.name() == "HTTP" && strings.Contains(test.name, "SSE")
				if a.streamed != streams || streams && len(a.messages) != 2 {
					t.Errorf("%s: streamed is %t, with %d messages", d.name(), a.streamed, len(a.messages))
				}
			}
		})
	}
}

// neutral wants -32603 and a message that says nothing; isError is tolerated for tools.
func neutral(a *answer) error {
	if a.failed() {
		return nil
	}
	return all(code(mcp.CodeInternalError), func(a *answer) error {
		if id := a.final().ID; id.Kind() != jsontext.KindString || unquoted(id) != "of-the-test" {
			return fmt.Errorf("id is %q", id)
		}
		return nil
	})(a)
}

// free wants a body without some texts.
func free(texts ...string) check {
	return func(a *answer) error {
		for _, text := range texts {
			if strings.Contains(string(a.body), text) {
				return fmt.Errorf("the body holds %q", text)
			}
		}
		return nil
	}
}
