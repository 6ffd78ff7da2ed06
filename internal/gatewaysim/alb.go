package gatewaysim

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// ALBOptions are those of a target group; nil is one without multi-value headers.
type ALBOptions struct {
	// MultiValue is lambda.multi_value_headers.enabled.
	MultiValue bool
}

// maxALB is the largest body of a request, and of a response ("Lambda functions as targets", limits).
const maxALB = 1 << 20

// ALB is an Application Load Balancer with a function as its target.
func ALB(f Lambda, o *ALBOptions) http.Handler {
	if o == nil {
		o = &ALBOptions{}
	}
	return &loadBalancer{f, *o}
}

type loadBalancer struct {
	f Lambda
	ALBOptions
}

// eventALB is a load balancer's event: names of headers in lower case, the last line and the last
// parameter of one name only unless multi-value headers are on, parameters as the client encoded them,
// and a body that is "" if there is none.
type eventALB struct {
	RequestContext  contextALB          `json:"requestContext"`
	HTTPMethod      string              `json:"httpMethod"`
	Path            string              `json:"path"`
	Query           map[string]string   `json:"queryStringParameters,omitzero"`
	MultiQuery      map[string][]string `json:"multiValueQueryStringParameters,omitzero"`
	Headers         map[string]string   `json:"headers,omitzero"`
	MultiHeaders    map[string][]string `json:"multiValueHeaders,omitzero"`
	Body            string              `json:"body"`
	IsBase64Encoded bool                `json:"isBase64Encoded"`
}

type contextALB struct {
	ELB struct {
		TargetGroupARN string `json:"targetGroupArn"`
	} `json:"elb"`
}

func (d *loadBalancer) event(r *http.Request, body []byte) *eventALB {
	h := requestHeader(r, "mcp-1234567890.eu-west-1.elb.amazonaws.com", body)
	e := &eventALB{HTTPMethod: r.Method, Path: r.URL.EscapedPath()}
	e.RequestContext.ELB.TargetGroupARN = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/mcp/6d0ecf831eec9f09"
	query := undecoded(r.URL)
	if d.MultiValue {
		e.MultiQuery, e.MultiHeaders = query, map[string][]string{}
		for name, lines := range h {
			e.MultiHeaders[strings.ToLower(name)] = lines
		}
	} else {
		e.Headers, e.Query = joined(h, last), map[string]string{}
		for name, values := range query {
			e.Query[name] = last(values)
		}
	}
	if len(body) > 0 {
		e.Body, e.IsBase64Encoded = text(body, isTextType(r.Header))
	}
	return e
}

// undecoded are the parameters of a query as they were written: "If the query parameters are
// URL-encoded, the load balancer does not decode them".
func undecoded(u *url.URL) map[string][]string {
	out := map[string][]string{}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			out[name] = append(out[name], value)
		}
	}
	return out
}

func (d *loadBalancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, tooLarge, err := readBody(r, maxALB)
	if err != nil || tooLarge {
		page(http.StatusRequestEntityTooLarge).write(w)
		return
	}
	event, err := json.Marshal(d.event(r, body))
	if err != nil || len(event) > lambdasim.MaxRequest {
		page(http.StatusBadGateway).write(w)
		return
	}
	out, err := d.f.Invoke(r.Context(), event)
	if err != nil {
		page(http.StatusBadGateway).write(w)
		return
	}
	// The headers have to be in the form that the target group is set to, and the response within
	// the limit ("Respond to the load balancer", "HTTP 502: Bad gateway").
	a, err := strict(out)
	if err != nil || len(out) > maxALB || d.MultiValue && a.Headers != nil || !d.MultiValue && a.MultiValueHeaders != nil {
		page(http.StatusBadGateway).write(w)
		return
	}
	content, err := a.content(true)
	if err != nil {
		page(http.StatusBadGateway).write(w)
		return
	}
	for name, value := range a.Headers {
		addHeader(w.Header(), name, value) // names that differ in case are different ones here
	}
	for name, values := range a.MultiValueHeaders {
		for _, value := range values {
			addHeader(w.Header(), name, value)
		}
	}
	w.WriteHeader(*a.StatusCode)
	_, _ = w.Write(content)
}

// page is a failure as a load balancer shows it: 502 for a function that failed, that outstayed its
// time or was not taken ("Troubleshoot your Application Load Balancers").
func page(status int) failure {
	title := http.StatusText(status)
	return failure{status, "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title + "</h1></center>\r\n</body>\r\n</html>\r\n", "text/html"}
}
