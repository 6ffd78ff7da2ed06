package gatewaysim

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// URLOptions are those of a Function URL; nil is one in InvokeMode BUFFERED.
type URLOptions struct {
	// Streaming is InvokeMode RESPONSE_STREAM.
	Streaming bool
}

// FunctionURL is a Lambda Function URL ("Invoking Lambda function URLs"). Its path is percent-encoded
// as the client wrote it, its account is "anonymous" for a caller without a signature, and cookies
// are among the headers too, as events show that were seen.
func FunctionURL(f Lambda, o *URLOptions) http.Handler {
	if o == nil {
		o = &URLOptions{}
	}
	return &functionURL{f, *o}
}

type functionURL struct {
	f Lambda
	URLOptions
}

const urlDomain = "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-west-1.on.aws"

// urlRemapped are the names that a Function URL renames.
var urlRemapped = append([]string{"Content-Length"}, remapped...)

func (d *functionURL) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, tooLarge, err := readBody(r, lambdasim.MaxRequest)
	if err != nil || tooLarge {
		urlFailure(lambdasim.ErrRequestTooLarge).write(w)
		return
	}
	e := newEvent2(r, body, urlDomain, "anonymous", "$default", r.URL.EscapedPath())
	e.Headers["x-amzn-tls-version"], e.Headers["x-amzn-tls-cipher-suite"] = "TLSv1.3", "TLS_AES_128_GCM_SHA256"
	event, err := json.Marshal(e)
	if err != nil {
		urlFailure(err).write(w)
		return
	}
	if d.Streaming {
		d.stream(w, r, event)
		return
	}
	out, err := d.f.Invoke(r.Context(), event)
	if err != nil {
		urlFailure(err).write(w)
		return
	}
	a, err := inferred(out)
	if err != nil {
		urlFailure(err).write(w)
		return
	}
	content, err := a.content(true)
	if err != nil {
		urlFailure(err).write(w)
		return
	}
	a.head2(w.Header(), urlRemapped)
	w.WriteHeader(*a.StatusCode)
	_, _ = w.Write(content)
}

// stream passes a stream on. What is not marked as frames is the body of a 200, whatever it says:
// that is how a buffered answer looks behind a URL that streams (aws-lambda-go#565).
func (d *functionURL) stream(w http.ResponseWriter, r *http.Request, event []byte) {
	s, err := d.f.InvokeStream(r.Context(), event)
	if err != nil {
		urlFailure(err).write(w)
		return
	}
	defer s.Close()
	defer context.AfterFunc(r.Context(), func() { _ = s.Close() })() // the function goes on
	if s.ContentType != frames {
		w.Header().Set("Content-Type", s.ContentType)
		pass(w, r, http.StatusOK, nil, s)
		return
	}
	a, first, err := readPrelude(s)
	if err != nil {
		urlFailure(err).write(w)
		return
	}
	a.head2(w.Header(), urlRemapped)
	pass(w, r, *a.StatusCode, first, s)
}

// head2 writes the header of an answer in payload format 2.0.
func (a *answer) head2(h http.Header, remaps []string) {
	for name, value := range a.Headers {
		addHeader(h, name, value, remaps...)
	}
	for _, cookie := range a.Cookies {
		h.Add("Set-Cookie", cookie)
	}
}

// urlFailure is what a Function URL says of a failure ("Troubleshooting Lambda function URLs"; the
// texts are those seen).
func urlFailure(err error) failure {
	switch {
	case errors.Is(err, lambdasim.ErrThrottled):
		return failure{http.StatusTooManyRequests, `{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded","Type":"User","message":"Rate Exceeded."}`, "application/json"}
	case errors.Is(err, lambdasim.ErrRequestTooLarge):
		return failure{http.StatusRequestEntityTooLarge, `{"Message":"Request must be smaller than 6291456 bytes for the InvokeFunction operation"}`, "application/json"}
	case errors.Is(err, lambdasim.ErrClosed):
		return failure{http.StatusNotFound, `{"Message":null}`, "application/json"}
	}
	return failure{http.StatusBadGateway, "Internal Server Error", "application/json"}
}
