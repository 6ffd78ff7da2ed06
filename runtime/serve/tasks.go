package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task"
)

// The extension Tasks: calls that outlive their request, and the methods by which a client
// reads them, answers them and cancels them.

const tasksExtension = "io.modelcontextprotocol/tasks"

// taskPoll is how often a client is asked to poll.
const taskPoll = time.Second

// knowsTasks reports whether this request declared the extension (T-02, T-11).
func (m *meta) knowsTasks() bool {
	return strictjson.Kind(memberOf(memberOf(m.capabilities, "extensions"), tasksExtension)) == '{'
}

// servesTasks reports whether the extension is on (T-01).
func (c *catalog) servesTasks() bool { return c.capabilities.Extensions[tasksExtension] != nil }

// lacksTasks is the -32021 of a client that did not (T-05, T-07).
func lacksTasks() *failure {
	return &failure{status: http.StatusBadRequest, code: mcp.CodeMissingCapability, reason: reasonMissingCapability,
		message: "Missing required client capability", data: []byte(`"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}`)}
}

// checkExtension gates the methods of an extension before anything is looked up (T-07).
func (q *request) checkExtension() *failure {
	if q.op.extension && !q.msg.meta.knowsTasks() {
		return lacksTasks()
	}
	return nil
}

func checkTaskParams(q *request) *failure {
	if strictjson.Kind(q.msg.params.taskID) != '"' {
		return invalidParams(reasonInvalidParams, "Invalid params: taskId must be a string")
	}
	return nil
}

func checkUpdateParams(q *request) *failure {
	if f := checkTaskParams(q); f != nil {
		return f
	}
	if strictjson.Kind(q.msg.params.inputResponses) != '{' {
		return invalidParams(reasonInvalidParams, "Invalid params: inputResponses must be an object")
	}
	return nil
}

// aboutTask does what with a task, and answers with its result, or with what its error
// becomes. An id that is not the caller's is one that never was (T-47).
func (q *request) aboutTask(what func(ctx context.Context, id string, owner [32]byte) ([]byte, error)) {
	id, _ := strictjson.String(q.msg.params.taskID)
	result, err := what(q.r.Context(), id, taskOwner(q.principal))
	var answer *task.InvalidAnswer
	switch {
	case err == nil:
		q.out.result(q.msg.id, result)
	case errors.Is(err, task.ErrNotFound):
		q.fail(invalidParams(reasonUnknownTask, "Unknown task: it never was, or has expired"))
	case errors.As(err, &answer):
		q.fail(invalidAnswer(answer.Key, answer.Err))
	default:
		q.storeFailed(err)
	}
}

// storeFailed is the answer to a request about tasks that their store did not serve.
func (q *request) storeFailed(err error) {
	q.h.logger.LogAttrs(context.Background(), slog.LevelError, "the store of tasks failed", slog.String("method", q.msg.method), slog.String("error", err.Error()))
	f := internal(reasonStoreUnavailable, "The task cannot be reached now: try again")
	f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
	q.fail(f)
}

// serveGetTask answers tasks/get (T-24).
func serveGetTask(q *request) {
	q.aboutTask(func(ctx context.Context, id string, owner [32]byte) ([]byte, error) {
		s, err := q.h.engine.Get(ctx, id, owner)
		if err != nil {
			return nil, err
		}
		b := appendTask([]byte(complete), &s)
		return append(b, q.cat.metaEnd...), nil
	})
}

// serveUpdateTask answers tasks/update (T-28 to T-35).
func serveUpdateTask(q *request) {
	q.aboutTask(func(ctx context.Context, id string, owner [32]byte) ([]byte, error) {
		answers := map[string][]byte{}
		for key, answer := range strictjson.Members(q.msg.params.inputResponses) {
			answers[string(key)] = answer
		}
		return q.acknowledged(), q.h.engine.Update(ctx, id, owner, answers, judgeAnswer)
	})
}

// serveCancelTask answers tasks/cancel (T-36).
func serveCancelTask(q *request) {
	q.aboutTask(func(ctx context.Context, id string, owner [32]byte) ([]byte, error) {
		return q.acknowledged(), q.h.engine.Cancel(ctx, id, owner)
	})
}

// acknowledged is the empty result.
func (q *request) acknowledged() []byte {
	return append([]byte(`{"resultType":"complete"`), q.cat.metaEnd...)
}

