package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/thaw-mcp/thaw/e2e/internal/wire"
)

// exchange is one request as the client sent it and what the server answered.
type exchange struct {
	verb    string
	request http.Header
	body    []byte
	status  int
	answer  http.Header
	written []byte
}

// recorder keeps what passes through a handler.
type recorder struct {
	next   http.Handler
	server *httptest.Server
	mu     sync.Mutex
	all    []*exchange
}

// record starts a loopback server in front of next.
func record(t *testing.T, next http.Handler) (*recorder, string) {
	t.Helper()
	r := &recorder{next: next}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r, r.server.URL + "/mcp"
}

// forward passes requests on to a server on this machine, streams included.
func forward(t *testing.T, endpoint string) http.Handler {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = ""
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1}
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x := &exchange{verb: req.Method, request: req.Header.Clone(), body: body}
	r.mu.Lock()
	r.all = append(r.all, x)
	r.mu.Unlock()
	req.Body = io.NopCloser(bytes.NewReader(body))
	tee := &teeWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		x.status, x.answer, x.written = tee.status, w.Header().Clone(), tee.written.Bytes()
	}()
	r.next.ServeHTTP(tee, req)
}

type teeWriter struct {
	http.ResponseWriter
	status  int
	written bytes.Buffer
}

func (w *teeWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *teeWriter) Write(b []byte) (int, error) {
	w.written.Write(b)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush.
func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// methods are what a client has to have used.
var methods = []string{
	"server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get",
	"resources/list", "resources/templates/list", "resources/read", "completion/complete",
}

// check ends the recording. It holds every request against the revision it claims to be of, so that a client
// that fell back to an older one does not pass, and every answer against the protocol's
// schema.
func (r *recorder) check(t *testing.T, schema *wire.Schema) {
	t.Helper()
	r.server.Close() // which waits for the handlers still running
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]int{}
	for _, x := range r.all {
		method, err := x.modern()
		if err != nil {
			t.Errorf("the client does not speak %s: %v: %s %v %s", version, err, x.verb, x.request, x.body)
			continue
		}
		seen[method]++
		messages := wire.Messages(x.answer.Get("Content-Type"), x.written)
		if len(messages) == 0 {
			t.Errorf("%s: the answer has no message: status %d, %q", method, x.status, x.written)
		}
		for _, m := range messages {
			if err := schema.Validate(method, m); err != nil {
				t.Errorf("%s: the answer breaks the protocol's schema: %v: %s", method, err, m)
			}
		}
	}
	checkRounds(t, r.all)
	for _, method := range methods {
		if seen[method] == 0 {
			t.Errorf("the client never used %s: %v", method, seen)
		}
	}
}

// modern reports the method of a request of the revision, or why it is none.
func (x *exchange) modern() (string, error) {
	var m struct {
		Method string
		Params struct {
			Name, URI string
			Meta      struct {
				Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
				Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal(x.body, &m); err != nil {
		return "", err
	}
	switch {
	case x.verb != http.MethodPost:
		return "", fmt.Errorf("verb %s", x.verb)
	case m.Method == "initialize" || strings.HasPrefix(m.Method, "notifications/"):
		return "", fmt.Errorf("method %s", m.Method)
	case x.request.Get("Mcp-Protocol-Version") != version || m.Params.Meta.Version != version:
		return "", fmt.Errorf("version %q in the header, %q in _meta", x.request.Get("Mcp-Protocol-Version"), m.Params.Meta.Version)
	case len(m.Params.Meta.Capabilities) == 0:
		return "", fmt.Errorf("no capabilities")
	case x.request.Get("Mcp-Method") != m.Method:
		return "", fmt.Errorf("header Mcp-Method is %q", x.request.Get("Mcp-Method"))
	case x.request.Get("Mcp-Session-Id") != "":
		return "", fmt.Errorf("it has a session")
	case slices.Contains([]string{"tools/call", "prompts/get", "resources/read"}, m.Method) && x.request.Get("Mcp-Name") == "":
		return "", fmt.Errorf("no header Mcp-Name")
	}
	return m.Method, nil
}
