package mctp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

var (
	jobs  = flag.Int("tasks", 300, "how many tasks are at work while the server is killed")
	kills = flag.Int("kills", 12, "how often the server is killed")
	seed  = flag.Uint64("seed", 1, "of when it is killed")
)

// client is fresh for each request, so that a connection to the dead is none to the living.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// service is the server that lives now, at an address of its own.
type service struct {
	base atomic.Pointer[string]
	lost atomic.Int32 // requests without an answer
}

var errRefused = errors.New("refused")

// send sends a request until somebody answers it with something else than that it should come again.
func (s *service) send(ctx context.Context, verb, path, body, key string) (status int, header http.Header, text []byte, err error) {
	for ; ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		r, err := http.NewRequestWithContext(ctx, verb, *s.base.Load()+path, strings.NewReader(body))
		if err != nil {
			return 0, nil, nil, err
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", key)
		}
		answer, err := client.Do(r)
		if err != nil {
			s.lost.Add(1)
			continue
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		switch {
		case err != nil:
			s.lost.Add(1)
		case answer.StatusCode != http.StatusServiceUnavailable:
			return answer.StatusCode, answer.Header, text, nil
		}
	}
	return 0, nil, nil, ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// job is one task from its POST to its result.
type job struct {
	n      int
	id     string
	result []byte
}

// do has the task made, under a key, polls by HEAD and fetches.
func (j *job) do(ctx context.Context, s *service) error {
	body := fmt.Sprintf(`{"parameters":{"n":%d,"naps":%d}}`, j.n, 5+j.n%20)
	status, _, text, err := s.send(ctx, http.MethodPost, "/square", body, "job-"+strconv.Itoa(j.n))
	var made struct{ ID string }
	if err != nil || status != http.StatusCreated || json.Unmarshal(text, &made) != nil {
		return fmt.Errorf("POST: %w: %d %s, %w", errRefused, status, text, err)
	}
	j.id = made.ID
	for {
		status, header, _, err := s.send(ctx, http.MethodHead, "/square/"+j.id, "", "")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("HEAD: %w: %d, %w", errRefused, status, err)
		}
		if now := header.Get("X-Task-Status"); now == "completed" || now == "failed" {
			break
		}
		wait, err := strconv.Atoi(header.Get("Retry-After"))
		if err != nil {
			return fmt.Errorf("HEAD: Retry-After: %w", err)
		}
		sleep(ctx, time.Duration(wait)*time.Second)
	}
	j.result, err = j.fetch(ctx, s)
	return err
}

func (j *job) fetch(ctx context.Context, s *service) ([]byte, error) {
	status, _, text, err := s.send(ctx, http.MethodGet, "/square/"+j.id+"/result", "", "")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("GET: %w: %d %s, %w", errRefused, status, text, err)
	}
	return text, nil
}

// Hundreds of tasks are at work while the server is killed at random and started again: each of
// them ends once, with the right result, and no POST that is sent again makes a second one.
func TestKills(t *testing.T) {
	folder := t.TempDir()
	store, runs := filepath.Join(folder, "tasks.db"), filepath.Join(folder, "runs")
	start := func() *fixture.Server {
		return fixture.Run(t, folder, killed, "THAW_MCTP=on", "THAW_STORE=sqlite:"+store, "RUNS="+runs)
	}
	s := &service{}
	server := start()
	point := func() { base := strings.TrimSuffix(server.URL, "/mcp"); s.base.Store(&base) }
	point()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	began := time.Now()
	all := make([]job, *jobs)
	var working sync.WaitGroup
	for i := range all {
		all[i].n = i + 1
		working.Go(func() {
			sleep(ctx, time.Duration(i)*20*time.Millisecond)
			if err := all[i].do(ctx, s); err != nil {
				t.Errorf("job %d: %v", i+1, err)
			}
		})
	}
	random := rand.New(rand.NewPCG(*seed, 0))
	for range *kills {
		sleep(ctx, time.Duration(200+random.IntN(900))*time.Millisecond)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		server = start()
		point()
	}
	working.Wait()
	took := time.Since(began)

	ids, ran := map[string]bool{}, runsOf(t, runs)
	again, wrong := 0, 0
	for i := range all {
		j := &all[i]
		var answer struct {
			Task   struct{ ID, Status string }
			Result struct {
				Square int
				Run    string
			}
		}
		tries := ran[j.id]
		second, err := j.fetch(ctx, s)
		// A step that was recorded never runs again, so its last run is the one that counts.
		if err != nil || json.Unmarshal(j.result, &answer) != nil || answer.Task.Status != "completed" || answer.Task.ID != j.id || answer.Result.Square != j.n*j.n ||
			len(tries) == 0 || answer.Result.Run != tries[len(tries)-1] || !bytes.Equal(second, j.result) || ids[j.id] {
			wrong++
			t.Errorf("job %d: %s, %v after the runs %v", j.n, j.result, err, tries)
		}
		ids[j.id] = true
		again += max(0, len(tries)-1)
	}
	heads := headsOf(t, store)
	for _, h := range heads {
		if h.Status != task.Completed || !ids[h.ID] {
			wrong++
			t.Errorf("task %s is %s", h.ID, h.Status)
		}
	}
	if len(heads) != *jobs || len(ran) != *jobs {
		t.Errorf("%d tasks were made and %d ran for %d jobs", len(heads), len(ran), *jobs)
	}
	t.Logf("\n%-26s %d\n%-26s %d\n%-26s %d\n%-26s %d\n%-26s %d\n%-26s %d\n%-26s %s",
		"tasks", *jobs, "kills of the server", *kills, "requests without an answer", s.lost.Load(), "steps that ran again", again,
		"tasks too many", len(heads)-*jobs, "lost or wrong", wrong, "took", took.Round(time.Second/10))
}

// runsOf are the runs of each task's step, in order.
func runsOf(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		id, run, _ := strings.Cut(strings.TrimSpace(line), " ")
		runs[id] = append(runs[id], run)
	}
	return runs
}

// headsOf are the tasks that a store has.
func headsOf(t *testing.T, path string) []task.Head {
	t.Helper()
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	heads, err := s.Recent(t.Context(), 2**jobs)
	if err != nil {
		t.Fatal(err)
	}
	return heads
}
