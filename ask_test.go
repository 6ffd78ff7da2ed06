package thaw_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/thawtest"
)

type none struct{}

// asking makes a tool of one handler.
func asking(fn func(ctx context.Context) (string, error)) *thaw.Tool {
	return thaw.NewTool("asking", "", func(ctx context.Context, _ none) (string, error) { return fn(ctx) }, nil)
}

func TestConfirm(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		ok, err := thaw.Confirm(ctx, "agree", "Really?")
		return fmt.Sprint(ok), err
	})
	for name, tt := range map[string]struct {
		answer any
		want   string
	}{
		"yes":                     {thawtest.Accept, "true"},
		"no":                      {thawtest.Decline, "false"},
		"closed":                  {thawtest.Dismiss, "false"},
		"yes with content":        {json.RawMessage(`{"action":"accept","content":{"confirm":true}}`), "true"},
		"yes with an empty form":  {map[string]any{}, "true"},
		"true":                    {true, "true"},
		"false":                   {false, "false"},
		"no with content":         {json.RawMessage(`{"action":"decline","content":{"confirm":true}}`), "false"},
		"no with strange content": {json.RawMessage(`{"action":"decline","content":null}`), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			c := thawtest.Start(t, tool, nil, nil)
			if c.Done() || strings.Join(c.Asked(), " ") != "agree" || c.Message("agree") != "Really?" || c.Result() != nil {
				t.Fatalf("asked %v", c.Asked())
			}
			if got := c.Answer(thawtest.Answers{"agree": tt.answer}); !got.Done() || got.Text() != tt.want {
				t.Errorf("%q, %v; want %q", got.Text(), got.Err(), tt.want)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	choices := []thaw.Choice{{Value: "eu", Title: "Europe"}, {Value: "us"}}
	tool := asking(func(ctx context.Context) (string, error) { return thaw.Choose(ctx, "where", "Where?", choices) })
	c := thawtest.Start(t, tool, nil, nil)
	const want = `{"mode":"form","message":"Where?","requestedSchema":{"type":"object","properties":{"choice":{"type":"string",` +
		`"oneOf":[{"const":"eu","title":"Europe"},{"const":"us","title":"us"}]}},"required":["choice"]}}`
	if got := string(c.Params("where")); got != want {
		t.Errorf("asked\n%s, want\n%s", got, want)
	}
	if c.Answer(thawtest.Answers{"where": "mars"}); c.Done() || !strings.Contains(c.Message("where"), "The last answer did not fit") {
		t.Errorf("an answer that is no choice was taken: %q", c.Message("where"))
	}
	if c.Answer(thawtest.Answers{"where": "us"}); c.Text() != "us" {
		t.Errorf("chosen %q", c.Text())
	}
}

type plan struct {
	Size   string   `json:"size" enum:"small,large" jsonschema:"how big"`
	Count  int      `json:"count" minimum:"1" maximum:"20"`
	Notify *string  `json:"notify" format:"email"`
	Zones  []zone   `json:"zones,omitempty" maxItems:"2"`
	Share  float64  `json:"share,omitempty"`
	Tags   []string `json:"tags,omitempty" enum:"a,b"`
}

type zone string

func (zone) Enum() []thaw.Choice { return []thaw.Choice{{Value: "z1", Title: "Zone 1"}, {Value: "z2"}} }

func TestElicit(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		p, err := thaw.Elicit(ctx, "plan", "How big?", plan{Size: "small", Count: 2})
		switch {
		case errors.Is(err, thaw.ErrDeclined):
			return "declined", nil
		case errors.Is(err, thaw.ErrDismissed):
			return "dismissed", nil
		}
		return fmt.Sprintf("%s %d %v %v", p.Size, p.Count, p.Notify != nil, p.Zones), err
	})
	start := func(t *testing.T) *thawtest.Call { return thawtest.Start(t, tool, nil, nil) }
	const want = `{"mode":"form","message":"How big?","requestedSchema":{"type":"object","properties":{` +
		`"size":{"type":"string","description":"how big","enum":["small","large"],"default":"small"},` +
		`"count":{"type":"integer","minimum":1,"maximum":20,"default":2},` +
		`"notify":{"type":"string","format":"email"},` +
		`"zones":{"type":"array","items":{"anyOf":[{"const":"z1","title":"Zone 1"},{"const":"z2","title":"z2"}]},"maxItems":2},` +
		`"share":{"type":"number"},` +
		`"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}},"required":["size","count"]}}`
	if got := string(start(t).Params("plan")); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
	for name, tt := range map[string]struct {
		answer any
		want   string
	}{
		"a struct":            {plan{Size: "large", Count: 3, Zones: []zone{"z2"}}, "large 3 false [z2]"},
		"a map":               {map[string]any{"size": "small", "count": 1}, "small 1 false []"},
		"an integer as 3.0":   {json.RawMessage(`{"action":"accept","content":{"size":"small","count":3.0}}`), "small 3 false []"},
		"members nobody asks": {map[string]any{"size": "small", "count": 1, "x": []int{1}}, "small 1 false []"},
		"declined":            {thawtest.Decline, "declined"},
		"dismissed":           {thawtest.Dismiss, "dismissed"},
	} {
		t.Run(name, func(t *testing.T) {
			if c := start(t).Answer(thawtest.Answers{"plan": tt.answer}); c.Text() != tt.want {
				t.Errorf("%q %v, want %q", c.Text(), c.Err(), tt.want)
			}
		})
	}
	for name, content := range map[string]map[string]any{
		"too many":   {"size": "small", "count": 21},
		"no count":   {"size": "small"},
		"no choice":  {"size": "medium", "count": 1},
		"wrong type": {"size": "small", "count": "1"},
		"no email":   {"size": "small", "count": 1, "notify": "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t).Answer(thawtest.Answers{"plan": content})
			if c.Done() || !strings.Contains(c.Message("plan"), "The last answer did not fit: ") {
				t.Fatalf("%q %v", c.Text(), c.Asked())
			}
			if c.Answer(thawtest.Answers{"plan": plan{Size: "large", Count: 20}}); c.Text() != "large 20 false []" {
				t.Errorf("%q", c.Text())
			}
		})
	}
}

