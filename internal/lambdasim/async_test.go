package lambdasim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

func TestAsync(t *testing.T) {
	var a lambdasim.Async
	f := start(t, lambdasim.Config{})
	a.Add("worker", f)
	url, arrived, open := gate(t)
	invoke := func(path, kind, event string) int {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(event))
		r.Header.Set("X-Amz-Invocation-Type", kind)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code
	}
	const path = "/2015-03-31/functions/worker/invocations"
	if got := invoke(path, "Event", `{"Do":"wait","Wait":"`+url+`"}`); got != http.StatusAccepted {
		t.Errorf("status %d", got)
	}
	<-arrived // while nobody waits for it
	open()
	a.Wait()
	if invoke(path, "Event", `{"Do":"fail"}`); f.Started() != 1 {
		t.Errorf("%d started", f.Started())
	}
	a.Wait()
	for _, c := range []struct {
		name, path, kind, event string
		want                    int
	}{
		{"another function", "/2015-03-31/functions/other/invocations", "Event", "{}", http.StatusNotFound},
		{"a synchronous invocation", path, "RequestResponse", "{}", http.StatusBadRequest},
		{"too large", path, "Event", strings.Repeat(" ", 1<<20+1), http.StatusRequestEntityTooLarge},
		{"another operation", "/2015-03-31/functions", "Event", "{}", http.StatusNotFound},
	} {
		if got := invoke(c.path, c.kind, c.event); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
