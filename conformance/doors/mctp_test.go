package doors

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// MCTP goes through every door, streaming or not, its answers without a body too.
func TestMCTP(t *testing.T) {
	for _, mode := range []string{"off", "on"} {
		t.Run("streaming "+mode, func(t *testing.T) {
			t.Parallel()
			f := fleet(t, lambdasim.Config{Env: []string{"THAW_MCTP=on", "THAW_PUBLIC_URL=https://tools.example.com/mcp", "THAW_LAMBDA_STREAMING=" + mode}})
			for _, d := range doorsOf(t, f, mode) {
				r := d.send(t, http.MethodGet, "/discovery", "", nil)
				tag := r.Header.Get("ETag")
				var found struct{ Endpoints map[string]string }
				if err := json.Unmarshal([]byte(all(t, r)), &found); err != nil || r.StatusCode != http.StatusOK || found.Endpoints["echo"] != "https://tools.example.com/echo" || tag == "" {
					t.Fatalf("%s: %s %v, %v", d.name, r.Status, found, err)
				}
				for method, header := range map[string]map[string]string{http.MethodGet: {"If-None-Match": tag}, http.MethodHead: nil} {
					r := d.send(t, method, "/discovery", "", header)
					want := map[string]int{http.MethodGet: http.StatusNotModified, http.MethodHead: http.StatusOK}[method]
					if body := all(t, r); r.StatusCode != want || body != "" || r.Header.Get("ETag") != tag {
						t.Errorf("%s: %s: %s %q %v", d.name, method, r.Status, body, r.Header)
					}
				}
				r = d.send(t, http.MethodPost, "/echo", `{"parameters":{"text":"grüß dich"}}`, map[string]string{"Content-Type": "application/json"})
				var made struct{ ID, Status string }
				if err := json.Unmarshal([]byte(all(t, r)), &made); err != nil || r.StatusCode != http.StatusCreated || r.Header.Get("Location") != "https://tools.example.com/echo/"+made.ID {
					t.Fatalf("%s: %s %v %+v, %v", d.name, r.Status, r.Header, made, err)
				}
				path := "/echo/" + made.ID
				for status := made.Status; status != "completed"; {
					r := d.send(t, http.MethodHead, path, "", nil)
					if status = r.Header.Get("X-Task-Status"); r.StatusCode != http.StatusOK || all(t, r) != "" || status == "failed" || status == "" {
						t.Fatalf("%s: %s %v", d.name, r.Status, r.Header)
					}
					if status != "completed" {
						<-time.After(50 * time.Millisecond)
					}
				}
				r = d.send(t, http.MethodGet, path+"/result", "", nil)
				if body := all(t, r); r.StatusCode != http.StatusOK || !strings.Contains(body, "grüß dich") || !strings.Contains(body, `"status":"completed"`) {
					t.Errorf("%s: %s %s", d.name, r.Status, body)
				}
				if r := d.send(t, http.MethodHead, "/echo/none", "", nil); r.StatusCode != http.StatusNotFound || all(t, r) != "" {
					t.Errorf("%s: no such task: %s", d.name, r.Status)
				}
			}
		})
	}
}
