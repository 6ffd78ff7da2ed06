package thawtest

import (
	"encoding/json"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task"
)

// What a client does with a call that became a task, and what happens to its workers.

// IsTask reports whether the call has become a task.
func (c *Call) IsTask() bool { return c.taskID != "" }

// Advance lets d pass, and has a task worked on whenever it is time for that: a sleep of hours
// takes no time. Of a plain call only the age of its state grows.
func (c *Call) Advance(d time.Duration) *Call {
	c.tb.Helper()
	if d < 0 {
		c.tb.Fatalf("thawtest: Advance by %v; time only goes forward", d)
	}
	until := c.world.now().Add(d)
	for c.IsTask() && !c.over {
		next := c.world.next(c.tb, c.taskID)
		if next.IsZero() || next.After(until) {
			break
		}
		c.world.forward(next)
		c.runTask()
	}
	c.world.forward(until)
	if c.IsTask() && !c.over {
		c.get()
	}
	return c
}

// Cancel cancels the call, as its client does. A task that waits gets its one run to clean up.
// The client of a plain call that is asked something just does not come back. A call that has
// ended stays as it is.
func (c *Call) Cancel() *Call {
	c.tb.Helper()
	switch {
	case c.over:
	case c.IsTask():
		if c.exchange(mcp.MethodCancelTask, c.taskID, c.about(nil)); c.err != nil {
			c.tb.Fatalf("thawtest: %s: %v", mcp.MethodCancelTask, c.err)
		}
		c.work()
	default:
		c.cancelled, c.over, c.state, c.asked = true, true, "", nil
	}
	return c
}

// Replace puts a new version of the tool in place of the old one, as a deploy in
// mid-call does.
func (c *Call) Replace(tool *thaw.Tool) *Call {
	c.tool = tool
	return c
}

// Crash plays the last run again, its instance having died before anybody learned what it ended
// in. The client of a plain call makes its last request again: what that run had done is lost,
// what came before is not. A task keeps what the run recorded too, its steps, while a sleep that it
// began begins anew; its lease runs out, which takes a minute and longer after each death, and
// another worker takes over. A task whose workers die three times in a row without progress is
// given up.
func (c *Call) Crash() *Call {
	c.tb.Helper()
	if !c.IsTask() {
		c.resend()
		return c
	}
	c.world.undo(c.tb, c.taskID)
	c.over = false
	c.skip()
	return c
}

// skip lets the time pass until something happens to a task, and has it worked on. It reports
// whether anything did.
func (c *Call) skip() bool {
	c.tb.Helper()
	for before := c.world.version(c.tb, c.taskID); ; {
		next := c.world.next(c.tb, c.taskID)
		if next.IsZero() {
			c.get()
			return false
		}
		c.world.forward(next)
		c.work()
		if c.world.version(c.tb, c.taskID) != before {
			return true
		}
	}
}

// work has workers run the task as long as there is something to do now, and looks what became
// of it.
func (c *Call) work() {
	c.tb.Helper()
	for {
		next := c.world.next(c.tb, c.taskID)
		if next.IsZero() || next.After(c.world.now()) || c.runTask() {
			break
		}
	}
	c.get()
}

// runTask has one worker look at the task, on an instance of its own. It reports whether that
// was killed.
func (c *Call) runTask() (killed bool) {
	c.tb.Helper()
	c.world.tell(time.Time{})
	p := c.worker()
	ack, after := c.instance(p).RunTask(journal.WithProbe(c.tb.Context(), p), c.taskID)
	if killed = p.dead.Load(); killed {
		after = 0 // and nobody has said anything
	}
	if killed || !ack {
		c.world.tell(c.world.now().Add(after))
	}
	return killed
}

// about is the parameters of a request about the task.
func (c *Call) about(responses []byte) []byte {
	c.tb.Helper()
	params := map[string]any{"taskId": c.taskID, "_meta": c.meta()}
	if responses != nil {
		params["inputResponses"] = json.RawMessage(responses)
	}
	return c.encode(params)
}

// update brings a task answers. One that is refused is still asked.
func (c *Call) update(responses []byte) {
	c.tb.Helper()
	c.rounds++
	c.exchange(mcp.MethodUpdateTask, c.taskID, c.about(responses))
	refused := c.err
	c.work()
	if refused != nil {
		c.err = refused
	}
}

// get reads the task as its client does.
func (c *Call) get() {
	c.tb.Helper()
	raw := c.exchange(mcp.MethodGetTask, c.taskID, c.about(nil))
	if raw == nil {
		c.over = true // it has expired
		return
	}
	status, _ := strictjson.String(strictjson.Member(raw, "status"))
	c.over = task.Status(status).Terminal()
	switch task.Status(status) {
	case task.InputRequired:
		c.readQuestions(raw)
	case task.Completed:
		c.readOutcome(strictjson.Member(raw, "result"))
	case task.Failed:
		c.readError(strictjson.Member(raw, "error"))
	case task.Cancelled:
		c.cancelled = true
	}
}
