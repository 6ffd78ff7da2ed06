package lambdahost

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// response is what a handler, or this package in its stead, has to say.
type response struct {
	status int
	header http.Header
	body   []byte
	size   int // bytes written; more than len(body) if the body was dropped as too large
}

// encode writes res in the form that d takes. It returns nil and the size if that
// is above d's limit. The size is exact unless the body was dropped; then it is that
// of the body at least.
func (d door) encode(res *response) (answer []byte, size int) {
	if res.size > len(res.body) {
		return nil, res.size
	}
	contentType := res.header["Content-Type"]
	text := utf8.Valid(res.body) && isText(contentType) && len(res.header["Content-Encoding"]) == 0
	bodyLen := base64.StdEncoding.EncodedLen(len(res.body))
	if text {
		bodyLen = escapedLen(res.body)
	}
	room := usualHead
	if bodyLen <= d.limit() {
		room += bodyLen
	}

	b := make([]byte, 0, room)
	b = append(b, `{"statusCode":`...)
	b = strconv.AppendInt(b, int64(res.status), 10)
	if d == albSingle || d == albMulti {
		b = append(b, `,"statusDescription":`...)
		b = appendString(b, strings.TrimSpace(strconv.Itoa(res.status)+" "+http.StatusText(res.status)))
	}
	b = d.appendHeader(b, res.header)
	b = append(b, `,"isBase64Encoded":`...)
	b = strconv.AppendBool(b, !text)
	b = append(b, `,"body":`...)
	if size = len(b) + len(`""}`) + bodyLen; size > d.limit() {
		return nil, size
	}
	if text {
		b = appendString(b, res.body)
	} else {
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, res.body)
		b = append(b, '"')
	}
	return append(b, '}'), size
}

// prelude is what stands before the body of a streamed response: status and header as JSON, and
// the eight zero bytes that end it.
func (d door) prelude(res *response) []byte {
	b := make([]byte, 0, usualHead)
	b = append(b, `{"statusCode":`...)
	b = strconv.AppendInt(b, int64(res.status), 10)
	b = d.appendHeader(b, res.header)
	return append(b, "}\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// usualHead is room for everything around the body of a usual answer.
const usualHead = 768

// appendHeader appends the header members.
//
// Payload 1.0 and multi-value load balancers get multiValueHeaders and nothing
// else: API Gateway merges the two maps, so filling both would be the same twice,
// within a limited size. A load balancer answers 502 if the map is not of the kind
// it is set to, and a REST API if there is any member it does not know, so
// cookies go to payload 2.0 alone.
func (d door) appendHeader(b []byte, h http.Header) []byte {
	names := make([]string, 0, 32)
	hop := h["Connection"]
	for name := range h {
		if !isHopByHop(name, hop) && isToken(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	if d == restAPI || d == httpAPI1 || d == albMulti {
		b = append(b, `,"multiValueHeaders":{`...)
		for _, name := range names {
			b = append(appendString(b, name), ':')
			b = append(appendValues(b, h[name]), ',')
		}
		return append(trimComma(b), '}')
	}

	var cookies []string
	b = append(b, `,"headers":{`...)
	for _, name := range names {
		if textproto.CanonicalMIMEHeaderKey(name) == "Set-Cookie" {
			cookies = append(cookies, h[name]...) // the one header that cannot be joined
			continue
		}
		b = append(appendString(b, name), ':')
		b = append(appendText(b, joinValues(h[name])), ',')
	}
	if d == albSingle {
		for i, cookie := range cookies {
			b = append(appendString(b, cookieName(i)), ':')
			b = append(appendText(b, headerValue(cookie)), ',')
		}
	}
	b = append(trimComma(b), '}')
	if d != albSingle && len(cookies) > 0 {
		b = append(b, `,"cookies":`...)
		b = appendValues(b, cookies)
	}
	return b
}

func trimComma(b []byte) []byte { return bytes.TrimSuffix(b, []byte{','}) }

// isHopByHop reports whether a field belongs to the connection of the handler, not
// to the response. Content-Length counts: the front door computes its own from the
// body it decodes, and a handler's would be wrong for a HEAD or a gateway that
// compresses.
func isHopByHop(name string, connection []string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	for _, line := range connection {
		for option := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(option), name) {
				return true
			}
		}
	}
	return false
}

func appendValues(b []byte, values []string) []byte {
	b = append(b, '[')
	for _, v := range values {
		b = append(appendText(b, headerValue(v)), ',')
	}
	return append(trimComma(b), ']')
}

func joinValues(values []string) string {
	if len(values) == 1 {
		return headerValue(values[0])
	}
	clean := make([]string, len(values))
	for i, v := range values {
		clean[i] = headerValue(v)
	}
	return strings.Join(clean, ", ")
}

var newlines = strings.NewReplacer("\r", " ", "\n", " ")

// headerValue makes v one line, as net/http does when it sends a header.
func headerValue(v string) string { return textproto.TrimString(newlines.Replace(v)) }

// cookieName is a spelling of Set-Cookie of its own for each of the first 512
// cookies. A load balancer without multi-value headers takes one value a name but
// lets names that differ in case pass as different ones.
func cookieName(i int) string {
	name := []byte("set-cookie")
	for j, c := range name {
		if c == '-' {
			continue
		}
		if i&1 == 1 {
			name[j] = c - 'a' + 'A'
		}
		i >>= 1
	}
	return string(name)
}

// isText reports whether a body of that media type is handed over as text rather
// than base64: a REST API decodes base64 only for the binary media types that it is
// set up with.
func isText(contentType []string) bool {
	if len(contentType) == 0 {
		return true
	}
	t := mediaType(contentType[0])
	switch t {
	case "", "application/json", "application/javascript", "application/xml", "application/x-ndjson",
		"application/x-www-form-urlencoded", "application/graphql":
		return true
	}
	return strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml")
}

// mediaType is the type in a Content-Type value, in lower case, without parameters.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// sniff sets the Content-Type that net/http would.
func (res *response) sniff() {
	if _, set := res.header["Content-Type"]; !set && len(res.body) > 0 && res.header.Get("Content-Encoding") == "" {
		res.header.Set("Content-Type", http.DetectContentType(res.body))
	}
}

// stands reports whether what a handler had written when its time was up can be
// sent as it is: there is a status, and nothing says that the body is cut short.
func (res *response) stands(isHead bool) bool {
	if res.status == 0 {
		return false
	}
	if isHead || !bodyAllowed(res.status) {
		return true
	}
	if len(res.body) == 0 {
		return res.size > 0 // too large, which is the better error
	}
	if want, err := strconv.Atoi(res.header.Get("Content-Length")); err == nil && want != len(res.body) {
		return false
	}
	switch t := mediaType(res.header.Get("Content-Type")); {
	case t == "application/json" || strings.HasSuffix(t, "+json"):
		return jsontext.Value(res.body).IsValid(jsontext.AllowDuplicateNames(true))
	case t == "text/event-stream":
		// Clients discard an event that lacks its blank line.
		return bytes.Contains(res.body, []byte("\n\n")) || bytes.Contains(res.body, []byte("\r\n\r\n"))
	}
	return true
}
