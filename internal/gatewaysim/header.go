package gatewaysim

import (
	"encoding/base64"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// requestHeader is the header that a function sees: the client's, and what AWS adds to it. A body
// that came in chunks has its length by then.
func requestHeader(r *http.Request, host string, body []byte) http.Header {
	h := r.Header.Clone()
	h.Set("Host", host)
	if len(body) > 0 {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	h.Set("X-Amzn-Trace-Id", "Root=1-5e6722a7-cc56cc5a46db7ae02d4da47e")
	h.Set("X-Forwarded-For", strings.Join(append(h["X-Forwarded-For"], sourceIP(r)), ", "))
	h.Set("X-Forwarded-Port", "443")
	h.Set("X-Forwarded-Proto", "https")
	return h
}

func sourceIP(r *http.Request) string {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "192.0.2.1"
	}
	return ip
}

// joined has one line a name, in lower case: what payload 2.0 and load balancers have.
func joined(h http.Header, join func([]string) string) map[string]string {
	out := make(map[string]string, len(h))
	for name, lines := range h {
		out[strings.ToLower(name)] = join(lines)
	}
	return out
}

func commas(lines []string) string { return strings.Join(lines, ",") }
func last(lines []string) string   { return lines[len(lines)-1] }

// remapped are the names of a response's header that API Gateway gives the prefix
// X-Amzn-Remapped-, for a REST API ("Important notes for REST APIs"). Function URLs do the same,
// which their documentation does not say and their users report, of WWW-Authenticate and
// Content-Length among others (cargo-lambda#862).
var remapped = []string{"Authorization", "Connection", "Content-Md5", "Date", "Max-Forwards", "Server", "Www-Authenticate"}

// addHeader adds a line of a function's answer to the response. What it says of the connection
// to the client is not its to say.
func addHeader(h http.Header, name, value string, remaps ...string) {
	canonical := http.CanonicalHeaderKey(name)
	if slices.Contains(remaps, canonical) {
		canonical = "X-Amzn-Remapped-" + canonical
	}
	if canonical == "Content-Length" || canonical == "Transfer-Encoding" {
		return
	}
	h.Add(canonical, value)
}

// text is a request's body as an event has it. isText tells which media types are no base64.
func text(body []byte, isText bool) (string, bool) {
	if isText && utf8.Valid(body) {
		return string(body), false
	}
	return base64.StdEncoding.EncodeToString(body), true
}

// isTextType is the rule of load balancers ("Lambda functions as targets"). Function URLs and HTTP
// APIs document no more than that they encode what is binary, and are seen to encode forms too.
func isTextType(h http.Header) bool {
	if h.Get("Content-Encoding") != "" {
		return false
	}
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); media {
	case "application/json", "application/javascript", "application/xml":
		return true
	}
	return strings.HasPrefix(media, "text/")
}
