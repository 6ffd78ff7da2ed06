package cases

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw/mcp"
)

var streaming = map[string]verdict{
	"B-62": {
		rules: []rule{
			{says: "no raw E2 80 A8 / E2 80 A9 bytes in the stream", holds: noSeparators},
			{says: "parsed text equals the input", holds: all(status(200), complete, sameText, ran("echo"))},
		},
		scenes: []scene{
			{says: []string{"One event, and the text is unchanged after parsing."}, items: []string{"SSE response"}, play: separatorsInStream},
			{says: []string{"also when the handler supplied raw JSON"}, play: separatorsInRawJSON},
		},
	},

	"B-64": {rules: []rule{
		{says: "no token: zero notifications/progress", on: []string{"no token", "no logLevel"}, holds: all(status(200), complete, progress(nil), ran("steps"))},
		{says: `0 stays the number 0, "" stays ""`, on: []string{"token 0"}, holds: progress(jsontext.Value("0"), "1", "2", "3")},
		{says: `0 stays the number 0, "" stays ""`, on: []string{"token empty string"}, holds: progress(jsontext.Value(`""`), "1", "2", "3")},
		{
			says:  "progress values 1,2,3",
			on:    []string{"big token"},
			holds: progress(jsontext.Value("9007199254740993"), "1", "2", "3"),
		},
		{says: "No logLevel: no notifications/message.", holds: noLogMessages},
		{says: "No token: no progress.", on: []string{"Accept JSON only"}, holds: all(status(200), complete, oneMessage)},
		{says: "last message of the stream is the response", holds: func(a *answer) error {
			if m := a.final(); m == nil || m.Result == nil {
				return errors.New("the last message is no response")
			}
			return complete(a)
		}},
	}},

	"B-66": {scenes: []scene{
		{
			says: []string{"handler sees ctx.Done within 1 s", "goroutine count back at its start value (±5)"},
			items: []string{
				"Cloud Run listener, SSE response, tool sleeps 30 s and watches its context", "client closes after 0.5 s",
				"100 calls in a row on one instance, then count goroutines",
			},
			play: clientsLeave,
		},
		{
			says:  []string{"half body: times out with 400/408, instance still serves"},
			items: []string{"client sends half a body and stops"},
			play:  halfBody,
		},
		{says: []string{"A task that was created stays alive."}, play: tasksOutlive},
	}},
}

// progress wants exactly these progress notifications, in this order and with this token,
// on a stream. Doors that cannot stream, and calls without a token, get none.
func progress(token jsontext.Value, values ...string) check {
	return func(a *answer) error {
		want := values
		if a.door != "HTTP" {
			want = nil
		}
		var got []string
		for _, m := range a.notifications(mcp.NotificationProgress) {
			if sent := at(m.Params, "progressToken"); !bytes.Equal(sent, token) {
				return fmt.Errorf("the token %s came back as %q", token, sent)
			}
			got = append(got, string(at(m.Params, "progress")))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("progress is %q, want %q", got, want)
		}
		if (len(want) > 0) != a.streamed || len(a.messages) != len(want)+1 {
			return fmt.Errorf("streamed is %t, with %d messages", a.streamed, len(a.messages))
		}
		return nil
	}
}

func noLogMessages(a *answer) error {
	if n := len(a.notifications(mcp.NotificationMessage)); n > 0 {
		return fmt.Errorf("%d log messages nobody asked for", n)
	}
	return nil
}

// separators end a line to some parsers of event streams.
const separators = "\u2028\u2029"

func noSeparators(a *answer) error {
	if bytes.ContainsAny(a.body, separators) {
		return errors.New("the body has U+2028 or U+2029 as it stands")
	}
	return nil
}

// sameText wants the text that was sent.
func sameText(a *answer) error {
	sent, ok := memberText(a.to.body, "params", "arguments", "text")
	if !ok || !strings.Contains(sent, "\u2028") || !strings.Contains(sent, "\u2029") {
		return fmt.Errorf("the case lost its separators on the way: %+q", sent)
	}
	return text(sent)(a)
}

// streamOnly is what a client that reads nothing but streams accepts.
var streamOnly = header{"Accept", "text/event-stream"}

// oneEvent wants a stream of the response alone where the door can stream.
func oneEvent(a *answer) error {
	if a.streamed != (a.door == "HTTP") || len(a.messages) != 1 {
		return fmt.Errorf("streamed is %t, with %d messages", a.streamed, len(a.messages))
	}
	return nil
}

func separatorsInStream(t *testing.T, s *stage) {
	x := s.call("echo", `{"text":"before\u2028middle\u2029after end"}`, "")
	for _, x := range []*exchange{s.post(x.body, streamOnly), s.post(bytes.ReplaceAll(x.body, []byte(`\u2028`), []byte("\u2028")), streamOnly)} {
		s.expect(t, x, all(status(200), complete, oneEvent, noSeparators, sameText))
	}
}

// separatorsInRawJSON has a handler return JSON that holds the separators as they stand.
func separatorsInRawJSON(t *testing.T, s *stage) {
	x := s.call("anyjson", `{"value":{"a`+separators+`":"b`+separators+`"}}`, "")
	for _, x := range []*exchange{x, s.post(x.body, streamOnly)} {
		s.expect(t, x, all(status(200), complete, noSeparators, func(a *answer) error {
			for where, raw := range map[string]string{"structuredContent": string(a.result("structuredContent")), "the text": strings.Join(a.texts(), "")} {
				var value map[string]string
				if !decode(jsontext.Value(raw), &value) || value["a"+separators] != "b"+separators {
					return fmt.Errorf("%s is %+q", where, raw)
				}
			}
			return nil
		}))
	}
}
