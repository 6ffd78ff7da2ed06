package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/internal/canon"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// counting is a tool that says how often it ran.
func counting(name string, ran *atomic.Int32, takes time.Duration, opts *thaw.ToolOptions) *thaw.Tool {
	return thaw.NewTool(name, "", func(ctx context.Context, _ struct {
		N int `json:"n,omitempty"`
	}) (map[string]any, error) {
		time.Sleep(takes)
		return map[string]any{"run": ran.Add(1), "key": thaw.IdempotencyKey(ctx)}, nil
	}, opts)
}

var modes = map[string]thaw.TaskMode{"on demand": thaw.TaskOnDemand, "always": thaw.TaskAlways, "required": thaw.TaskRequired, "never": thaw.TaskNever}

// Idempotency-Key: the same key and parameters are the same task; other parameters are 422.
func TestMCTPIdempotency(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			tools := []*thaw.Tool{counting("t", &ran, 0, &thaw.ToolOptions{Tasks: mode}), counting("other", &ran, 0, &thaw.ToolOptions{Tasks: mode})}
			o := Options{MCTP: true, PublicURLs: []string{publicURL}, Auth: []auth.Scheme{people()}}
			working(t, tools, o, func(t *testing.T, h *Handler) {
				post := func(path, body, token, key string) string {
					t.Helper()
					id, _ := made(t, h, submit(path, body).as(token).with("Idempotency-Key", key))
					return id
				}
				first := post("/t", `{"parameters":{"n":10}}`, "alice-token", "k")
				if again := post("/t", ` { "parameters" : { "n" : 1e1 } } `, "alice-token", "k"); again != first || ran.Load() != 1 {
					t.Errorf("%s, and again %s, after %d runs", first, again, ran.Load())
				}
				refused(t, h, submit("/t", `{"parameters":{"n":11}}`).as("alice-token").with("Idempotency-Key", "k"), 422, "idempotency_key_reused")
				refused(t, h, submit("/t", `{"parameters":{"n":11}}`).as("alice-token").with("Idempotency-Key", "k"), 422, "idempotency_key_reused")
				ids := map[string]bool{first: true}
				for _, other := range []string{
					post("/t", `{"parameters":{"n":10}}`, "alice-token", "K"), post("/t", `{"parameters":{"n":10}}`, "guest-token", "k"), post("/other", `{"parameters":{"n":10}}`, "alice-token", "k"),
				} {
					ids[other] = true
				}
				if len(ids) != 4 || ran.Load() != 4 {
					t.Errorf("%v after %d runs", ids, ran.Load())
				}
				a, _ := made(t, h, submit("/t", "").as("alice-token"))
				if b, _ := made(t, h, submit("/t", "").as("alice-token")); a == b {
					t.Error("two requests without a key are one task")
				}
			})
		})
	}
}

// Of many requests at a time with one key, to two processes, the tool runs once, and all learn of
// one task: at once, or when they try again.
func TestMCTPIdempotencyAtATime(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			o := Options{MCTP: true, Store: memory()}
			tools := []*thaw.Tool{counting("t", &ran, 3*time.Second, &thaw.ToolOptions{Tasks: mode})}
			working(t, tools, o, func(t *testing.T, h *Handler) {
				o.Host, o.role = resident, roleAPI
				other, _ := newHandler(t, thaw.Server{Tools: tools}, o)
				processes := []*Handler{h, other}
				var mu sync.Mutex
				ids := map[string]bool{}
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						for {
							a := exchange(t, processes[i%2], submit("/t", "").with("Idempotency-Key", "k"))
							if a.status == http.StatusConflict && a.header.Get("Retry-After") == "2" && strings.Contains(a.raw, `"in_progress"`) && mode == thaw.TaskNever {
								time.Sleep(2 * time.Second)
								continue
							}
							var task struct{ ID string }
							_ = json.Unmarshal([]byte(a.raw), &task)
							mu.Lock()
							ids[task.ID] = true
							mu.Unlock()
							return
						}
					})
				}
				all.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(ids) != 1 || ids[""] || ran.Load() != 1 {
					t.Errorf("%v after %d runs", ids, ran.Load())
				}
			})
		})
	}
}

