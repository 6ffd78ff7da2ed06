package gatewaysim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// RESTOptions are those of a REST API; nil is one with the stage prod that buffers.
type RESTOptions struct {
	// Stage is the stage; "": prod. It stands in front of the path for the client alone.
	Stage string
	// BasePath is the mapping of a custom domain, such as /agents: the domain's clients write it in
	// place of the stage, and the function sees it.
	BasePath string
	// Streaming is responseTransferMode STREAM.
	Streaming bool
	// BinaryMediaTypes are those for which bodies are decoded.
	BinaryMediaTypes []string
	// Timeout is the integration's; 0: 29 s, and 15 min with Streaming.
	Timeout time.Duration
	// IdleTimeout is that of a stream; 0: 5 min, as a regional endpoint has it.
	IdleTimeout time.Duration
}

// RESTAPI is an API Gateway REST API with a Lambda proxy integration on /{proxy+} ("Lambda proxy
// integrations in API Gateway", "Set up a Lambda proxy integration with payload response streaming").
func RESTAPI(f Lambda, o *RESTOptions) http.Handler {
	if o == nil {
		o = &RESTOptions{}
	}
	d := &restAPI{f, *o}
	if d.Stage == "" {
		d.Stage = "prod"
	}
	if d.Timeout == 0 {
		d.Timeout = 29 * time.Second
		if d.Streaming {
			d.Timeout = 15 * time.Minute
		}
	}
	if d.IdleTimeout == 0 {
		d.IdleTimeout = 5 * time.Minute
	}
	return d
}

type restAPI struct {
	f Lambda
	RESTOptions
}

// event1 is payload format 1.0. What is missing is null, not absent.
type event1 struct {
	Resource        string              `json:"resource"`
	Path            string              `json:"path"`
	HTTPMethod      string              `json:"httpMethod"`
	Headers         map[string]string   `json:"headers"`
	MultiHeaders    map[string][]string `json:"multiValueHeaders"`
	Query           map[string]string   `json:"queryStringParameters"`
	MultiQuery      map[string][]string `json:"multiValueQueryStringParameters"`
	PathParameters  map[string]string   `json:"pathParameters"`
	StageVariables  map[string]string   `json:"stageVariables"`
	RequestContext  context1            `json:"requestContext"`
	Body            *string             `json:"body"`
	IsBase64Encoded bool                `json:"isBase64Encoded"`
}

type context1 struct {
	ResourceID        string    `json:"resourceId"`
	ResourcePath      string    `json:"resourcePath"`
	HTTPMethod        string    `json:"httpMethod"`
	ExtendedRequestID string    `json:"extendedRequestId"`
	RequestTime       string    `json:"requestTime"`
	Path              string    `json:"path"`
	AccountID         string    `json:"accountId"`
	Protocol          string    `json:"protocol"`
	Stage             string    `json:"stage"`
	DomainPrefix      string    `json:"domainPrefix"`
	RequestTimeEpoch  int64     `json:"requestTimeEpoch"`
	RequestID         string    `json:"requestId"`
	Identity          identity1 `json:"identity"`
	DomainName        string    `json:"domainName"`
	APIID             string    `json:"apiId"`
}

// identity1 has nothing but nulls for a caller whom nobody has verified.
type identity1 struct {
	CognitoIdentityPoolID         *string `json:"cognitoIdentityPoolId"`
	AccountID                     *string `json:"accountId"`
	CognitoIdentityID             *string `json:"cognitoIdentityId"`
	Caller                        *string `json:"caller"`
	SourceIP                      string  `json:"sourceIp"`
	PrincipalOrgID                *string `json:"principalOrgId"`
	AccessKey                     *string `json:"accessKey"`
	CognitoAuthenticationType     *string `json:"cognitoAuthenticationType"`
	CognitoAuthenticationProvider *string `json:"cognitoAuthenticationProvider"`
	UserARN                       *string `json:"userArn"`
	UserAgent                     string  `json:"userAgent"`
	User                          *string `json:"user"`
}

// event makes the event of a request whose client wrote path behind stage or custom domain.
func (d *restAPI) event(r *http.Request, body []byte, path string) *event1 {
	domain := apiDomain
	if d.BasePath != "" {
		domain = "api.example.com"
	}
	h := requestHeader(r, domain, body)
	now := time.Now().UTC()
	prefix, _, _ := strings.Cut(domain, ".")
	single := make(map[string]string, len(h))
	for name, lines := range h {
		single[name] = last(lines)
	}
	e := &event1{
		Resource: "/{proxy+}", Path: path, HTTPMethod: r.Method, Headers: single, MultiHeaders: h,
		PathParameters: map[string]string{"proxy": strings.TrimPrefix(strings.TrimPrefix(path, d.BasePath), "/")},
		RequestContext: context1{
			ResourceID: "2gxmpl", ResourcePath: "/{proxy+}", HTTPMethod: r.Method, ExtendedRequestID: "JJbxmplHYosFVYQ=",
			RequestTime: now.Format("02/Jan/2006:15:04:05 -0700"), Path: r.URL.EscapedPath(), AccountID: "123456789012", Protocol: r.Proto,
			Stage: d.Stage, DomainPrefix: prefix, RequestTimeEpoch: now.UnixMilli(), RequestID: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
			Identity: identity1{SourceIP: sourceIP(r), UserAgent: r.UserAgent()}, DomainName: domain, APIID: "a1b2c3d4e5",
		},
	}
	if query := r.URL.Query(); len(query) > 0 {
		e.MultiQuery, e.Query = query, map[string]string{}
		for name, values := range query {
			e.Query[name] = last(values)
		}
	}
	if len(body) > 0 {
		e.IsBase64Encoded = d.binary(r.Header.Get("Content-Type"))
		b := base64.StdEncoding.EncodeToString(body)
		if !e.IsBase64Encoded {
			b = strings.ToValidUTF8(string(body), "\uFFFD") // which is the end of what is binary and not said to be
		}
		e.Body = &b
	}
	return e
}

