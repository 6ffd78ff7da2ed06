package lambdahost

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"testing"
	"unicode/utf8"
)

// FuzzInvoke: whatever the payload, Invoke fails with the typed error or gives an
// answer that a front door takes, and never panics; a body survives the way there
// and back byte for byte.
func FuzzInvoke(f *testing.F) {
	for _, shell := range shells() {
		f.Add(encodeEvent(f, shell))
		f.Add(encodeEvent(f, overlay(shell, map[string]any{"body": "{\"a\":\"\u00fc\"}\n", "path": "/a%2Fb", "rawPath": "/a%2Fb"})))
		f.Add(encodeEvent(f, overlay(shell, map[string]any{"body": "/w==", "isBase64Encoded": true, "cookies": []any{"a=1"}})))
	}
	for _, payload := range awsFixtures(f, "events") {
		f.Add(payload)
	}
	for _, payload := range []string{"", "{}", "null", "5", `{"a":`, `{"httpMethod":"HEAD","path":"/"}`, `{"httpMethod":"GET","path":"/%"}`, "{\"path\":\"\xff\"}"} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var body []byte
		var called, isHead bool
		i := newTestInvoker(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			called, isHead = true, r.Method == http.MethodHead
			if r.URL.Path == "" || r.URL.Path[0] != '/' || r.RequestURI != r.URL.RequestURI() {
				t.Errorf("path %q, URI %q", r.URL.Path, r.RequestURI)
			}
			for name, values := range r.Header {
				w.Header()[name] = values
			}
			var err error
			if body, err = io.ReadAll(r.Body); err != nil || int64(len(body)) != r.ContentLength {
				t.Errorf("body of %d bytes, ContentLength %d, %v", len(body), r.ContentLength, err)
			}
			_, _ = w.Write(body)
		}))
		raw, err := i.Invoke(t.Context(), payload)
		if err != nil {
			var unknown *UnknownEventError
			if !errors.As(err, &unknown) || raw != nil || called {
				t.Errorf("Invoke = %q, %v", raw, err)
			}
			return
		}
		if len(raw) > 6_291_556 || !utf8.Valid(raw) {
			t.Errorf("answer of %d bytes, valid UTF-8 %t", len(raw), utf8.Valid(raw))
		}
		a := decodeAnswer(t, raw)
		if a.StatusCode < 100 || a.StatusCode > 999 {
			t.Errorf("status %d", a.StatusCode)
		}
		got := []byte(a.Body)
		if a.IsBase64Encoded {
			if got, err = base64.StdEncoding.DecodeString(a.Body); err != nil {
				t.Error(err)
			}
		}
		switch {
		case called && isHead:
			body = nil
		case !called:
			return
		}
		if a.StatusCode == http.StatusOK && string(got) != string(body) {
			t.Errorf("body %q came back as %q", body, got)
		}
	})
}
