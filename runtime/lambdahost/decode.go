package lambdahost

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeEvent reads payload and tells its door; noDoor without an error means that
// the event says nothing at all (null, {}). The error is an *UnknownEventError.
// Unknown members are skipped, and a name counts only in its exact spelling.
func decodeEvent(payload []byte) (e event, d door, err error) {
	r := newReader(payload)
	defer r.release()
	switch r.dec.PeekKind() {
	case '{':
		r.event(&e)
	case 'n':
		e.empty = true
		r.skip()
	default:
		if r.skip(); r.err == nil {
			return e, noDoor, unknownEvent(payload, "not a JSON object")
		}
	}
	r.end()
	e.badText = r.badText
	d = e.door()
	switch {
	case r.err != nil:
		return e, noDoor, unknownEvent(payload, "not valid JSON")
	case e.empty:
		return e, noDoor, nil
	case d == noDoor:
		return e, noDoor, unknownEvent(payload, "not an HTTP request")
	case r.fault != "":
		return e, noDoor, unknownEvent(payload, r.fault)
	}
	return e, d, nil
}

// memberNames lists the names of the top-level members of payload as far as it can
// be read.
func memberNames(payload []byte) (names []string) {
	r := newReader(payload)
	defer r.release()
	if r.dec.PeekKind() != '{' {
		return nil
	}
	for name := range r.members("event") {
		if len(name) > maxMemberName {
			name = strings.ToValidUTF8(name[:maxMemberName], "") + "..."
		}
		if names = append(names, name); len(names) == maxMembers {
			break
		}
		r.skip()
	}
	return names
}

// reader pulls an event out of a payload. The first error in the JSON text sticks,
// and everything read after it is zero. The first value of a wrong type is kept as
// fault and reading goes on, because only the whole event tells whether the member
// means anything here.
type reader struct {
	dec     jsontext.Decoder
	text    string // a copy of the payload, which strings without escapes are cut from
	err     error
	fault   string
	badText bool // half a surrogate pair was read
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// lenient lets stray bytes through: whether they matter is for the code that uses
// the string. Duplicate members stay an error, since no front door sends them and
// two readers might pick different ones.
var lenient = jsontext.AllowInvalidUTF8(true)

// newReader copies payload, because the runtime loop reuses its buffer for the next
// invocation while a handler that has missed its deadline may still hold strings of
// this one.
func newReader(payload []byte) *reader {
	r := readers.Get().(*reader)
	r.text = string(payload)
	r.dec.Reset(bytes.NewBuffer(payload), lenient)
	return r
}

var nothing = bytes.NewReader(nil)

func (r *reader) release() {
	r.dec.Reset(nothing)
	r.text, r.err, r.fault, r.badText = "", nil, "", false
	readers.Put(r)
}

func (r *reader) event(e *event) {
	e.empty = true
	for name := range r.members("event") {
		e.empty = false
		switch name {
		case "version":
			e.version = r.str(name)
		case "httpMethod":
			e.httpMethod = r.str(name)
		case "path":
			e.hasPath = r.dec.PeekKind() == '"'
			e.path = r.str(name)
		case "rawPath":
			e.rawPath = r.str(name)
		case "rawQueryString":
			e.rawQuery = r.str(name)
		case "headers":
			e.headers = r.singles(name)
		case "multiValueHeaders":
			e.multiHeaders = r.lists(name)
		case "queryStringParameters":
			e.query = r.singles(name)
		case "multiValueQueryStringParameters":
			e.multiQuery = r.lists(name)
		case "cookies":
			for range r.elements(name) {
				e.cookies = append(e.cookies, r.str(name))
			}
		case "body":
			if r.is('"', name) {
				e.body = r.raw()
			}
		case "isBase64Encoded":
			e.isBase64 = r.flag(name)
		case "requestContext":
			r.context(&e.context)
		case "methodArn", "routeArn":
			e.authorizer = true
			r.skip()
		default:
			r.skip()
		}
	}
}

func (r *reader) context(c *requestContext) {
	for name := range r.members("requestContext") {
		switch name {
		case "elb":
			c.elb = r.dec.PeekKind() == '{'
			r.skip()
		case "connectionId":
			c.webSocket = true
			r.skip()
		case "stage":
			c.stage = r.str(name)
		case "domainName":
			c.domain = r.str(name)
		case "http":
			c.http = r.dec.PeekKind() == '{'
			for name := range r.members(name) {
				switch name {
				case "method":
					c.httpMethod = r.str(name)
				case "sourceIp":
					c.sourceIP = r.str(name)
				default:
					r.skip()
				}
			}
		case "identity":
			for name := range r.members(name) {
				switch name {
				case "sourceIp":
					c.sourceIP = r.str(name)
				case "accountId":
					c.signer.Account = r.str(name)
				case "caller":
					c.signer.Caller = r.str(name)
				case "cognitoIdentityId":
					c.signer.Pooled = r.str(name) != ""
				default:
					r.skip()
				}
			}
		case "apiId":
			c.apiID = r.str(name)
		case "authorizer":
			r.authorizer(&c.authorizer)
		default:
			r.skip()
		}
	}
}

// singles reads an object of strings. A null value is no line.
func (r *reader) singles(member string) (f fields) {
	f.present = r.dec.PeekKind() == '{'
	for name := range r.members(member) {
		if r.is('"', member) {
			f.add(name, r.str(member))
		}
	}
	return f
}

// lists reads an object of lists of strings, one field an element.
func (r *reader) lists(member string) (f fields) {
	f.present = r.dec.PeekKind() == '{'
	for name := range r.members(member) {
		for range r.elements(member) {
			if r.is('"', member) {
				f.add(name, r.str(member))
			}
		}
	}
	return f
}

// usualFields is how many header lines a request through a gateway has, more or
// less; growing to it step by step would cost more than the space.
const usualFields = 24

func (f *fields) add(name, value string) {
	if f.list == nil {
		f.list = make([]field, 0, usualFields)
	}
	f.list = append(f.list, field{name, value})
}

// members iterates over an object, yielding each name once the decoder stands
// before its value, which the loop must consume. A null yields nothing.
func (r *reader) members(member string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !r.is('{', member) {
			return
		}
		for r.token(); r.err == nil && r.dec.PeekKind() != '}'; {
			if name := r.unquote(r.raw()); r.err == nil && !yield(name) {
				return
			}
		}
		r.token()
	}
}

