package gatewaysim

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// maxGatewayBody is the largest body of a request to API Gateway, of both kinds ("Quotas").
const maxGatewayBody = 10 << 20

// HTTPOptions are those of an HTTP API; nil is one with the stage $default.
type HTTPOptions struct {
	// Stage is a named stage: it stands in front of the path, for the client and for the function.
	Stage string
	// Timeout is the integration's; 0: 30 s, the most there is.
	Timeout time.Duration
}

// HTTPAPI is an API Gateway HTTP API with a Lambda proxy integration in payload format 2.0. It hands
// the path over decoded, the name rawPath notwithstanding.
func HTTPAPI(f Lambda, o *HTTPOptions) http.Handler {
	if o == nil {
		o = &HTTPOptions{}
	}
	d := &httpAPI{f, *o}
	if d.Timeout == 0 {
		d.Timeout = 30 * time.Second
	}
	return d
}

type httpAPI struct {
	f Lambda
	HTTPOptions
}

const apiDomain = "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"

func (d *httpAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	stage := "$default"
	if d.Stage != "" {
		stage = d.Stage
		if rest, ok := strings.CutPrefix(r.URL.Path, "/"+stage); !ok || rest != "" && rest[0] != '/' {
			message(http.StatusNotFound, "Not Found").write(w)
			return
		}
	}
	body, tooLarge, err := readBody(r, maxGatewayBody)
	if err != nil || tooLarge {
		message(http.StatusRequestEntityTooLarge, "Request Entity Too Large").write(w)
		return
	}
	e := newEvent2(r, body, apiDomain, "123456789012", stage, r.URL.Path)
	delete(e.Headers, "cookie")
	event, err := json.Marshal(e)
	if err != nil {
		httpFailure(err).write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	out, err := d.f.Invoke(ctx, event)
	if err != nil {
		httpFailure(err).write(w)
		return
	}
	a, err := inferred(out)
	if err != nil {
		httpFailure(err).write(w)
		return
	}
	content, err := a.content(true)
	if err != nil {
		httpFailure(err).write(w)
		return
	}
	a.head2(w.Header(), nil)
	w.WriteHeader(*a.StatusCode)
	_, _ = w.Write(content)
}

// httpFailure is what an HTTP API says of a failure: 503 for what did not come to an answer in time or
// was not taken, 500 for a function that failed or answered in a wrong format ("Troubleshooting HTTP
// API Lambda integrations"; the statuses are those seen).
func httpFailure(err error) failure {
	if isRefused(err) || errors.Is(err, context.DeadlineExceeded) {
		return message(http.StatusServiceUnavailable, "Service Unavailable")
	}
	return message(http.StatusInternalServerError, "Internal Server Error")
}

// isRefused tells an invocation that Lambda did not take from one that the function failed.
func isRefused(err error) bool {
	return errors.Is(err, lambdasim.ErrThrottled) || errors.Is(err, lambdasim.ErrRequestTooLarge) || errors.Is(err, lambdasim.ErrClosed)
}
