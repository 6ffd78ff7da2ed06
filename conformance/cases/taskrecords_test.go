package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// movedClock runs as the real one does, some time ahead.
type movedClock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *movedClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *movedClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// offerMinute adds a tool whose tasks live for a minute.
func offerMinute(s *thaw.Server) {
	s.Tools = append(s.Tools, thaw.NewTool("minute", "", func(context.Context, nothing) (string, error) { return "done", nil },
		&thaw.ToolOptions{Tasks: thaw.TaskAlways, TaskTTL: time.Minute}))
}

// expiredTask has the time of a task end while its worker is at work and the store, which
// cleans up when it likes, still has it.
func expiredTask(t *testing.T, s *stage) {
	clock := &movedClock{}
	s = newStage(t, s.expansion, production{tasks: true, server: offerMinute, options: func(o *serve.Options) { o.Now = clock.now }})
	s.workers.die()
	call := s.call("minute", `{}`, "")
	slow := task.New(s.store, &task.Options{Now: clock.now})
	for _, d := range s.doors(call) {
		t.Run(d.name(), func(t *testing.T) {
			a := s.play(t, d, call.by(canDoTasks))
			if err := all(taskHandle, member("60000", "ttlMs"))(a); err != nil {
				t.Fatalf("%v: %s", err, a)
			}
			id := unquoted(a.result("taskId"))
			gone := func() {
				for _, method := range []string{mcp.MethodGetTask, mcp.MethodUpdateTask, mcp.MethodCancelTask} {
					s.expect(t, s.about(method, id, `{}`), noSuchTask)
				}
			}
			var during task.Head
			slow.Work(t.Context(), id, func(ctx context.Context, c *task.Claim) task.Result {
				clock.move(59 * time.Second)
				s.until(t, d, id, "working")
				clock.move(2 * time.Second)
				gone()
				var err error
				if during, err = s.store.Head(ctx, id); err != nil {
					t.Errorf("the store has not kept it: %v", err)
				}
				return task.Result{Outcome: &task.Outcome{Status: task.Completed, Data: []byte(`{}`)}}
			})
			gone()
			if after, err := s.store.Head(t.Context(), id); err != nil || !after.Equal(during) {
				t.Errorf("a late worker has changed it from %+v to %+v, %v", during, after, err)
			}
		})
	}
}

// storedExpiry reads what goes to DynamoDB.
func storedExpiry(t *testing.T, s *stage) {
	type attribute struct{ S, N string }
	var mu sync.Mutex
	var items []map[string]attribute
	table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var put struct{ Item map[string]attribute }
		if err == nil {
			err = json.Unmarshal(body, &put)
		}
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".PutItem") {
			mu.Lock()
			items = append(items, put.Item)
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(table.Close)
	store, err := dynamostore.New(aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(table.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "x", SecretAccessKey: "x"}, nil
		}),
	}, "tasks", nil)
	if err != nil {
		t.Fatal(err)
	}
	s = newStage(t, s.expansion, production{tasks: true, server: offerMinute, options: func(o *serve.Options) { o.Store = store }})
	s.workers.die()
	a := s.play(t, s.http, s.call("minute", `{}`, "").by(canDoTasks))
	created, err := time.Parse(time.RFC3339, unquoted(a.result("createdAt")))
	if err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	mu.Lock()
	defer mu.Unlock()
	heads := 0
	for _, item := range items {
		if x := item["x"].N; len(x) != 10 {
			t.Errorf("%s expires at %q, which is no time in seconds", item["s"].S, x)
		}
		if item["s"].S != "H" {
			continue
		}
		heads++
		// DynamoDB may remove an item as soon as the second has come, so it is rounded up.
		ends := created.Add(time.Minute)
		if want := ends.Add(time.Second - time.Nanosecond).Truncate(time.Second).Unix(); item["x"].N != fmt.Sprint(want) {
			t.Errorf("the head expires at %s, want %d for %v", item["x"].N, want, ends)
		}
	}
	if heads != 1 {
		t.Errorf("%d heads were put: %v", heads, items)
	}
}

