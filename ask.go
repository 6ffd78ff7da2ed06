package thaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"

	"github.com/thaw-mcp/thaw/internal/call"
	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/schema"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
)

// Asking.
//
// A question suspends the handler: the function returns ErrSuspended, the handler hands it
// on, the client is asked, and with the answer the handler runs again from the top, on
// whatever instance gets it. On that run the function returns the answer. Questions asked
// after a suspension join the same round, so two questions at once are two calls and
// errors.Join.
//
// A key names a question within the call and may be used once in a run. An answer counts
// only for the question that it answered: if message, choices or schema have changed since,
// the user is asked again. An answer that breaks its schema is asked for again too, with a
// note that says why; one that is missing is asked for again. A call asks in
// at most 20 rounds.
//
// Every question fails with
//   - ErrSuspended: the client is asked now; return it at once, wrapped if you like;
//   - *UnsupportedError, which matches ErrUnsupported: the client did not declare that it
//     can be asked. Returned as it is it becomes error -32021; a handler may as well
//     go on without an answer;
//   - ErrUnsupported alone: this deployment has no key to seal the call's state with;
//   - ErrNoCall: ctx is not a running handler's.
//
// Never ask for secrets in a form; ElicitURL is for those.

// Confirm asks yes or no. A user who declines or dismisses the question has said no, which
// is no error.
func Confirm(ctx context.Context, key, message string) (bool, error) {
	_, err := elicitForm(ctx, key, message, []byte(`{"type":"object","properties":{}}`), call.Here(1))
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrDismissed) {
		return false, nil
	}
	return err == nil, err
}

// Choose asks for one of choices, which may be known only now, and returns its Value.
// ErrDeclined and ErrDismissed say that the user chose none. No choices, or two of the same
// value, are misuse.
func Choose(ctx context.Context, key, message string, choices []Choice) (string, error) {
	at := call.Here(1)
	form, err := choiceForm(choices)
	if err != nil {
		return "", misuse(ctx, key, at, err.Error())
	}
	content, err := elicitForm(ctx, key, message, form, at)
	if err != nil {
		return "", err
	}
	chosen, _ := strictjson.String(strictjson.Member(content, "choice")) // the answer was checked
	return chosen, nil
}

func choiceForm(choices []Choice) ([]byte, error) {
	if len(choices) == 0 {
		return nil, errors.New("there are no choices")
	}
	b := []byte(`{"type":"object","properties":{"choice":{"type":"string","oneOf":[`)
	seen := map[string]bool{}
	for i, c := range choices {
		if seen[c.Value] {
			return nil, fmt.Errorf("two choices have the value %q", c.Value)
		}
		seen[c.Value] = true
		if c.Title == "" {
			c.Title = c.Value
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(append(b, `{"const":`...), c.Value)
		b = strictjson.AppendString(append(b, `,"title":`...), c.Title)
		b = append(b, '}')
	}
	return append(b, `]}},"required":["choice"]}`...), nil
}

// Elicit asks for a form: the fields of T, a struct, are the form's, with the tags that
// NewTool knows; the non-zero fields of form are its defaults. A form is flat: fields
// are strings, numbers, booleans, strings with an enum, and slices of these; formats are
// date, date-time, email and uri. Anything else is misuse. ErrDeclined and ErrDismissed say
// that the user filled nothing in.
func Elicit[T any](ctx context.Context, key, message string, form T) (T, error) {
	var answer T
	at := call.Here(1)
	f, err := formOf[T]()
	if err != nil {
		return answer, misuse(ctx, key, at, err.Error())
	}
	asked, err := f.withDefaults(form)
	if err != nil {
		return answer, misuse(ctx, key, at, err.Error())
	}
	q := formQuestion(key, message, asked)
	q.Fits = func(raw []byte) string {
		var v T
		if !strictjson.Is(strictjson.Member(raw, "action"), "accept") {
			return ""
		}
		if err := f.decode(contentOf(raw), &v); err != nil {
			return err.Error()
		}
		return ""
	}
	content, err := elicit(ctx, q, at)
	if err != nil {
		return answer, err
	}
	if err := f.decode(content, &answer); err != nil {
		return answer, misuse(ctx, key, at, fmt.Sprintf("the call has an answer recorded that is no %v: %v", reflect.TypeFor[T](), err))
	}
	return answer, nil
}

// ElicitRaw asks with a hand-written schema and returns the content of the form, one JSON
// object that fits it. Members that the schema does not know may be in it. A schema that a
// form cannot have is misuse.
func ElicitRaw(ctx context.Context, key, message string, form json.RawMessage) (json.RawMessage, error) {
	at := call.Here(1)
	compact, err := strictjson.AppendCompact(nil, form)
	if err == nil {
		err = input.CheckForm(compact)
	}
	if err == nil {
		_, err = schema.Compile(compact)
	}
	if err != nil {
		return nil, misuse(ctx, key, at, "the form's schema: "+err.Error())
	}
	return elicitForm(ctx, key, message, compact, at)
}

// ElicitURL asks the user to open a URL, for what must not pass through the client:
// passwords, payments, the consent of a third party. Nil means that the user
// agreed to open it and not that anything was done there. The page has to find out by
// itself who opens it; put neither credentials nor personal data into the URL.
// ErrDeclined and ErrDismissed say that the user did not agree. A url that is not absolute
// http or https is misuse.
func ElicitURL(ctx context.Context, key, message, url string) error {
	at := call.Here(1)
	if !absoluteURL(url) {
		return misuse(ctx, key, at, "the URL is no absolute http or https URL")
	}
	params := strictjson.AppendString([]byte(`{"mode":"url","message":`), message)
	params = strictjson.AppendString(append(params, `,"url":`...), url)
	_, err := elicit(ctx, call.Question{Key: key, Method: mcp.MethodElicit, Params: append(params, '}')}, at)
	return err
}

func absoluteURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// elicitForm asks for a form and returns its content.
func elicitForm(ctx context.Context, key, message string, form []byte, at call.Site) (json.RawMessage, error) {
	return elicit(ctx, formQuestion(key, message, form), at)
}

func formQuestion(key, message string, form []byte) call.Question {
	params := strictjson.AppendString([]byte(`{"mode":"form","message":`), message)
	params = append(append(params, `,"requestedSchema":`...), form...)
	return call.Question{Key: key, Method: mcp.MethodElicit, Params: append(params, '}')}
}

func elicit(ctx context.Context, q call.Question, at call.Site) (json.RawMessage, error) {
	answer, err := ask(ctx, q, at)
	if err != nil {
		return nil, err
	}
	switch action, _ := strictjson.String(strictjson.Member(answer, "action")); action {
	case "accept":
		return contentOf(answer), nil
	case "decline":
		return nil, ErrDeclined
	default:
		return nil, ErrDismissed
	}
}

// contentOf is the content of an accepted form; one without fields may leave it out.
func contentOf(answer []byte) json.RawMessage {
	if content := strictjson.Member(answer, "content"); content != nil {
		return content
	}
	return json.RawMessage("{}")
}

func ask(ctx context.Context, q call.Question, at call.Site) ([]byte, error) {
	c := call.FromContext(ctx)
	if c == nil {
		return nil, ErrNoCall
	}
	return c.Ask(q, at)
}

func misuse(ctx context.Context, key string, at call.Site, what string) error {
	c := call.FromContext(ctx)
	if c == nil {
		return ErrNoCall
	}
	return c.Misuse(key, at, what)
}