func TestElicitRawAndURL(t *testing.T) {
	raw := asking(func(ctx context.Context) (string, error) {
		content, err := thaw.ElicitRaw(ctx, "raw", "Say", json.RawMessage(`{"type":"object", "properties": {"n": {"type":"number","minimum":0.5}}}`))
		return string(content), err
	})
	if c := thawtest.Start(t, raw, nil, nil).Answer(thawtest.Answers{"raw": map[string]any{"n": 0.75, "more": true}}); c.Text() != `{"more":true,"n":0.75}` {
		t.Errorf("%q", c.Text())
	}
	link := asking(func(ctx context.Context) (string, error) {
		return "agreed", thaw.ElicitURL(ctx, "pay", "Please pay", "https://pay.example.com/1")
	})
	c := thawtest.Start(t, link, nil, nil)
	if got, want := string(c.Params("pay")), `{"mode":"url","message":"Please pay","url":"https://pay.example.com/1"}`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	if c.Answer(thawtest.Answers{"pay": thawtest.Accept}); c.Text() != "agreed" {
		t.Errorf("%q", c.Text())
	}
	if c := thawtest.Start(t, link, nil, nil).Answer(thawtest.Answers{"pay": thawtest.Decline}); !c.IsError() {
		t.Errorf("%q", c.Text())
	}
}

// Two questions at once are two calls and errors.Join; what is missing is asked again.
func TestSeveralQuestionsInOneRound(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		a, err1 := thaw.Confirm(ctx, "a", "A?")
		b, err2 := thaw.Confirm(ctx, "b", "B?")
		if err := errors.Join(err1, err2); err != nil {
			return "", fmt.Errorf("wrapped: %w", err)
		}
		return fmt.Sprint(a, b), nil
	})
	c := thawtest.Start(t, tool, nil, nil)
	if got := strings.Join(c.Asked(), " "); got != "a b" {
		t.Fatalf("asked %s", got)
	}
	c.Answer(thawtest.Answers{"b": thawtest.Accept})
	if got := strings.Join(c.Asked(), " "); got != "a" {
		t.Fatalf("after b asked %s", got)
	}
	if c.Answer(thawtest.Answers{"a": thawtest.Decline}); c.Text() != "false true" || c.Rounds() != 3 {
		t.Errorf("%q in %d rounds", c.Text(), c.Rounds())
	}
}