// A run whose process died with it may be tried again when its time is over, with the same key
// downstream; what went on meanwhile with other parameters is refused.
func TestMCTPIdempotencyAfterADeath(t *testing.T) {
	var ran atomic.Int32
	store := memory()
	working(t, []*thaw.Tool{counting("t", &ran, 0, &thaw.ToolOptions{Tasks: thaw.TaskNever, Timeout: time.Minute})}, Options{MCTP: true, Store: store}, func(t *testing.T, h *Handler) {
		dead := &mctpRequest{request: request{h: h, cat: h.catalog.Load(), r: submit("/t", "").request(t.Context()), principal: anonymous, args: []byte("{}")}, tool: h.catalog.Load().tools["t"]}
		c := dead.running()
		c.callID = keyedCall(taskOwner(anonymous), "t", "k")
		digest, _ := canon.Digest([]byte("{}"))
		if _, f := dead.claimKey(c, digest); f != nil {
			t.Fatal(f)
		}
		call := submit("/t", "").with("Idempotency-Key", "k")
		refused(t, h, call, http.StatusConflict, "in_progress")
		refused(t, h, call.saying(`{"parameters":{"n":1}}`), 422, "idempotency_key_reused")
		time.Sleep(time.Minute + recordTimeout + time.Millisecond)
		id, status := made(t, h, call)
		if again, _ := made(t, h, call); again != id || status != "completed" || ran.Load() != 1 {
			t.Errorf("%s, %s, %s after %d runs", id, again, status, ran.Load())
		}
		if a := exchange(t, h, get("/t/"+id+"/result")); !strings.Contains(a.raw, c.callID.IdempotencyKey("")) {
			t.Errorf("%s", a.raw)
		}
	})
}

// A key whose task has expired is refused while the store still has that, and free when it is gone.
func TestMCTPIdempotencyExpires(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // as in working
	for name, mode := range modes {
		for state, clock := range map[string]func() time.Time{"is there": func() time.Time { return start }, "is gone": time.Now} {
			t.Run(name+", "+state, func(t *testing.T) {
				var ran atomic.Int32
				o := Options{MCTP: true, Store: memstore.New(&memstore.Options{Now: clock})}
				working(t, []*thaw.Tool{counting("t", &ran, 0, &thaw.ToolOptions{Tasks: mode, TaskTTL: time.Hour})}, o, func(t *testing.T, h *Handler) {
					call := submit("/t", "").with("Idempotency-Key", "k")
					first, _ := made(t, h, call)
					time.Sleep(2 * time.Hour)
					refused(t, h, get("/t/"+first), 404, "unknown_task")
					if state == "is there" {
						refused(t, h, call, http.StatusConflict, "idempotency_key_reused")
						refused(t, h, call, http.StatusConflict, "idempotency_key_reused")
						if ran.Load() != 1 {
							t.Errorf("%d runs", ran.Load())
						}
						return
					}
					made(t, h, submit("/t", "")) // with which this store removes what has expired
					again, _ := made(t, h, call.saying(`{"parameters":{"n":2}}`))
					if again != first || ran.Load() != 3 { // the id is made of the key
						t.Errorf("%s, and then %s, after %d runs", first, again, ran.Load())
					}
				})
			})
		}
	}
}

