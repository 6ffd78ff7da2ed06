package mctp

import (
	_ "embed"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/debian"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

//go:embed nginx.conf
var configuration string

// proxy runs nginx with this configuration, names replaced, until the test ends.
func proxy(t *testing.T, names ...string) {
	t.Helper()
	files, err := debian.Install(t.Context(), "nginx")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // or its workers are nobody, who cannot write here
	}
	text := strings.NewReplacer(append(names, "FOLDER", folder, "USER", user)...).Replace(configuration)
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := fixture.Start(t, exec.Command(filepath.Join(files, "usr/sbin/nginx"), "-p", folder, "-e", "stderr", "-c", file))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for lines.Scan() { // the process must not block on a full pipe
		}
	}()
	for deadline := time.After(10 * time.Second); ; {
		if conn, err := net.Dial("tcp", names[1]); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-gone:
			t.Fatal("nginx ended before it listened")
		case <-deadline:
			t.Fatal("nginx does not listen")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// seen is an answer and what the proxy says of its cache.
type seen struct {
	status int
	header http.Header
	body   string
	cache  string
}

func ask(t *testing.T, verb, url, body string, headers ...string) seen {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), verb, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return seen{answer.StatusCode, answer.Header, string(text), answer.Header.Get("X-Cache-Status")}
}

// A caching proxy keeps discovery, asks by its tag whether it still holds, and keeps nothing else.
func TestCachingProxy(t *testing.T) {
	address, cache, short := fixture.FreeAddress(t), fixture.FreeAddress(t), fixture.FreeAddress(t)
	server := fixture.Run(t, t.TempDir(), functions, "THAW_MCTP=on", "THAW_ADDR="+address, "THAW_PUBLIC_URL=http://"+cache+"/mcp")
	proxy(t, "CACHE", cache, "SHORT", short, "BRIEFLY", fixture.FreeAddress(t), "SERVER", address)

	first := ask(t, "GET", "http://"+cache+"/discovery", "")
	if first.status != 200 || first.cache != "MISS" || !strings.Contains(first.body, `"text_analysis":"http://`+cache+`/text_analysis"`) {
		t.Fatalf("first: %+v", first)
	}
	if again := ask(t, "GET", "http://"+cache+"/discovery", ""); again.cache != "HIT" || again.body != first.body {
		t.Errorf("again: %+v", again)
	}
	if head := ask(t, "HEAD", "http://"+cache+"/discovery", ""); head.cache != "HIT" || head.body != "" {
		t.Errorf("HEAD: %+v", head)
	}
	if same := ask(t, "GET", "http://"+cache+"/discovery", "", "If-None-Match", first.header.Get("ETag")); same.status != 304 || same.cache != "HIT" || same.body != "" {
		t.Errorf("if changed: %+v", same)
	}

	t.Run("revalidates", func(t *testing.T) {
		if a := ask(t, "GET", "http://"+short+"/discovery", ""); a.cache != "MISS" {
			t.Errorf("%+v", a)
		}
		for deadline := time.Now().Add(10 * time.Second); ; <-time.After(100 * time.Millisecond) {
			a := ask(t, "GET", "http://"+short+"/discovery", "")
			if a.cache == "REVALIDATED" { // the server said 304
				if a.status != 200 || a.body != first.body {
					t.Errorf("%+v", a)
				}
				return
			}
			if a.cache != "HIT" || time.Now().After(deadline) {
				t.Fatalf("%+v", a)
			}
		}
	})

	t.Run("keeps no task", func(t *testing.T) {
		ids := map[string]bool{}
		for range 3 {
			var task struct{ ID string }
			a := ask(t, "POST", "http://"+cache+"/text_analysis", `{"parameters":{"text":"Hello world"}}`, "Prefer", "wait=8")
			if err := json.Unmarshal([]byte(a.body), &task); err != nil || a.status != 201 || a.cache != "" {
				t.Fatalf("%+v, %v", a, err)
			}
			ids[task.ID] = true
			for range 2 {
				for _, path := range []string{"", "/result"} {
					a := ask(t, "GET", "http://"+cache+"/text_analysis/"+task.ID+path, "")
					head := ask(t, "HEAD", "http://"+cache+"/text_analysis/"+task.ID+path, "")
					if a.status != 200 || a.cache != "MISS" || a.body == "" || head.status != 200 || head.cache != "MISS" || head.body != "" || head.header.Get("X-Task-Status") != "completed" {
						t.Errorf("%s: %+v, %+v", path, a, head)
					}
				}
			}
		}
		if len(ids) != 3 {
			t.Errorf("three POSTs made %v", ids)
		}
		for range 2 {
			if a := ask(t, "GET", "http://"+cache+"/text_analysis/00000000-0000-8000-8000-000000000000", ""); a.status != 404 || a.cache != "MISS" {
				t.Errorf("%+v", a)
			}
		}
	})

	// While the server is gone, clients still find out where it will be.
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, "GET", "http://"+cache+"/discovery", ""); a.status != 200 || a.cache != "HIT" {
		t.Errorf("without the server: %+v", a)
	}
	if a := ask(t, "GET", "http://"+cache+"/openapi.json", ""); a.status != 502 {
		t.Errorf("without the server: %+v", a)
	}
}