func TestSwallowedSuspension(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		ok, _ := thaw.Confirm(ctx, "a", "A?")
		return fmt.Sprint(ok), nil
	})
	c := thawtest.Start(t, tool, nil, nil)
	if c.Done() {
		t.Fatalf("ended with %q", c.Text())
	}
	if c.Answer(thawtest.Answers{"a": true}); c.Text() != "true" {
		t.Errorf("%q", c.Text())
	}
}

// A yes to 3 files is no yes to 300.
func TestChangedQuestionIsAskedAgain(t *testing.T) {
	files := 3
	tool := asking(func(ctx context.Context) (string, error) {
		ok, err := thaw.Confirm(ctx, "agree", fmt.Sprintf("Delete %d files?", files))
		if err != nil {
			return "", err
		}
		if _, err := thaw.Confirm(ctx, "sure", "Sure?"); err != nil {
			return "", err
		}
		return fmt.Sprint(ok, files), nil
	})
	c := thawtest.Start(t, tool, nil, nil)
	files = 300 // before the answer
	if c.Answer(thawtest.Answers{"agree": true}); c.Message("agree") != "Delete 300 files?" {
		t.Fatalf("asked %v", c.Asked())
	}
	c.Answer(thawtest.Answers{"agree": true})
	files = 301 // and after it was recorded
	if c.Answer(thawtest.Answers{"sure": true}); c.Message("agree") != "Delete 301 files?" {
		t.Fatalf("asked %v", c.Asked())
	}
	if c.Answer(thawtest.Answers{"agree": true}); strings.Join(c.Asked(), " ") != "sure" {
		t.Fatalf("asked %v", c.Asked())
	}
	if c.Answer(thawtest.Answers{"sure": true}); c.Text() != "true 301" {
		t.Errorf("%q", c.Text())
	}
}