// A tool that is never a task runs inside the POST and is recorded as finished, however it ends.
func TestMCTPNever(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(ctx context.Context) (any, error)
		status string
		result string
		took   time.Duration
	}{
		"well":             {func(context.Context) (any, error) { return map[string]int{"n": 1}, nil }, "completed", `"result":{"n":1}}`, 0},
		"in an error":      {func(context.Context) (any, error) { return nil, thaw.Errorf("no luck") }, "failed", `"message":"no luck"`, 0},
		"in a panic":       {func(context.Context) (any, error) { panic("hunter2") }, "failed", `"reason":"panic"`, 0},
		"in Goexit":        {func(context.Context) (any, error) { runtime.Goexit(); return nil, nil }, "failed", `"reason":"panic"`, 0},
		"with a question":  {func(ctx context.Context) (any, error) { return thaw.Confirm(ctx, "sure", "Sure?") }, "failed", `"reason":"missing_capability"`, 0},
		"in time":          {func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, "failed", `"reason":"timeout"`, time.Minute},
		"and does not end": {func(ctx context.Context) (any, error) { time.Sleep(time.Hour); return nil, nil }, "failed", `"reason":"timeout"`, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			tool := tool1(c.end, &thaw.ToolOptions{Tasks: thaw.TaskNever, Timeout: time.Minute})
			working(t, []*thaw.Tool{tool}, Options{MCTP: true, PublicURLs: []string{publicURL}}, func(t *testing.T, h *Handler) {
				began := time.Now()
				var said atomic.Bool
				call := submit("/t", "")
				spy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					h.ServeHTTP(w, r.WithContext(host.WithAnswered(r.Context(), func() { said.Store(true) })))
				})
				id, status := made(t, spy, call)
				if took := time.Since(began); took != c.took || status != c.status || said.Load() {
					t.Errorf("%s after %s, told the host %t", status, took, said.Load())
				}
				if a := exchange(t, h, get("/t/"+id+"/result")); !strings.Contains(a.raw, c.result) || strings.Contains(a.raw, "hunter2") {
					t.Errorf("%s", a.raw)
				}
				if s := got(t, h, id); s["status"] != c.status && (s["status"] != "completed" || s["result"].(map[string]any)["isError"] != true) {
					t.Errorf("over MCP: %v", s)
				}
				time.Sleep(2 * time.Hour) // what does not end, ends
			})
		})
	}
}

