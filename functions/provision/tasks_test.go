package provision_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/functions/provision"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
)

// instance is a process: a handler, and a worker beside it.
type instance struct {
	handler *serve.Handler
	dead    atomic.Bool
	stop    context.CancelFunc
	gone    chan struct{}
}

// mortal is a store whose process can die: nothing more is written then.
type mortal struct {
	*memstore.Store
	dead *atomic.Bool
}

var errDead = errors.New("the process is dead")

func (m mortal) Commit(ctx context.Context, now time.Time, next task.Head, parts ...task.Part) error {
	if m.dead.Load() {
		return errDead
	}
	return m.Store.Commit(ctx, now, next, parts...)
}

// start starts an instance over a store and a place that others may use too.
func start(t *testing.T, store *memstore.Store, world *cloud) *instance {
	t.Helper()
	i := &instance{gone: make(chan struct{})}
	h, err := serve.New(thaw.Server{Name: "test", Version: "1", Tools: []*thaw.Tool{provision.New(world)}}, &serve.Options{
		Host:      host.Facts{Resident: true, Streaming: true, Loopback: true},
		StateKeys: []statecodec.Key{stateKey{}},
		Store:     mortal{store, &i.dead},
		Logger:    slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	i.handler, i.stop = h, sync.OnceFunc(func() {
		stop()
		<-i.gone
	})
	go func() {
		defer close(i.gone)
		_ = h.Work(ctx) // ends with ctx
	}()
	return i
}

// kill ends the instance as the end of its machine would: what it does is written nowhere.
func (i *instance) kill() {
	i.dead.Store(true)
	i.stop()
}

type stateKey struct{}

func (stateKey) ID() string { return "test:1" }

func (stateKey) MAC(_ context.Context, message []byte) ([]byte, error) {
	h := hmac.New(sha256.New, []byte("a key for tests"))
	h.Write(message)
	return h.Sum(nil), nil
}

// send sends a request of a client that knows tasks and returns the result.
func (i *instance) send(t *testing.T, method, name string, params map[string]any) map[string]any {
	t.Helper()
	params = maps.Clone(params)
	params["_meta"] = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(string(body)))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		r.Header.Set(name, value)
	}
	if method == "tools/call" {
		r.Header.Set("Mcp-Param-Region", "eu-west1") // M-14
	}
	w := httptest.NewRecorder()
	i.handler.ServeHTTP(w, r)
	var answer struct{ Result map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Result == nil {
		t.Fatalf("%s: status %d, %v: %s", method, w.Code, err, w.Body)
	}
	return answer.Result
}

// begin calls the tool and fills in the form: the call is a task then.
func (i *instance) begin(t *testing.T) (id string) {
	t.Helper()
	params := map[string]any{"name": "provision_environment", "arguments": map[string]any{"region": "eu-west1"}}
	asked := i.send(t, "tools/call", "provision_environment", params)
	if asked["resultType"] != "input_required" || asked["taskId"] != nil { // T-17
		t.Fatalf("no form: %v", asked)
	}
	params["requestState"] = asked["requestState"]
	params["inputResponses"] = json.RawMessage(`{"plan":{"action":"accept","content":{"size":"large","count":2}}}`)
	created := i.send(t, "tools/call", "provision_environment", params)
	id, _ = created["taskId"].(string)
	if created["resultType"] != "task" || id == "" {
		t.Fatalf("no task: %v", created)
	}
	return id
}

// settle lets time pass and workers work.
func settle(d time.Duration) {
	time.Sleep(d) // by the clock of the bubble
	synctest.Wait()
}

func (i *instance) get(t *testing.T, id string) map[string]any {
	t.Helper()
	return i.send(t, "tasks/get", id, map[string]any{"taskId": id})
}

// answer wants the task to ask for approval, and answers with action.
func (i *instance) answer(t *testing.T, id, action string) {
	t.Helper()
	asked := i.get(t, id)
	if asked["status"] != "input_required" || !strings.Contains(fmt.Sprint(asked["inputRequests"]), "Start machines in eu-west1?") {
		t.Fatalf("no approval is asked for: %v", asked)
	}
	if asked["statusMessage"] != "2 of 4: waiting for approval" {
		t.Errorf("it says %q", asked["statusMessage"])
	}
	i.send(t, "tasks/update", id, map[string]any{"taskId": id, "inputResponses": map[string]any{"approve": map[string]any{"action": action}}})
}

func (i *instance) cancel(t *testing.T, id string) {
	t.Helper()
	i.send(t, "tasks/cancel", id, map[string]any{"taskId": id})
}

// ends wants the task at its end.
func (i *instance) ends(t *testing.T, id, status, want string) {
	t.Helper()
	end := i.get(t, id)
	if end["status"] != status || !strings.Contains(fmt.Sprint(end["result"]), want) {
		t.Errorf("the task is %v, want %s with %q", end, status, want)
	}
}

const shortly = time.Millisecond

func TestTask(t *testing.T) {
	for _, tt := range []struct {
		name  string
		world func(c *cloud)
		play  func(t *testing.T, i *instance, id string, world *cloud)
		did   string
		left  int
	}{
		{"approved", nil, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.answer(t, id, "accept")
			settle(shortly)
			i.ends(t, id, "completed", "healthy:true")
		}, "create start healthy", 1},
		{"refused", nil, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.answer(t, id, "decline")
			settle(shortly)
			i.ends(t, id, "completed", "the user did not approve; the network was removed") // T-19
		}, "create destroy", 0},
		{"approved after a day's work", nil, func(t *testing.T, i *instance, id string, _ *cloud) {
			settle(9 * time.Hour)
			i.answer(t, id, "accept")
			settle(shortly)
			i.ends(t, id, "completed", "healthy:true")
		}, "create start healthy", 1},
		{"unhealthy for a while", func(c *cloud) { c.sick = 3 }, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.answer(t, id, "accept")
			settle(40 * time.Second)
			if waiting := i.get(t, id); waiting["status"] != "working" || waiting["statusMessage"] != "4 of 4: waiting until the machines are healthy" {
				t.Errorf("%v", waiting)
			}
			settle(10 * time.Second)
			i.ends(t, id, "completed", "healthy:true")
		}, "create start healthy healthy healthy healthy", 1},
		{"cancelled while it asks", nil, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.cancel(t, id)
			settle(shortly)
			i.ends(t, id, "cancelled", "")
		}, "create destroy", 0},
		{"cancelled while it waits", func(c *cloud) { c.sick = 1000 }, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.answer(t, id, "accept")
			settle(20 * time.Second)
			i.cancel(t, id)
			settle(shortly)
			i.ends(t, id, "cancelled", "")
		}, "create start healthy healthy destroy", 0},
		{"cancelled, and removed at the second try", func(c *cloud) { c.fail["destroy"] = errors.New("busy") }, func(t *testing.T, i *instance, id string, world *cloud) {
			i.cancel(t, id)
			settle(shortly)
			world.mend("destroy")
			settle(2 * time.Second)
			i.ends(t, id, "cancelled", "")
		}, "create destroy destroy", 0},
		{"cancelled in the middle of a step", func(c *cloud) { c.hang["start"] = make(chan struct{}) }, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.answer(t, id, "accept")
			settle(shortly)
			i.cancel(t, id)
			settle(10 * time.Second) // the worker looks now and then
			i.ends(t, id, "cancelled", "")
		}, "create start destroy", 0},
		{"machines that never work", func(c *cloud) { c.fail["healthy"] = errors.New("burnt") }, func(t *testing.T, i *instance, id string, _ *cloud) {
			i.answer(t, id, "accept")
			settle(shortly)
			i.ends(t, id, "completed", "the machines do not work; the network was removed")
		}, "create start healthy destroy", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world := newCloud()
				if tt.world != nil {
					tt.world(world)
				}
				i := start(t, memstore.New(nil), world)
				defer i.stop()
				id := i.begin(t)
				settle(shortly)
				tt.play(t, i, id, world)
				if world.did() != tt.did || world.left() != tt.left {
					t.Errorf("did %q, %d networks left; want %q, %d", world.did(), world.left(), tt.did, tt.left)
				}
			})
		})
	}
}

// A process dies after the effect of a step and before its record. Another one finishes the
// task: the step runs again with its token, so the place makes nothing twice, and what was
// recorded is not done again.
func TestCrash(t *testing.T) {
	for step, did := range map[string]string{
		"create": "create create start healthy",
		"start":  "create start start healthy",
	} {
		t.Run(step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, store := newCloud(), memstore.New(nil)
				reached := make(chan struct{})
				world.hang[step] = reached
				dies, lives := start(t, store, world), start(t, store, world)
				defer lives.stop()
				id := dies.begin(t)
				settle(shortly)
				if step == "start" {
					dies.answer(t, id, "accept")
				}
				<-reached
				dies.kill()
				settle(70 * time.Second) // the lease of the dead
				if step == "create" {
					lives.answer(t, id, "accept")
					settle(shortly)
				}
				lives.ends(t, id, "completed", "healthy:true")
				if world.did() != did || world.left() != 1 || len(world.machines) != 1 {
					t.Errorf("did %q, want %q; %d networks, machines %v", world.did(), did, world.left(), world.machines)
				}
			})
		})
	}
}