func TestCapabilities(t *testing.T) {
	sample := func(params string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := thaw.Sample(ctx, "k", json.RawMessage(params))
			return err
		}
	}
	form := func(ctx context.Context) error { _, err := thaw.Confirm(ctx, "k", "?"); return err }
	link := func(ctx context.Context) error { return thaw.ElicitURL(ctx, "k", "?", "https://a.example") }
	roots := func(ctx context.Context) error {
		_, err := thaw.Roots(ctx, "k")
		return err
	}
	const plain, tools, with = `{"messages":[],"maxTokens":1}`, `{"messages":[],"maxTokens":1,"tools":[]}`, `{"messages":[],"maxTokens":1,"includeContext":"thisServer"}`
	for name, tt := range map[string]struct {
		ask      func(ctx context.Context) error
		declared string
		lacks    string // "": asked
	}{
		"form, nothing declared":       {form, `{}`, `{"elicitation":{"form":{}}}`},
		"form, empty elicitation":      {form, `{"elicitation":{}}`, ""},
		"form, form":                   {form, `{"elicitation":{"form":{}}}`, ""},
		"form, url alone":              {form, `{"elicitation":{"url":{}}}`, `{"elicitation":{"form":{}}}`},
		"form, elicitation is no map":  {form, `{"elicitation":true}`, `{"elicitation":{"form":{}}}`},
		"form, another capability":     {form, `{"sampling":{}}`, `{"elicitation":{"form":{}}}`},
		"url, url":                     {link, `{"elicitation":{"url":{}}}`, ""},
		"url, empty elicitation":       {link, `{"elicitation":{}}`, `{"elicitation":{"url":{}}}`},
		"url, nothing":                 {link, `{}`, `{"elicitation":{"url":{}}}`},
		"sampling":                     {sample(plain), `{"sampling":{}}`, ""},
		"no sampling":                  {sample(plain), `{"elicitation":{}}`, `{"sampling":{}}`},
		"sampling with tools":          {sample(tools), `{"sampling":{"tools":{}}}`, ""},
		"sampling, tools not declared": {sample(tools), `{"sampling":{}}`, `{"sampling":{"tools":{}}}`},
		"sampling with context":        {sample(with), `{"sampling":{}}`, `{"sampling":{"context":{}}}`},
		"roots":                        {roots, `{"roots":{"listChanged":true}}`, ""},
		"no roots":                     {roots, `{"sampling":{}}`, `{"roots":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := thawtest.Start(t, asking(func(ctx context.Context) (string, error) { return "", tt.ask(ctx) }), nil,
				&thawtest.Options{Capabilities: json.RawMessage(tt.declared)})
			if tt.lacks == "" {
				if c.Done() {
					t.Errorf("was not asked: %v", c.Err())
				}
				return
			}
			var e *mcp.Error
			if !errors.As(c.Err(), &e) || e.Code != mcp.CodeMissingCapability || !strings.Contains(string(e.Data.(json.RawMessage)), `"requiredCapabilities":`+tt.lacks) {
				t.Errorf("%+v", c.Err())
			}
		})
	}
}

// A handler may go on without what the client cannot answer.
func TestGoOnWithoutCapability(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		if _, err := thaw.Confirm(ctx, "a", "A?"); !errors.Is(err, thaw.ErrUnsupported) {
			return "", err
		}
		return "assumed yes", nil
	})
	if c := thawtest.Start(t, tool, nil, &thawtest.Options{NoElicit: true}); c.Text() != "assumed yes" {
		t.Errorf("%q %v", c.Text(), c.Err())
	}
}

func TestSampleAndRoots(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		answer, err1 := thaw.Sample(ctx, "model", json.RawMessage(`{"messages":[],"maxTokens":9}`))
		roots, err2 := thaw.Roots(ctx, "roots")
		return fmt.Sprint(len(answer) > 0, roots), errors.Join(err1, err2)
	})
	c := thawtest.Start(t, tool, nil, nil)
	if c.Answer(thawtest.Answers{"model": "hi", "roots": []string{"file:///a", "file:///b"}}); c.Text() != "true [file:///a file:///b]" {
		t.Errorf("%q %v", c.Text(), c.Err())
	}
}

// An answer that has not the form of its kind is the client's fault, and the call goes
// on with a good one.
func TestMalformedAnswers(t *testing.T) {
	ask := map[string]*thaw.Tool{
		"form": asking(func(ctx context.Context) (string, error) {
			_, err := thaw.Confirm(ctx, "k", "?")
			return "done", err
		}),
		"model": asking(func(ctx context.Context) (string, error) {
			_, err := thaw.Sample(ctx, "k", json.RawMessage(`{"messages":[],"maxTokens":9}`))
			return "done", err
		}),
		"roots": asking(func(ctx context.Context) (string, error) {
			_, err := thaw.Roots(ctx, "k")
			return "done", err
		}),
	}
	for name, tt := range map[string]struct{ kind, answer string }{
		"a number":                {"form", `1`},
		"null":                    {"form", `null`},
		"an array":                {"form", `[]`},
		"no action":               {"form", `{}`},
		"an unknown action":       {"form", `{"action":"maybe"}`},
		"content is no object":    {"form", `{"action":"accept","content":1}`},
		"sampling without role":   {"model", `{"content":{"type":"text","text":""},"model":"m"}`},
		"sampling of a system":    {"model", `{"role":"system","content":{"type":"text","text":""},"model":"m"}`},
		"sampling without model":  {"model", `{"role":"assistant","content":{"type":"text","text":""}}`},
		"sampling, text content":  {"model", `{"role":"assistant","content":"hi","model":"m"}`},
		"roots is no array":       {"roots", `{"roots":{}}`},
		"a root without uri":      {"roots", `{"roots":[{"name":"x"}]}`},
		"an elicitation as roots": {"roots", `{"action":"accept"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := thawtest.Start(t, ask[tt.kind], nil, nil).Answer(thawtest.Answers{"k": json.RawMessage(tt.answer)})
			var e *mcp.Error
			if !errors.As(c.Err(), &e) || e.Code != mcp.CodeInvalidParams || !strings.Contains(e.Message, `"k"`) {
				t.Errorf("%v %q", c.Err(), c.Text())
			}
		})
	}
}

// A call asks in at most 20 rounds.
func TestRounds(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		for i := 0; ; i++ {
			if _, err := thaw.Confirm(ctx, fmt.Sprint("q", i), "again?"); err != nil {
				return "", err
			}
		}
	})
	c := thawtest.Start(t, tool, nil, nil)
	for i := 1; i < 20; i++ {
		if c.Answer(thawtest.Answers{c.Asked()[0]: true}); c.Done() {
			t.Fatalf("ended in round %d: %v", i+1, c.Err())
		}
	}
	c.Answer(thawtest.Answers{c.Asked()[0]: true})
	var e *mcp.Error
	if !errors.As(c.Err(), &e) || !strings.Contains(string(e.Data.(json.RawMessage)), "too_many_rounds") {
		t.Errorf("%v", c.Err())
	}
}