// What a client began and left is recorded, so that its second try finds it; what the stop of the
// server cut off is not, and may be tried again at once.
func TestMCTPNeverCutOff(t *testing.T) {
	for name, cause := range map[string]error{"the client leaves": nil, "the server stops": host.ErrStopping} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			tool := tool1(func(ctx context.Context) (any, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(2 * time.Second):
					return ran.Add(1), nil
				}
			}, &thaw.ToolOptions{Tasks: thaw.TaskNever})
			working(t, []*thaw.Tool{tool}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
				ctx, end := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { end(cause) })
				call := submit("/t", "").with("Idempotency-Key", "k")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, call.request(ctx))
				if cause != nil && (w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"stopping"`) || w.Header().Get("Retry-After") != "1") {
					t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
				}
				began := time.Now()
				if _, status := made(t, h, call); status != "completed" || ran.Load() != 1 || (time.Since(began) == 0) != (cause == nil) {
					t.Errorf("%s after %d runs and %s", status, ran.Load(), time.Since(began))
				}
			})
		})
	}
}

// A repeat is no new call: it finds its task, whatever the tool's rate has left.
func TestMCTPRepeatsCostNoRate(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			tool := counting("t", &ran, 0, &thaw.ToolOptions{Tasks: mode, Rate: &thaw.Rate{PerMinute: 1}})
			working(t, []*thaw.Tool{tool}, Options{MCTP: true}, func(t *testing.T, h *Handler) {
				first, _ := made(t, h, submit("/t", "").with("Idempotency-Key", "k"))
				if again, _ := made(t, h, submit("/t", "").with("Idempotency-Key", "k")); again != first {
					t.Errorf("%s, and again %s", first, again)
				}
				refused(t, h, submit("/t", "").with("Idempotency-Key", "new"), http.StatusTooManyRequests, "rate_limited")
				refused(t, h, submit("/t", ""), http.StatusTooManyRequests, "rate_limited")
				time.Sleep(time.Minute)
				made(t, h, submit("/t", "").with("Idempotency-Key", "new")) // which the refusal did not use up
			})
		})
	}
}

// growing is one caller who gets more scopes.
type growing struct{ scopes []string }

func (g *growing) Authenticate(*http.Request) (thaw.Principal, bool, error) {
	return person("bob", g.scopes...), true, nil
}

// A tool that runs in the POST refuses who lacks scopes as over MCP, and the key is free for a
// second try, unless something was done before.
func TestMCTPScopesOfARun(t *testing.T) {
	for name, effect := range map[string]bool{"before a step": false, "after a step": true} {
		t.Run(name, func(t *testing.T) {
			bob := &growing{}
			tool := tool1(func(ctx context.Context) (any, error) {
				if effect {
					if err := thaw.Do(ctx, "effect", func(context.Context) error { return nil }); err != nil {
						return nil, err
					}
				}
				return 1, thaw.RequireScopes(ctx, "files:write")
			}, &thaw.ToolOptions{Tasks: thaw.TaskNever})
			working(t, []*thaw.Tool{tool}, Options{MCTP: true, PublicURLs: []string{publicURL}, Auth: []auth.Scheme{bob}}, func(t *testing.T, h *Handler) {
				call := submit("/t", "").with("Idempotency-Key", "k")
				if effect {
					id, status := made(t, h, call)
					bob.scopes = []string{"files:write"}
					if again, _ := made(t, h, call); again != id || status != "failed" {
						t.Errorf("%s %s, and again %s", id, status, again)
					}
					return
				}
				a, _ := refused(t, h, call, http.StatusForbidden, "insufficient_scope")
				if challenge := a.header.Get("WWW-Authenticate"); !strings.Contains(challenge, `scope="files:write"`) {
					t.Errorf("challenge %q", challenge)
				}
				bob.scopes = []string{"files:write"}
				if _, status := made(t, h, call); status != "completed" {
					t.Error(status)
				}
			})
		})
	}
}

// A run that took all of its request's time is recorded, and that is the answer.
func TestMCTPKeyOutlivesItsRequest(t *testing.T) {
	stubborn := tool1(func(context.Context) (any, error) { time.Sleep(time.Hour); return 1, nil }, &thaw.ToolOptions{Tasks: thaw.TaskNever})
	working(t, []*thaw.Tool{stubborn}, Options{MCTP: true, Store: patientStore{memory()}}, func(t *testing.T, h *Handler) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := do(t, h, submit("/t", "").with("Idempotency-Key", "k").request(ctx))
		if a.status != http.StatusCreated || !strings.Contains(a.raw, `"failed"`) {
			t.Errorf("%d %s", a.status, a.raw)
		}
		time.Sleep(2 * time.Hour)
	})
}

// patientStore is a store that, as one behind a network, does nothing for a context that has ended.
type patientStore struct{ *memstore.Store }

func (s patientStore) Head(ctx context.Context, id string) (task.Head, error) {
	if err := ctx.Err(); err != nil {
		return task.Head{}, err
	}
	return s.Store.Head(ctx, id)
}

// A client that leaves while its key is claimed leaves no claim behind.
func TestMCTPClientLeavesInTheClaim(t *testing.T) {
	var ran atomic.Int32
	store := &leavingStore{Store: memory()}
	working(t, []*thaw.Tool{counting("t", &ran, 0, &thaw.ToolOptions{Tasks: thaw.TaskNever})}, Options{MCTP: true, Store: store}, func(t *testing.T, h *Handler) {
		ctx, leave := context.WithCancel(t.Context())
		store.leave = leave
		call := submit("/t", "").with("Idempotency-Key", "k")
		h.ServeHTTP(httptest.NewRecorder(), call.request(ctx))
		if ran.Load() != 0 {
			t.Errorf("%d runs", ran.Load())
		}
		if _, status := made(t, h, call); status != "completed" || ran.Load() != 1 {
			t.Errorf("%s after %d runs", status, ran.Load())
		}
	})
}

// leavingStore has the client leave in its first Claim, which is applied.
type leavingStore struct {
	*memstore.Store
	leave func()
}

func (s *leavingStore) Claim(ctx context.Context, u task.Use) (bool, task.Used, error) {
	first, before, err := s.Store.Claim(ctx, u)
	if s.leave != nil {
		s.leave()
		s.leave = nil
		if ctx.Err() != nil {
			return false, task.Used{}, ctx.Err()
		}
	}
	return first, before, err
}