// judgeAnswer says what is wrong with an answer to a question as the client got it.
func judgeAnswer(question, answer []byte) error {
	method, _ := strictjson.String(memberOf(question, "method"))
	violations, err := input.Check(method, memberOf(question, "params"), answer)
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		return errors.New(violations[0].String())
	}
	return nil
}

// appendTask appends the members of a task as tasks/get shows them (T-12).
func appendTask(b []byte, s *task.Snapshot) []byte {
	h := &s.Head
	b = strictjson.AppendString(append(b, `"taskId":`...), h.ID)
	b = append(append(append(b, `,"status":"`...), h.Status...), '"')
	if h.Message != "" {
		b = strictjson.AppendString(append(b, `,"statusMessage":`...), h.Message)
	}
	b = append(h.Created.UTC().AppendFormat(append(b, `,"createdAt":"`...), timeFormat), '"')
	b = append(h.Updated.UTC().AppendFormat(append(b, `,"lastUpdatedAt":"`...), timeFormat), '"')
	if h.Expires.IsZero() {
		b = append(b, `,"ttlMs":null`...)
	} else {
		b = strconv.AppendInt(append(b, `,"ttlMs":`...), h.Expires.Sub(h.Created).Milliseconds(), 10)
	}
	if h.Poll > 0 {
		b = strconv.AppendInt(append(b, `,"pollIntervalMs":`...), h.Poll.Milliseconds(), 10)
	}
	switch h.Status {
	case task.InputRequired:
		b = append(b, `,"inputRequests":{`...)
		for i, q := range s.Questions {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(strictjson.AppendString(b, q.Key), ':'), q.Data...)
		}
		b = append(b, '}')
	case task.Completed:
		b = append(append(b, `,"result":`...), s.Outcome...)
	case task.Failed:
		b = append(append(b, `,"error":`...), s.Outcome...)
	}
	return b
}

const timeFormat = "2006-01-02T15:04:05.000Z"

// canBeTask reports whether the rest of this call can become a task (T-03, T-04).
func (c *running) canBeTask() bool {
	if c.kind != "tool" || c.h.engine == nil || !c.meta.knowsTasks() {
		return false
	}
	t := c.catalog.tools[c.name]
	return t != nil && t.Tasks != declared.TaskNever
}

// createTask makes the call a task over what it has recorded, and is the message that tells
// the client (T-14 to T-17).
func (c *running) createTask(t *tool, j *journal.Journal) ([]byte, error) {
	creation, err := c.creation(t)
	if err != nil {
		return nil, err
	}
	for i := range j.Entries {
		entry := journal.Logged{Entry: j.Entries[i]}
		creation.Journal = append(creation.Journal, entry.AppendJSON(nil))
	}
	h, err := c.h.engine.Create(context.WithoutCancel(c.ctx), creation, unreachable)
	if err != nil {
		return nil, c.notCreated(err)
	}
	// A created task shows its seed: what became of it is for tasks/get to say (T-15).
	h.Status = task.Working
	b := append(appendEnvelope(nil, c.requestID), `{"resultType":"task",`...)
	return c.endResult(appendTask(b, &task.Snapshot{Head: h}), nil)
}

// creation is the call as a task that has recorded nothing.
func (c *running) creation(t *tool) (task.Creation, error) {
	text, err := c.taskCall()
	if err != nil {
		return task.Creation{}, c.broken("call", err)
	}
	traceparent, _ := strictjson.String(c.meta.traceparent)
	return task.Creation{
		ID: c.sealedID().TaskID(), Tool: t.Name, Traceparent: traceparent, Revision: uint32(c.revision),
		Owner: taskOwner(c.principal), TTL: t.TaskTTL, Poll: taskPoll, Format: taskFormat, Call: text,
	}, nil
}

func (c *running) notCreated(err error) *failure {
	c.logError(slog.LevelError, "the task was not created", err)
	f := internal(reasonStoreUnavailable, "The task cannot be created now: try again")
	f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
	return f
}

// unreachable is how a task ends that no worker can be told of.
var unreachable = task.Outcome{Status: task.Failed, Message: "No worker can be reached.",
	Data: []byte(`{"code":-32603,"message":"No worker can be reached","data":{"reason":"unreachable"}}`)}
