package cases

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/task"
)

type nothing struct{}

// fault is a handler that goes wrong, and whether that is the tool's own error or one of
// the protocol.
type fault struct {
	tool    string
	ends    func() (any, error) // nil: in a result of its own making
	isError bool
}

// faults are those of B-43. A result that no JSON can stand for is a tool error, in the request
// and, since a task ends as its request would, in a task too.
var faults = []fault{
	{"returns_error", func() (any, error) { return nil, errors.New("arn:aws:sns:secret") }, true},
	{"panics", func() (any, error) { panic("secret-panic") }, false},
	{"returns_nan", func() (any, error) { return map[string]any{"x": math.NaN()}, nil }, true},
	{"returns_inf", func() (any, error) { return map[string]any{"x": math.Inf(1)}, nil }, true},
	{"returns_channel", func() (any, error) { return map[string]any{"x": make(chan int)}, nil }, true},
	{"returns_cycle", func() (any, error) {
		m := map[string]any{}
		m["m"] = m
		return m, nil
	}, true},
	{"returns_is_error", nil, true},
}

func offerFaults(s *thaw.Server) {
	always := &thaw.ToolOptions{Tasks: thaw.TaskAlways}
	for _, f := range faults {
		if f.ends != nil {
			s.Tools = append(s.Tools, thaw.NewTool(f.tool, "", func(context.Context, nothing) (any, error) { return f.ends() }, always))
		}
	}
	s.Tools = append(s.Tools, thaw.NewTool("returns_is_error", "", func(context.Context, nothing) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "no luck"}}, IsError: true}, nil
	}, always))
}

// faultyHandlers runs each in the request and as a task, which ends as the request would.
func faultyHandlers(t *testing.T, s *stage) {
	clean := func(a *answer) error {
		if strings.Contains(string(a.body), "secret") {
			return errors.New("the answer tells what only the log may hold")
		}
		return wellFormed(a)
	}
	for _, f := range faults {
		call := s.call(f.tool, `{}`, "")
		for _, d := range s.doors(call) {
			t.Run(f.tool+", "+d.name(), func(t *testing.T) {
				plain := s.provoke(t, d, call)
				holds := all(clean, code(mcp.CodeInternalError))
				if f.isError {
					holds = all(clean, status(200), toolError())
				}
				if err := holds(plain); err != nil {
					t.Errorf("in the request: %v: %s", err, plain)
				}
				id := s.become(t, d, call)
				if f.isError {
					end := s.until(t, d, id, "completed")
					if err := all(clean, member("true", "result", "isError"), member(`"complete"`, "result", "resultType"), without("error"))(end); err != nil {
						t.Errorf("as a task: %v: %s", err, end)
					}
					return
				}
				end := s.until(t, d, id, "failed")
				if err := all(clean, member("-32603", "error", "code"), without("result"))(end); err != nil {
					t.Errorf("as a task: %v: %s", err, end)
				}
				if len(unquoted(end.result("error", "message"))) == 0 || len(unquoted(end.result("statusMessage"))) == 0 {
					t.Errorf("it says nothing of what is wrong: %s", end)
				}
			})
		}
	}
}

// askingTask has a task ask, be answered in part and go on.
func askingTask(t *testing.T, s *stage) {
	call := s.call("multi_input", `{}`, "")
	for _, d := range s.doors(call) {
		t.Run(d.name(), func(t *testing.T) {
			id := s.become(t, d, call)
			a := s.until(t, d, id, "input_required")
			for _, key := range []string{"first", "second"} {
				if q := a.result("inputRequests", key); unquoted(at(q, "method")) != mcp.MethodElicit || at(q, "params").Kind() != '{' {
					t.Errorf("question %q is %s", key, q)
				}
			}
			s.expectAt(t, d, s.about(mcp.MethodUpdateTask, id, `{"first":{"action":"accept","content":{"name":"Ann"}},"other":1}`), emptyAck)
			a = s.until(t, d, id, "input_required")
			if a.result("inputRequests", "first") != nil || a.result("inputRequests", "second") == nil {
				t.Errorf("outstanding are %s", a.result("inputRequests"))
			}
			s.expectAt(t, d, s.about(mcp.MethodUpdateTask, id, `{"second":{"action":"accept","content":{"name":"Bob"}}}`), emptyAck)
			if err := bodyHas(`"text":"Ann and Bob"`)(s.until(t, d, id, "completed")); err != nil {
				t.Error(err)
			}
		})
	}
}

// killed is a run of a worker that dies on the way: it writes nothing.
func killed(context.Context, *task.Claim) task.Result { return task.Result{Release: "killed"} }

// deadWorkers has workers that die one after the other, and workers that are not there.
func deadWorkers(t *testing.T, s *stage) {
	clock := &movedClock{}
	s = newStage(t, s.expansion, production{tasks: true, options: func(o *serve.Options) { o.Now = clock.now }})
	s.workers.die()
	call := s.call("slow_compute", `{"seconds":600}`, "")
	mortal := task.New(s.store, &task.Options{Now: clock.now, Logger: slog.New(slog.DiscardHandler)})
	for _, d := range s.doors(call) {
		t.Run(d.name(), func(t *testing.T) {
			id, left := s.become(t, d, call), s.become(t, d, call)
			for range 3 {
				mortal.Work(t.Context(), id, killed)
				s.until(t, d, id, "working")
				clock.move(10 * time.Minute)
			}
			if ack, after := s.handler.RunTask(t.Context(), id); !ack {
				t.Errorf("the task shows again in %v", after)
			}
			end := s.until(t, d, id, "failed")
			if err := all(member("-32603", "error", "code"), without("result"))(end); err != nil || len(unquoted(end.result("error", "message"))) == 0 {
				t.Errorf("%v: %s", err, end)
			}
			s.until(t, d, left, "working")
			clock.move(24 * time.Hour)
			s.expectAt(t, d, s.about(mcp.MethodGetTask, left, ""), noSuchTask)
		})
	}
}

// offerSlow adds a tool that runs only as a task, and one that runs both ways.
func offerSlow(s *thaw.Server) {
	s.Tools = append(s.Tools,
		thaw.NewTool("slow", "", func(context.Context, nothing) (string, error) { return "slow", nil }, &thaw.ToolOptions{Tasks: thaw.TaskRequired}),
		thaw.NewTool("either", "", func(ctx context.Context, _ nothing) (string, error) {
			if thaw.CallInfoFrom(ctx).TaskID == "" {
				return "ran in the request", nil
			}
			return "ran as a task", nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways}))
}

// offerEcho adds tools whose tasks keep what they are given in every part that a record has.
func offerEcho(s *thaw.Server) {
	type in struct {
		Text string `json:"text"`
	}
	s.Tools = append(s.Tools,
		thaw.NewRawTool("echo_value", "", json.RawMessage(`{"type":"object"}`), func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(at(jsontext.Value(args), "value"))}, nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways}),
		thaw.NewTool("echo_everywhere", "", func(ctx context.Context, in in) (string, error) {
			kept, err := thaw.Step(ctx, "keep", func(context.Context) (string, error) { return in.Text, nil })
			if err != nil {
				return "", err
			}
			answer, err := thaw.Elicit(ctx, "again", in.Text, in)
			if err != nil {
				return "", err
			}
			return kept + answer.Text, nil
		}, &thaw.ToolOptions{Tasks: thaw.TaskAlways}))
}