func TestCallInfoOverRounds(t *testing.T) {
	var ids []string
	tool := thaw.NewTool("t", "", func(ctx context.Context, _ none) (string, error) {
		info := thaw.CallInfoFrom(ctx)
		ids = append(ids, info.ID)
		if _, err := thaw.Confirm(ctx, "a", "?"); err != nil {
			return "", err
		}
		return fmt.Sprint(info.Round, info.Attempt, info.Revision), nil
	}, &thaw.ToolOptions{Revision: 7})
	c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"a": true})
	if c.Text() != "2 1 7" || len(ids) != 2 || ids[0] != ids[1] || len(ids[0]) != 32 {
		t.Errorf("%q %v", c.Text(), ids)
	}
}

// A deploy in mid-call: calls begun below MinRevision are refused, others go on under the
// revision they began with.
func TestRevisions(t *testing.T) {
	tool := func(revision, least int) *thaw.Tool {
		return thaw.NewTool("t", "", func(ctx context.Context, _ none) (string, error) {
			_, err := thaw.Confirm(ctx, "a", "?")
			return fmt.Sprint(thaw.CallInfoFrom(ctx).Revision), err
		}, &thaw.ToolOptions{Revision: revision, MinRevision: least})
	}
	if c := thawtest.Start(t, tool(1, 0), nil, nil).Replace(tool(3, 1)).Answer(thawtest.Answers{"a": true}); c.Text() != "1" {
		t.Errorf("%q %v", c.Text(), c.Err())
	}
	c := thawtest.Start(t, tool(1, 0), nil, nil).Replace(tool(3, 2)).Answer(thawtest.Answers{"a": true})
	var e *mcp.Error
	if !errors.As(c.Err(), &e) || e.Code != mcp.CodeInvalidParams {
		t.Errorf("%v", c.Err())
	}
}

func TestNoCall(t *testing.T) {
	var late context.Context
	thawtest.Start(t, asking(func(ctx context.Context) (string, error) { late = ctx; return "", nil }), nil, nil)
	for name, ctx := range map[string]context.Context{"a foreign context": t.Context(), "after the handler": late} {
		_, err1 := thaw.Confirm(ctx, "k", "?")
		_, err2 := thaw.Step(ctx, "k", func(context.Context) (int, error) { t.Error("the step ran"); return 0, nil })
		_, err3 := thaw.Choose(ctx, "k", "?", nil)
		_, err4 := thaw.Elicit(ctx, "k", "?", none{})
		for _, err := range []error{err1, err2, err3, err4, thaw.Do(ctx, "k", nil), thaw.ElicitURL(ctx, "k", "?", "https://a.example")} {
			if !errors.Is(err, thaw.ErrNoCall) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if thaw.Now(ctx, "n").IsZero() || thaw.NewID(ctx, "i") == "" {
			t.Errorf("%s: no time or id", name)
		}
	}
}

// A refusal that the handler hands on is told to the model in plain words, and is no fault.
func TestRefusalHandedOn(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		_, err := thaw.Elicit(ctx, "q", "?", plan{})
		return "", err
	})
	for answer, want := range map[thawtest.Action]string{thawtest.Decline: "the user declined", thawtest.Dismiss: "the user dismissed the question"} {
		if c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": answer}); !c.IsError() || c.Text() != want {
			t.Errorf("%q %v", c.Text(), c.Err())
		}
	}
}

// A number that the form's schema admits and its Go type does not hold is asked for again.
func TestNumberBeyondItsType(t *testing.T) {
	tool := asking(func(ctx context.Context) (string, error) {
		v, err := thaw.Elicit(ctx, "q", "?", struct {
			N int64 `json:"n"`
		}{})
		return fmt.Sprint(v.N), err
	})
	for _, n := range []string{"1e30", "9223372036854775808"} {
		c := thawtest.Start(t, tool, nil, nil).Answer(thawtest.Answers{"q": json.RawMessage(`{"action":"accept","content":{"n":` + n + `}}`)})
		if c.Done() || !strings.Contains(c.Message("q"), "The last answer did not fit: /n") {
			t.Fatalf("%s: %q %v", n, c.Text(), c.Err())
		}
		if c.Answer(thawtest.Answers{"q": 7}); c.Text() != "7" {
			t.Errorf("%q", c.Text())
		}
	}
}