// durable has a scene played over a store in memory and one in a file.
func durable(t *testing.T, s *stage, server func(*thaw.Server), play func(t *testing.T, s *stage)) {
	file, err := sqlitestore.Open(filepath.Join(t.TempDir(), "tasks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for name, store := range map[string]task.Store{"memory": memstore.New(nil), "file": file} {
		t.Run(name, func(t *testing.T) {
			play(t, newStage(t, s.expansion, production{tasks: true, server: server, options: func(o *serve.Options) { o.Store = store }}))
		})
	}
}

// exactResults compares the result of a task with that of the call itself.
func exactResults(t *testing.T, s *stage) {
	var raw string
	for _, c := range s.expansion.d.Cases {
		if c.ID == "B-50" {
			raw = c.Input.HandlerReturns[0].Go
		}
	}
	durable(t, s, offerEcho, func(t *testing.T, s *stage) {
		for name, value := range map[string]string{"raw": raw, "a result of 500 kB": `"` + strings.Repeat("x", 500_000) + `"`} {
			call := s.call("echo_value", `{"value":`+value+`}`, "")
			for _, d := range s.doors(call) {
				t.Run(name+", "+d.name(), func(t *testing.T) {
					plain := s.play(t, d, call)
					if err := all(status(200), complete, member(value, "structuredContent"))(plain); err != nil {
						t.Fatalf("%v: %s", err, plain)
					}
					end := s.until(t, d, s.become(t, d, call), "completed")
					if got := end.result("result"); string(got) != string(plain.final().Result) {
						t.Errorf("got  %.300s\nwant %.300s", got, plain.final().Result)
					}
				})
			}
		}
	})
}

// textsInTasks takes texts that are easily spoiled through every part of a task's record:
// its arguments, a step, a question, an answer and its result.
func textsInTasks(t *testing.T, s *stage) {
	durable(t, s, offerEcho, func(t *testing.T, s *stage) {
		for _, escaped := range []string{`\ud83d\ude00`, `a\u0000b`, `\u2028\ud83d\udc69\u200d\ud83d\ude80\ufeff`} {
			t.Run(escaped, func(t *testing.T) {
				text := unquoted([]byte(`"` + escaped + `"`))
				id := s.become(t, s.http, s.call("echo_everywhere", `{"text":"`+escaped+`"}`, ""))
				a := s.until(t, s.http, id, "input_required")
				if got := unquoted(a.result("inputRequests", "again", "params", "message")); got != text {
					t.Errorf("the question is %+q", got)
				}
				s.expectAt(t, s.http, s.about(mcp.MethodUpdateTask, id, `{"again":{"action":"accept","content":{"text":"`+escaped+`"}}}`), emptyAck)
				end := s.until(t, s.http, id, "completed")
				var content []struct {
					Text string `json:"text"`
				}
				if !decode(end.result("result", "content"), &content) || len(content) != 1 || content[0].Text != text+text {
					t.Errorf("%s", end)
				}
			})
		}
	})
}

// foldingStore gives back the calls of tasks with members that only a careless reader takes
// for others.
type foldingStore struct {
	*memstore.Store
	fold func(call string) string
}

func (s *foldingStore) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	parts, err := s.Store.Parts(ctx, id, k, name, from, to)
	if k == task.PartCall && err == nil {
		parts[0].Data = []byte(s.fold(string(parts[0].Data)))
	}
	return parts, err
}

// foldedRecords spells members of a task's record in another case: they count as missing, and
// change nothing beside those in the right case.
func foldedRecords(t *testing.T, s *stage) {
	add := func(server *thaw.Server) {
		type in struct {
			By int `json:"by"`
		}
		server.Tools = append(server.Tools, thaw.NewTool("echo_by", "", func(ctx context.Context, in in) (string, error) {
			return fmt.Sprint(in.By, " ", thaw.CallInfoFrom(ctx).Principal.Subject), nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways}))
	}
	for name, test := range map[string]struct {
		fold func(call string) string
		runs bool
	}{
		"beside": {func(call string) string {
			return strings.TrimSuffix(call, "}") + `,"Arguments":{"by":9},"ARGUMENTS":{"by":9},"argument\u017f":{"by":9},"Principal":{"scheme":"jwt","subject":"mallory"}}`
		}, true},
		"in place of": {func(call string) string { return strings.Replace(call, `"arguments"`, `"Arguments"`, 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := &foldingStore{memstore.New(nil), test.fold}
			s := newStage(t, s.expansion, production{tasks: true, server: add, options: func(o *serve.Options) { o.Store = store }})
			id := s.become(t, s.http, s.call("echo_by", `{"by":1}`, ""))
			if test.runs {
				if err := bodyHas(`"text":"1 "`)(s.until(t, s.http, id, "completed")); err != nil {
					t.Error(err)
				}
				return
			}
			// A worker leaves it alone, however often it looks.
			if ack, _ := s.handler.RunTask(t.Context(), id); ack {
				t.Error("the message was acknowledged")
			}
			s.expect(t, s.about(mcp.MethodGetTask, id, ""), all(showsTask, member(`"working"`, "status"), nothingRan))
		})
	}
}

// tasksOutlive has the clients of tasks leave, one with its request and one with a stream that
// listens.
func tasksOutlive(t *testing.T, s *stage) {
	release := make(chan struct{})
	began := make(chan struct{}, 2)
	s = newStage(t, s.expansion, production{tasks: true, server: func(server *thaw.Server) {
		server.Tools = append(server.Tools, thaw.NewTool("wait", "", func(ctx context.Context, _ nothing) (string, error) {
			began <- struct{}{}
			select {
			case <-release:
				return "waited", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways}))
	}})
	conn := s.http.dial(t)
	if _, err := conn.Write(s.http.request(s.call("wait", `{}`, "").by(canDoTasks))); err != nil {
		t.Fatal(err)
	}
	within(t, answerTime, began, "the task has not begun") // it runs before its client has read a byte
	_ = conn.Close()
	id := s.become(t, s.http, s.call("wait", `{}`, ""))
	within(t, answerTime, began, "the task has not begun")
	conn = s.http.dial(t)
	if _, err := conn.Write(s.http.request(s.request(mcp.MethodListen, `"notifications":{"taskIds":[`+jsonText(id)+`]}`, "").by(canDoTasks))); err != nil {
		t.Fatal(err)
	}
	if line := firstEvent(t, conn); !strings.Contains(line, id) {
		t.Errorf("the stream begins with %q", line)
	}
	_ = conn.Close()
	s.until(t, s.http, id, "working")
	close(release)
	if err := bodyHas(`"text":"waited"`)(s.until(t, s.http, id, "completed")); err != nil {
		t.Error(err)
	}
}
