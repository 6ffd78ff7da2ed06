package cold

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

const (
	agree  = `{"approve":{"action":"accept"}}`
	refuse = `{"approve":{"action":"decline"}}`
)

// fleet starts two servers that share a key and a store. One may have settings of its own.
func fleet(t *testing.T, first ...string) (one *fixture.Server, other string) {
	t.Helper()
	shared := []string{
		"THAW_STATE_KEY=file:" + fixture.NewKey(t, program),
		"THAW_STORE=sqlite:" + filepath.Join(t.TempDir(), "tasks.db"),
	}
	one = fixture.Run(t, t.TempDir(), program, append(first, shared...)...)
	return one, fixture.ServeIn(t, t.TempDir(), program, shared...)
}

// A process is killed after the effect of a round and before its record. Nobody can
// know then what was done, so nobody does it again: until the round's time is over the
// same retry is told to wait, and then the user starts again.
func TestKilledInAStep(t *testing.T) {
	t.Parallel()
	const roundTime = 6 * time.Second
	dies, lives := fleet(t, "THAW_REQUEST_TIMEOUT="+roundTime.String())
	call := request{tool: "transfer_slowly", arguments: `{"to":"A","amount":10,"seconds":60}`}
	retry := call
	retry.state, retry.answers = must(t, dies.URL, call).state, agree

	running := begin(t.Context(), t, dies.URL, retry)
	eventually(t, "the effect happens", func() bool { return counter(t, dies.URL) == 10 })
	if err := dies.Kill(); err != nil {
		t.Fatal(err)
	}
	if a := <-running; a != nil {
		t.Fatalf("the killed process has answered %s", a.text)
	}

	later(t, must(t, lives, retry), "in_progress")
	other := retry
	other.answers = refuse
	refused(t, must(t, lives, other))
	var last *answer
	eventually(t, "the round's time is over", func() bool {
		last = must(t, lives, retry)
		return last.reason != "in_progress"
	})
	refused(t, last)
	wantCounter(t, lives, 0)

	// Starting again is a call of its own.
	call.arguments = `{"to":"A","amount":10,"seconds":0}`
	retry = call
	retry.state, retry.answers = must(t, lives, call).state, agree
	if a := must(t, lives, retry); !strings.Contains(a.text, "transferred 10 to A, the counter is 10") {
		t.Errorf("the call that began again: %s", a.text)
	}
}

// begin sends r and goes on. Nil says that there was no answer.
func begin(ctx context.Context, t *testing.T, url string, r request) <-chan *answer {
	t.Helper()
	body := r.body(t)
	end := make(chan *answer, 1)
	go func() {
		a, _ := post(ctx, http.DefaultClient, url, r.tool, body)
		end <- a
	}()
	return end
}

// While a process is in a round, another one that gets the same retry tells its client to
// wait, and then has the answer of the first.
func TestRetryWhileTheFirstRuns(t *testing.T) {
	server, other := fleet(t)
	call := request{tool: "transfer_slowly", arguments: `{"to":"A","amount":10,"seconds":1}`}
	retry := call
	retry.state, retry.answers = must(t, server.URL, call).state, agree
	running := begin(t.Context(), t, server.URL, retry)
	eventually(t, "the effect happens", func() bool { return counter(t, server.URL) == 10 })
	later(t, must(t, other, retry), "in_progress")
	first := <-running
	if first == nil || !strings.Contains(first.text, "transferred 10 to A, the counter is 10") {
		t.Fatalf("the first request got %+v", first)
	}
	if a := must(t, other, retry); a.text != first.text {
		t.Errorf("the same retry got %s, the first request %s", a.text, first.text)
	}
	wantCounter(t, other, 0)
	wantCounter(t, server.URL, 10)
}

// A round that is cut off after its effect has an end like any other: whoever asks again
// gets it, and nothing is done twice (R-19, H-20).
func TestCutOff(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(server *fixture.Server, leave context.CancelFunc) error{
		"the client leaves": func(_ *fixture.Server, leave context.CancelFunc) error {
			leave()
			return nil
		},
		"the server stops": func(server *fixture.Server, _ context.CancelFunc) error { return server.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, other := fleet(t)
			call := request{tool: "transfer_slowly", arguments: `{"to":"A","amount":10,"seconds":60}`}
			retry := call
			retry.state, retry.answers = must(t, server.URL, call).state, agree
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			running := begin(ctx, t, server.URL, retry)
			eventually(t, "the effect happens", func() bool { return counter(t, server.URL) == 10 })
			if err := cut(server, leave); err != nil {
				t.Fatal(err)
			}
			var end *answer
			eventually(t, "the round ends", func() bool {
				end = must(t, other, retry)
				return end.reason != "in_progress"
			})
			if first := <-running; first != nil && first.text != end.text {
				t.Errorf("the same retry got %s, the first request %s", end.text, first.text)
			}
			if end.status != http.StatusOK || !strings.Contains(end.text, `"isError":true`) {
				t.Errorf("the round ended in %d %s", end.status, end.text)
			}
			if again := must(t, other, retry); again.text != end.text {
				t.Errorf("the round ended in %s, and then in %s", end.text, again.text)
			}
			retry.answers = refuse
			refused(t, must(t, other, retry))
			wantCounter(t, other, 0)
		})
	}
}

// A process dies after it has recorded its answer and before the client has it: the same
// retry gets that answer elsewhere, and nothing is done twice.
func TestKilledBeforeItsAnswerArrives(t *testing.T) {
	dies, lives := fleet(t)
	call := request{tool: "transfer", arguments: `{"to":"A","amount":10}`}
	retry := call
	retry.state, retry.answers = must(t, dies.URL, call).state, agree

	lost := make(chan string, 1)
	if _, err := send(t, losing(t, dies, lost), retry); err == nil {
		t.Fatal("the answer arrived")
	}
	a := must(t, lives, retry)
	if want := <-lost; a.status != http.StatusOK || a.text != want || !strings.Contains(a.text, "transferred 10 to A, the counter is 10") {
		t.Errorf("the same retry got %d %s, lost was %s", a.status, a.text, want)
	}
	wantCounter(t, lives, 0)
	other := retry
	other.answers = refuse
	refused(t, must(t, lives, other))
}

// losing is a way to a server on which its next answer is lost, and the server with it.
func losing(t *testing.T, s *fixture.Server, lost chan<- string) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = ""
	way := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ModifyResponse: func(r *http.Response) error {
			text, err := io.ReadAll(r.Body)
			lost <- string(text)
			return errors.Join(err, s.Kill(), errors.New("the answer is lost"))
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	t.Cleanup(way.Close)
	return way.URL + "/mcp"
}
