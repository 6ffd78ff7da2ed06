package gatewaysim

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// event2 is payload format 2.0, of HTTP APIs and Function URLs ("AWS Lambda proxy integrations for
// HTTP APIs", "Invoking Lambda function URLs"): names of headers in lower case, lines of one name
// and parameters of one name joined by commas, cookies apart.
type event2 struct {
	Version         string            `json:"version"`
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Cookies         []string          `json:"cookies,omitempty"`
	Headers         map[string]string `json:"headers"`
	Query           map[string]string `json:"queryStringParameters,omitempty"`
	RequestContext  context2          `json:"requestContext"`
	Body            *string           `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type context2 struct {
	AccountID    string `json:"accountId"`
	APIID        string `json:"apiId"`
	DomainName   string `json:"domainName"`
	DomainPrefix string `json:"domainPrefix"`
	HTTP         http2  `json:"http"`
	RequestID    string `json:"requestId"`
	RouteKey     string `json:"routeKey"`
	Stage        string `json:"stage"`
	Time         string `json:"time"`
	TimeEpoch    int64  `json:"timeEpoch"`
}

type http2 struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Protocol  string `json:"protocol"`
	SourceIP  string `json:"sourceIp"`
	UserAgent string `json:"userAgent"`
}

// newEvent2 makes the event of a request. path is rawPath, which the doors write differently.
func newEvent2(r *http.Request, body []byte, domain, account, stage, path string) *event2 {
	h := requestHeader(r, domain, body)
	prefix, _, _ := strings.Cut(domain, ".")
	now := time.Now().UTC()
	e := &event2{
		Version: "2.0", RouteKey: "$default", RawPath: path, RawQueryString: r.URL.RawQuery,
		Headers: joined(h, commas), Query: joinedQuery(r.URL),
		RequestContext: context2{
			AccountID: account, APIID: prefix, DomainName: domain, DomainPrefix: prefix,
			HTTP:      http2{r.Method, path, r.Proto, sourceIP(r), r.UserAgent()},
			RequestID: "JKJaXmPLvHcESHA=", RouteKey: "$default", Stage: stage,
			Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
		},
	}
	if lines := h["Cookie"]; lines != nil {
		e.Headers["cookie"] = strings.Join(lines, "; ")
	}
	for _, line := range h["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			e.Cookies = append(e.Cookies, strings.TrimSpace(cookie))
		}
	}
	if len(body) > 0 {
		b, is64 := text(body, isTextType(r.Header))
		e.Body, e.IsBase64Encoded = &b, is64
	}
	return e
}

func joinedQuery(u *url.URL) map[string]string {
	out := map[string]string{}
	for name, values := range u.Query() {
		out[name] = strings.Join(values, ",")
	}
	return out
}