// elements iterates over an array in the same way.
func (r *reader) elements(member string) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		if !r.is('[', member) {
			return
		}
		for r.token(); r.err == nil && r.dec.PeekKind() != ']'; {
			if !yield(struct{}{}) {
				return
			}
		}
		r.token()
	}
}

// is reports whether the next value is of the kind that member must have. If not,
// it consumes the value and, unless that is null, notes the fault.
func (r *reader) is(want jsontext.Kind, member string) bool {
	if r.err != nil {
		return false
	}
	got := r.dec.PeekKind()
	if got == want {
		return true
	}
	if r.skip(); r.err == nil && got != 'n' && r.fault == "" {
		r.fault = "member " + member + " has a " + kindName(got) + " where a " + kindName(want) + " or null belongs"
	}
	return false
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "JSON object"
	case '[':
		return "JSON array"
	case '"':
		return "JSON string"
	case '0':
		return "JSON number"
	}
	return "JSON boolean"
}

func (r *reader) str(member string) string {
	if !r.is('"', member) {
		return ""
	}
	return r.unquote(r.raw())
}

func (r *reader) flag(member string) bool {
	if r.err == nil && r.dec.PeekKind() == 'f' {
		r.skip()
		return false
	}
	if !r.is('t', member) {
		return false
	}
	r.skip()
	return true
}

// unquote is the value of a JSON string that the decoder has checked.
func (r *reader) unquote(raw string) string {
	if len(raw) < 2 {
		return ""
	}
	if s := raw[1 : len(raw)-1]; strings.IndexByte(s, '\\') < 0 {
		return s
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	r.badText = r.badText || err != nil
	return string(s)
}

// raw is the text of the next value, or name.
func (r *reader) raw() string {
	if r.err != nil {
		return ""
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.err = err
		return ""
	}
	end := int(r.dec.InputOffset())
	return r.text[end-len(v) : end]
}

func (r *reader) skip() {
	if r.err == nil {
		r.err = r.dec.SkipValue()
	}
}

// token consumes a bracket.
func (r *reader) token() {
	if r.err == nil {
		_, r.err = r.dec.ReadToken()
	}
}

var errTrailing = errors.New("text after the JSON value")

func (r *reader) end() {
	if r.err != nil {
		return
	}
	switch _, err := r.dec.ReadToken(); err {
	case io.EOF:
	case nil:
		r.err = errTrailing
	default:
		r.err = err
	}
}
