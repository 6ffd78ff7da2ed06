package gatewaysim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// answer is what a function answers in the buffered way, in the members of all doors together.
// What is of another type than documented makes the whole malformed, also where some doors are
// seen to put up with it.
type answer struct {
	StatusCode        *int                `json:"statusCode"`
	StatusDescription string              `json:"statusDescription"`
	Headers           map[string]string   `json:"headers"`
	MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	Cookies           []string            `json:"cookies"`
	Body              string              `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
}

var errMalformed = errors.New("malformed proxy response")

// members are the names of a JSON object's members.
func members(b []byte) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	return m, json.Unmarshal(b, &m) == nil && m != nil
}

// inferred reads an answer in payload format 2.0: what is JSON without a status is the body of a
// 200 ("Format of the Lambda response").
func inferred(b []byte) (*answer, error) {
	m, isObject := members(b)
	if _, has := m["statusCode"]; isObject && has {
		return strict(b)
	}
	if !json.Valid(b) {
		return nil, errMalformed
	}
	status := http.StatusOK
	return &answer{StatusCode: &status, Headers: map[string]string{"content-type": "application/json"}, Body: string(b)}, nil
}

// strict reads an answer that has to have a status.
func strict(b []byte) (*answer, error) {
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if a.StatusCode == nil || *a.StatusCode < 200 || *a.StatusCode > 599 {
		return nil, fmt.Errorf("%w: no status", errMalformed)
	}
	return &a, nil
}

// only reports whether an object has no members but these.
func only(b []byte, names ...string) bool {
	m, ok := members(b)
	for _, name := range names {
		delete(m, name)
	}
	return ok && len(m) == 0
}

// content is the body, decoded if it is marked and the door decodes.
func (a *answer) content(decodes bool) ([]byte, error) {
	if !a.IsBase64Encoded || !decodes {
		return []byte(a.Body), nil
	}
	return base64.StdEncoding.DecodeString(a.Body)
}

// cutPrelude takes a stream's beginning apart: JSON, eight zero bytes, and what has come of the
// body with them. ok is false as long as the zero bytes have not come.
func cutPrelude(b []byte) (a *answer, body []byte, ok bool, err error) {
	head, body, ok := bytes.Cut(b, make([]byte, 8))
	if !ok {
		return nil, nil, false, nil
	}
	// "The metadata JSON" has these members and no others.
	if !only(head, "statusCode", "headers", "multiValueHeaders", "cookies") {
		return nil, nil, true, errMalformed
	}
	a = new(answer)
	if err := json.Unmarshal(head, a); err != nil {
		return nil, nil, true, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if a.StatusCode == nil {
		status := http.StatusOK
		a.StatusCode = &status
	}
	return a, body, true, nil
}
