package cases

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// check judges one answer; the error says what is wrong with it.
type check func(a *answer) error

// all is every one of some checks.
func all(checks ...check) check {
	return func(a *answer) error {
		var errs []error
		for _, c := range checks {
			errs = append(errs, c(a))
		}
		return errors.Join(errs...)
	}
}

// either is one of some checks, for outcomes that are all acceptable.
func either(checks ...check) check {
	return func(a *answer) error {
		errs := []error{errors.New("none of the acceptable outcomes:")}
		for _, c := range checks {
			err := c(a)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}

// status wants one of some HTTP statuses.
func status(want ...int) check {
	return func(a *answer) error {
		if !slices.Contains(want, a.status) {
			return fmt.Errorf("status %d, want one of %d", a.status, want)
		}
		return nil
	}
}

// no5xx wants a server that does not blame itself.
func no5xx(a *answer) error {
	if a.status >= 500 {
		return fmt.Errorf("status %d", a.status)
	}
	return nil
}

// code wants an error with one of some codes.
func code(want ...int) check {
	return func(a *answer) error {
		if !slices.Contains(want, a.code()) {
			return fmt.Errorf("code %d, want one of %d", a.code(), want)
		}
		return nil
	}
}

// complete wants a result that is complete, and no tool error.
func complete(a *answer) error {
	if got := string(a.result("resultType")); got != `"complete"` || a.failed() {
		return fmt.Errorf("resultType is %q and isError %t, want complete and false", got, a.failed())
	}
	return nil
}

// toolError wants a complete result with isError whose text mentions some words.
func toolError(words ...string) check {
	return func(a *answer) error {
		if got := string(a.result("resultType")); got != `"complete"` || !a.failed() {
			return fmt.Errorf("resultType is %q and isError %t, want complete and true", got, a.failed())
		}
		for _, word := range words {
			if !strings.Contains(strings.Join(a.texts(), "\n"), word) {
				return fmt.Errorf("the text %q does not mention %q", a.texts(), word)
			}
		}
		return nil
	}
}

// failed reports whether an answer is a tool error.
func (a *answer) failed() bool { return string(a.result("isError")) == "true" }

// ran wants exactly these tools to have run.
func ran(tools ...string) check {
	return func(a *answer) error {
		var got []string
		for _, r := range a.ran {
			got = append(got, r.tool)
		}
		if !slices.Equal(got, tools) {
			return fmt.Errorf("the tools that ran are %q, want %q", got, tools)
		}
		return nil
	}
}

// nothingRan wants no tool to have run.
var nothingRan = ran()

// text wants a tool result of one text block.
func text(want string) check {
	return func(a *answer) error {
		if got := a.texts(); len(got) != 1 || got[0] != want {
			return fmt.Errorf("the text is %+q, want %+q", got, want)
		}
		return nil
	}
}

// structured wants structured content, token for token, in both its places (F-11).
func structured(want string) check {
	return all(member(want, "structuredContent"), text(want))
}

// member wants a member of the result, token for token.
func member(want string, path ...string) check {
	return func(a *answer) error {
		if got := string(a.result(path...)); got != want {
			return fmt.Errorf("result %s is %q, want %q", strings.Join(path, "."), got, want)
		}
		return nil
	}
}

// without wants the result to lack some members.
func without(names ...string) check {
	return func(a *answer) error {
		for _, name := range names {
			if got := a.result(name); got != nil {
				return fmt.Errorf("the result has %s: %s", name, got)
			}
		}
		return nil
	}
}

// data wants a member of error.data that passes a test.
func data(name string, test func(jsontext.Value) bool) check {
	return func(a *answer) error {
		m := a.final()
		if m == nil || m.Error == nil {
			return errors.New("there is no error")
		}
		if got := at(m.Error.Data, name); !test(got) {
			return fmt.Errorf("data.%s is %q", name, got)
		}
		return nil
	}
}

// hasHeader wants a response header with exactly one value.
func hasHeader(name, want string) check {
	return func(a *answer) error {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
		return nil
	}
}

// noHeader wants a response without a header.
func noHeader(name string) check {
	return func(a *answer) error {
		if got := a.header.Values(name); len(got) > 0 {
			return fmt.Errorf("header %s is %q", name, got)
		}
		return nil
	}
}

// bodyHas wants bytes in the body as they stand.
func bodyHas(want string) check {
	return func(a *answer) error {
		if !bytes.Contains(a.body, []byte(want)) {
			return fmt.Errorf("the body lacks %s", want)
		}
		return nil
	}
}

// oneMessage wants a body of one JSON-RPC message: no stream and no array.
func oneMessage(a *answer) error {
	if a.streamed || len(a.messages) != 1 {
		return errors.New("the body is no single message")
	}
	return nil
}

// noBody wants an empty body.
func noBody(a *answer) error {
	if len(a.body) > 0 {
		return fmt.Errorf("the body has %d bytes", len(a.body))
	}
	return nil
}
