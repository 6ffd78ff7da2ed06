package gatewaysim

import (
	"errors"
	"io"
	"net/http"
)

// frames is the content type of a stream that begins with a prelude.
const frames = "application/vnd.awslambda.http-integration-response"

// maxPrelude is how far a REST API looks for the end of the prelude ("Lambda proxy integration
// format for response streaming").
const maxPrelude = 16 << 10

// readPrelude reads a stream up to the end of its prelude and returns what has come behind it.
func readPrelude(s io.Reader) (*answer, []byte, error) {
	var got []byte
	buf := make([]byte, 4096)
	for {
		n, err := s.Read(buf)
		got = append(got, buf[:n]...)
		if a, body, ok, err := cutPrelude(got); err != nil || ok && len(got)-len(body) <= maxPrelude {
			return a, body, err
		}
		if err != nil {
			return nil, nil, errors.Join(errMalformed, err)
		}
		if len(got) > maxPrelude {
			return nil, nil, errMalformed
		}
	}
}

// pass sends the body of a stream to the client as it comes. A stream that breaks cuts the
// response off, as its status was sent long ago.
//
// One that ends without a body never ends at the client: the fault that aws-lambda-go#593,
// aws-lambda-web-adapter#499 and others report of Function URLs. That REST APIs are free of it
// nobody says, so they have it here.
func pass(w http.ResponseWriter, r *http.Request, status int, first []byte, s io.Reader) {
	w.WriteHeader(status)
	c := http.NewResponseController(w)
	sent := len(first)
	_, _ = w.Write(first) // a client that has left is noticed by the next write, or not at all
	_ = c.Flush()
	buf := make([]byte, 32<<10)
	for {
		n, err := s.Read(buf)
		if sent += n; n > 0 {
			if _, err := w.Write(buf[:n]); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
				return
			}
			_ = c.Flush()
		}
		switch {
		case err == io.EOF && sent == 0 && r.Method != http.MethodHead && hasBody(status):
			<-r.Context().Done()
			return
		case err == io.EOF:
			return
		case err != nil:
			panic(http.ErrAbortHandler)
		}
	}
}

// hasBody reports whether a response with that status has a body (RFC 9110).
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}
