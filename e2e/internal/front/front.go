// Package front stands in for the front door of a Lambda function: it turns HTTP into
// the events of an API Gateway HTTP API or a Function URL (payload format 2.0 both) and
// the function's answers back into HTTP.
package front

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Invoke hands an event to a function.
type Invoke func(ctx context.Context, event []byte) ([]byte, error)

// HTTPAPI is the front door of an API Gateway HTTP API with the default stage.
func HTTPAPI(f Invoke) http.Handler {
	return &door{f, "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com", "POST /mcp"}
}

// FunctionURL is the front door of a Function URL.
func FunctionURL(f Invoke) http.Handler {
	return &door{f, "abcdefghijklmnop.lambda-url.eu-west-1.on.aws", "$default"}
}

type door struct {
	invoke Invoke
	domain string
	route  string
}

// event is payload format 2.0.
type event struct {
	Version         string            `json:"version"`
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Cookies         []string          `json:"cookies,omitempty"`
	Headers         map[string]string `json:"headers"`
	RequestContext  requestContext    `json:"requestContext"`
	Body            *string           `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID    string      `json:"accountId"`
	APIID        string      `json:"apiId"`
	DomainName   string      `json:"domainName"`
	DomainPrefix string      `json:"domainPrefix"`
	HTTP         httpContext `json:"http"`
	RequestID    string      `json:"requestId"`
	RouteKey     string      `json:"routeKey"`
	Stage        string      `json:"stage"`
	Time         string      `json:"time"`
	TimeEpoch    int64       `json:"timeEpoch"`
}

type httpContext struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// answer is what a function returns in that format.
type answer struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Cookies         []string          `json:"cookies"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := d.event(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	payload, err := json.Marshal(e)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out, err := d.invoke(r.Context(), payload)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if err := write(w, out); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// event keeps the rules of the real doors: header names in lower case, repeated lines
// joined by a comma, cookies apart, bodies that are no text in Base64.
func (d *door) event(r *http.Request) (*event, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{
		"host":              d.domain,
		"x-forwarded-for":   "198.51.100.7",
		"x-forwarded-port":  "443",
		"x-forwarded-proto": "https",
		"x-amzn-trace-id":   "Root=1-5e6722a7-cc56xmpl46db7ae02d4da47e",
	}
	for name, lines := range r.Header {
		if name != "Cookie" {
			headers[strings.ToLower(name)] = strings.Join(lines, ",")
		}
	}
	if len(body) > 0 {
		headers["content-length"] = fmt.Sprint(len(body))
	}
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	prefix, _, _ := strings.Cut(d.domain, ".")
	e := &event{
		Version: "2.0", RouteKey: d.route, RawPath: r.URL.EscapedPath(), RawQueryString: r.URL.RawQuery,
		Cookies: r.Header["Cookie"], Headers: headers,
		RequestContext: requestContext{
			AccountID: "123456789012", APIID: prefix, DomainName: d.domain, DomainPrefix: prefix,
			HTTP:      httpContext{r.Method, r.URL.EscapedPath(), r.Proto, ip, r.UserAgent()},
			RequestID: "JKJaXmPLvHcESHA=", RouteKey: d.route, Stage: "$default",
			Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
		},
	}
	if len(body) == 0 {
		return e, nil
	}
	text := string(body)
	if !isText(r.Header.Get("Content-Type")) || !utf8.Valid(body) {
		text, e.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	e.Body = &text
	return e, nil
}

func isText(contentType string) bool {
	return strings.HasPrefix(contentType, "text/") || strings.HasPrefix(contentType, "application/json")
}

// write turns a function's answer into a response. Whatever is no proxy response, an
// error of the function among them, is the 502 that the real doors give, with the answer
// in it for whoever reads the test's log.
func write(w http.ResponseWriter, out []byte) error {
	var a answer
	if err := json.Unmarshal(out, &a); err != nil || a.StatusCode == 0 {
		return fmt.Errorf("the function's answer is no response (%v): %s", err, out)
	}
	body := []byte(a.Body)
	if a.IsBase64Encoded {
		b, err := base64.StdEncoding.DecodeString(a.Body)
		if err != nil {
			return fmt.Errorf("the function's body is no Base64: %w", err)
		}
		body = b
	}
	h := w.Header()
	for name, value := range a.Headers {
		h.Set(name, value)
	}
	for _, cookie := range a.Cookies {
		h.Add("Set-Cookie", cookie)
	}
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(body) // a client that has left gets no other answer either
	return nil
}
