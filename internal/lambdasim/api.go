package lambdasim

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// api is the Runtime API of one sandbox.
func (s *sandbox) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", s.giveNext)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", s.takeResponse)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", s.takeError)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", func(w http.ResponseWriter, r *http.Request) {
		// The process ends next, which is what its invocation is told.
		accepted(w)
	})
	return mux
}

// giveNext has the runtime wait for work. That it asks says that it is done with the invocation
// before, and from then on it is stopped.
func (s *sandbox) giveNext(w http.ResponseWriter, r *http.Request) {
	if s.responded() {
		s.freeze()
		s.free <- struct{}{}
	}
	var i *invocation
	select {
	case i = <-s.next:
	case <-r.Context().Done():
		return
	case <-s.ended:
		return
	}
	h := w.Header()
	h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(i.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:sim")
	h.Set("Lambda-Runtime-Trace-Id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1")
	h.Set("Content-Type", "application/json")
	_, _ = w.Write(i.event) // a runtime that goes away shows as its end
}

// responded reports whether the runtime has responded to the invocation that it works on.
func (s *sandbox) responded() bool {
	s.mu.Lock()
	i := s.current
	s.mu.Unlock()
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.posted
}

// claim takes the one response that an invocation may have.
func (s *sandbox) claim(w http.ResponseWriter, r *http.Request) *invocation {
	i := s.working(r.PathValue("id"))
	if i == nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.posted {
		refuse(w, http.StatusBadRequest, "InvalidStateTransition", "the invocation has a response already")
		return nil
	}
	i.posted = true
	return i
}

// takeResponse passes a response on as it comes. A buffered one reaches its caller whole or not
// at all.
func (s *sandbox) takeResponse(w http.ResponseWriter, r *http.Request) {
	i := s.claim(w, r)
	if i == nil {
		return
	}
	if i.limit == MaxResponse {
		s.takeBuffered(w, r, i)
		return
	}
	i.begin(r.Header.Get("Content-Type"))
	buf := make([]byte, 32<<10)
	for size := 0; ; {
		n, err := r.Body.Read(buf)
		if size += n; size > i.limit {
			tooLarge(w, i)
			return
		}
		if n > 0 {
			_, _ = i.writer.Write(buf[:n]) // a caller that has left does not stop the function
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return // the runtime is dying; of what, its end says
		}
	}
	// Errors in the middle of a stream are trailers ("Building a custom runtime").
	if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		i.record(streamError(kind, r.Trailer.Get("Lambda-Runtime-Function-Error-Body")))
	}
	accepted(w)
}

func (s *sandbox) takeBuffered(w http.ResponseWriter, r *http.Request, i *invocation) {
	b, err := io.ReadAll(io.LimitReader(r.Body, int64(i.limit)+1))
	switch {
	case err != nil:
		return // the runtime is dying; of what, its end says
	case len(b) > i.limit:
		tooLarge(w, i)
		return
	}
	i.begin(r.Header.Get("Content-Type"))
	_, _ = i.writer.Write(b) // a caller that has left does not stop the function
	accepted(w)
}

func tooLarge(w http.ResponseWriter, i *invocation) {
	i.record(&FunctionError{"Function.ResponseSizeTooLarge", fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", i.limit)})
	refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size ("+strconv.Itoa(i.limit)+" bytes).")
}

// streamError reads the trailers: the body is JSON in base64.
func streamError(kind, encoded string) error {
	var body struct{ ErrorMessage string }
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err := errors.Join(err, json.Unmarshal(b, &body)); err != nil {
		return &FunctionError{"Runtime.MalformedTrailer", err.Error()}
	}
	return &FunctionError{kind, body.ErrorMessage}
}

func (s *sandbox) takeError(w http.ResponseWriter, r *http.Request) {
	i := s.claim(w, r)
	if i == nil {
		return
	}
	var body struct{ ErrorType, ErrorMessage string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		i.record(&FunctionError{"Runtime.MalformedError", err.Error()})
	} else {
		i.record(&FunctionError{body.ErrorType, body.ErrorMessage})
	}
	accepted(w)
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	b, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message}) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
