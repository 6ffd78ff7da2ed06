package lambdahost

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// request makes the http.Request of an event that came through d. What no HTTP
// server would pass on to a handler is refused instead, with the answer to give.
func (e *event) request(ctx context.Context, d door) (*http.Request, *refusal) {
	if e.badText {
		return nil, &refusal{http.StatusBadRequest, codeParseError, "invalid_utf8", "the request is not valid UTF-8"}
	}
	method := e.method(d)
	if !isToken(method) {
		return nil, invalidRequest("invalid_method", "the request method is not an HTTP method")
	}
	u, bad := e.url(d)
	if bad != nil {
		return nil, bad
	}
	header, bad := e.header(d)
	if bad != nil {
		return nil, bad
	}
	body, bad := e.content()
	if bad != nil {
		return nil, bad
	}

	r := new(http.Request).WithContext(ctx)
	r.Method = method
	r.URL = u
	r.RequestURI = u.RequestURI()
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.Header = header
	if host := header["Host"]; len(host) > 0 {
		r.Host = host[0]
		delete(header, "Host")
	}
	if r.Host == "" {
		r.Host = e.context.domain
	}
	// The event holds the whole body, whatever coding it travelled in.
	delete(header, "Transfer-Encoding")
	r.ContentLength = int64(len(body))
	r.Body = http.NoBody
	if len(body) > 0 {
		b := &requestBody{}
		b.Reset(body)
		r.Body = b
	}
	if ip, err := netip.ParseAddr(e.context.sourceIP); err == nil {
		r.RemoteAddr = netip.AddrPortFrom(ip, 0).String()
	}
	if encrypted(d, header) {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	return r, nil
}

func (e *event) method(d door) string {
	if d == httpAPI2 || d == functionURL {
		return e.context.httpMethod
	}
	return e.httpMethod
}

// requestBody is a body in memory.
type requestBody struct{ bytes.Reader }

func (*requestBody) Close() error { return nil }

// encrypted reports whether the caller spoke TLS: always, except to a load balancer
// with a plain listener. A load balancer sets X-Forwarded-Proto itself.
func encrypted(d door, h http.Header) bool {
	if d != albSingle && d != albMulti {
		return true
	}
	proto := h["X-Forwarded-Proto"]
	return len(proto) > 0 && proto[len(proto)-1] == "https"
}

// url takes path and query apart, each on its own: joined and parsed again, a
// decoded question mark in the path would move part of it into the query.
func (e *event) url(d door) (*url.URL, *refusal) {
	path := e.path
	if d == httpAPI2 || d == functionURL {
		path = e.rawPath
	}
	// An HTTP API puts a named stage in front of the path, under custom domains
	// too. A REST API does not.
	if stage := e.context.stage; (d == httpAPI1 || d == httpAPI2) && stage != "" && stage != "$default" {
		if rest, ok := strings.CutPrefix(path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u := &url.URL{Path: path, RawQuery: e.queryString(d)}
	// An HTTP API hands over the path already decoded, for both payload formats and
	// the name rawPath notwithstanding. Decoding it again would let a caller write
	// one path for the gateway's routes and authorizers and another one for us.
	if d != httpAPI1 && d != httpAPI2 {
		decoded, err := url.PathUnescape(path)
		if err != nil {
			return nil, invalidRequest("invalid_path", "the request path has a malformed percent-encoding")
		}
		if u.Path = decoded; u.EscapedPath() != path {
			u.RawPath = path // net/url ignores it unless it is an encoding of Path
		}
	}
	if hasControl(path) || hasControl(u.RawQuery) {
		return nil, invalidRequest("invalid_path", "the request path or query has a control character")
	}
	return u, nil
}

// queryString rebuilds the query. API Gateway has decoded names and values for
// payload 1.0; a load balancer has not, so encoding those would do it twice.
func (e *event) queryString(d door) string {
	if d == httpAPI2 || d == functionURL {
		return e.rawQuery
	}
	parameters := e.multiQuery.list
	if len(parameters) == 0 {
		parameters = e.query.list
	}
	if len(parameters) == 0 {
		return ""
	}
	escape := url.QueryEscape
	if d == albSingle || d == albMulti {
		escape = func(s string) string { return s }
	}
	var b strings.Builder
	for i, p := range parameters {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(escape(p.name))
		b.WriteByte('=')
		b.WriteString(escape(p.value))
	}
	return b.String()
}

// header takes each line once: payload 1.0 carries all of them in both maps, and
// the multi-value one is complete (spec M-24 needs to see repeated lines).
func (e *event) header(d door) (http.Header, *refusal) {
	lines := e.multiHeaders.list
	if len(lines) == 0 {
		lines = e.headers.list
	}
	h := make(http.Header, len(lines)+1)
	values := make([]string, len(lines)) // one allocation for all the one-value lists
	for i, l := range lines {
		value := textproto.TrimString(l.value)
		if !isToken(l.name) || hasControl(value) {
			return nil, invalidRequest("invalid_header", "a header has a character that HTTP does not allow")
		}
		name := canonicalName(l.name)
		if old, ok := h[name]; ok {
			h[name] = append(old, value)
			continue
		}
		values[i] = value
		h[name] = values[i : i+1 : i+1]
	}
	// A Function URL repeats in the list what the header says.
	if (d == httpAPI2 || d == functionURL) && len(e.cookies) > 0 {
		cookie := strings.Join(e.cookies, "; ")
		if hasControl(cookie) {
			return nil, invalidRequest("invalid_header", "a cookie has a character that HTTP does not allow")
		}
		h["Cookie"] = []string{cookie}
	}
	return h, nil
}

// canonicalName is textproto.CanonicalMIMEHeaderKey, which knows the common names of
// the web by heart, without an allocation for those common here too.
func canonicalName(name string) string {
	if known, ok := knownNames[name]; ok {
		return known
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

var knownNames = func() map[string]string {
	known := make(map[string]string)
	for _, name := range []string{
		"Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Origin", "Priority", "Sec-Fetch-Mode", "Traceparent", "X-Amzn-Trace-Id",
		"X-Forwarded-For", "X-Forwarded-Port", "X-Forwarded-Proto",
	} {
		known[strings.ToLower(name)] = name
	}
	return known
}()

// content is the body in memory of its own.
func (e *event) content() ([]byte, *refusal) {
	if e.body == "" {
		return nil, nil
	}
	var b []byte
	if s := e.body[1 : len(e.body)-1]; strings.IndexByte(s, '\\') < 0 {
		b = []byte(s)
	} else {
		var err error
		if b, err = jsontext.AppendUnquote(nil, e.body); err != nil {
			return nil, &refusal{http.StatusBadRequest, codeParseError, "invalid_utf8", "the request body is not valid UTF-8"}
		}
	}
	if !e.isBase64 {
		return b, nil
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, err := base64.StdEncoding.Decode(decoded, b)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, codeParseError, "invalid_base64", "the request body is marked as base64 and is not"}
	}
	return decoded[:n], nil
}

// isToken reports whether s can be a method or a header name (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenByte = func() (t [256]bool) {
	for c := '0'; c <= 'z'; c++ {
		t[c] = c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// hasControl reports whether s has a control character other than a tab. Those end
// lines or strings somewhere, so no HTTP server passes them on.
func hasControl(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}