// binary reports whether a media type is one of the binary ones.
func (d *restAPI) binary(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	return slices.Contains(d.BinaryMediaTypes, "*/*") || slices.Contains(d.BinaryMediaTypes, strings.TrimSpace(media))
}

func (d *restAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	front := "/" + d.Stage
	if d.BasePath != "" {
		front = d.BasePath
	}
	rest, ok := strings.CutPrefix(path, front)
	if !ok || rest != "" && rest[0] != '/' {
		message(http.StatusForbidden, "Forbidden").write(w)
		return
	}
	if d.BasePath == "" {
		path = rest
	}
	if _, err := url.PathUnescape(path); err != nil {
		message(http.StatusBadRequest, "Bad Request").write(w)
		return
	}
	body, tooLarge, err := readBody(r, maxGatewayBody)
	if err != nil || tooLarge {
		message(http.StatusRequestEntityTooLarge, "Request Too Long").write(w)
		return
	}
	event, err := json.Marshal(d.event(r, body, path))
	if err != nil {
		restFailure(err).write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	if d.Streaming {
		d.stream(ctx, w, r, event)
		return
	}
	out, err := d.f.Invoke(ctx, event)
	if err != nil {
		restFailure(err).write(w)
		return
	}
	// "If the function output is of a different format, API Gateway returns a 502": a member that
	// it does not know makes it one.
	a, err := strict(out)
	if err != nil || !only(out, "statusCode", "headers", "multiValueHeaders", "body", "isBase64Encoded") {
		restFailure(errMalformed).write(w)
		return
	}
	content, err := a.content(d.decodes(r, a))
	if err != nil {
		restFailure(err).write(w)
		return
	}
	a.head1(w.Header())
	w.WriteHeader(*a.StatusCode)
	_, _ = w.Write(content)
}

// decodes reports whether a response in base64 is decoded: for a binary media type, by the first
// that the client accepts or by the response's own ("Content type conversions in API Gateway").
func (d *restAPI) decodes(r *http.Request, a *answer) bool {
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	kinds := a.MultiValueHeaders["Content-Type"]
	return d.binary(accept) || len(kinds) > 0 && d.binary(kinds[0]) || d.binary(a.Headers["Content-Type"])
}

// head1 writes the header of an answer in payload format 1.0: "If you specify values for both headers
// and multiValueHeaders, API Gateway merges them into a single list. If the same key-value pair is
// specified in both, only the values from multiValueHeaders will appear".
func (a *answer) head1(h http.Header) {
	for name, values := range a.MultiValueHeaders {
		for _, value := range values {
			addHeader(h, name, value, remapped...)
		}
	}
	for name, value := range a.Headers {
		if !slices.Contains(a.MultiValueHeaders[name], value) {
			addHeader(h, name, value, remapped...)
		}
	}
	for _, cookie := range a.Cookies {
		h.Add("Set-Cookie", cookie)
	}
}

// stream passes a stream on. Whatever its content type, it has to begin with a prelude.
func (d *restAPI) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, event []byte) {
	s, err := d.f.InvokeStream(ctx, event)
	if err != nil {
		restFailure(err).write(w)
		return
	}
	defer s.Close()
	idle := time.AfterFunc(d.IdleTimeout, func() { _ = s.Close() })
	defer idle.Stop()
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	busy := readerFunc(func(p []byte) (int, error) {
		n, err := s.Read(p)
		idle.Reset(d.IdleTimeout)
		return n, err
	})
	a, first, err := readPrelude(busy)
	if err != nil {
		restFailure(err).write(w)
		return
	}
	a.head1(w.Header())
	pass(w, r, *a.StatusCode, first, busy)
}

// readerFunc is an io.Reader.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// restFailure is what a REST API says of a failure: "If the Lambda API rejects the invocation request,
// API Gateway returns a 500 error code. If the function runs but returns an error, or returns a
// response in the wrong format, API Gateway returns a 502" ("Handling Lambda errors with an API Gateway
// API"), and 504 once the integration's time is over ("Gateway response types").
func restFailure(err error) failure {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return message(http.StatusGatewayTimeout, "Endpoint request timed out")
	case isRefused(err):
		return message(http.StatusInternalServerError, "Internal server error")
	}
	return message(http.StatusBadGateway, "Internal server error")
}
