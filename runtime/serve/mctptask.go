package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/task"
)

// find is the caller's task that the path names. One of another tool is one that never was.
func (q *mctpRequest) find() (*task.Snapshot, *failure) {
	s, err := q.h.engine.Get(q.r.Context(), q.route.ID, taskOwner(q.principal))
	switch {
	case err == nil && s.Head.Tool == q.route.Tool:
		return &s, nil
	case err == nil, errors.Is(err, task.ErrNotFound):
		return nil, &failure{status: http.StatusNotFound, reason: reasonUnknownTask, message: "Unknown task: it never was, or has expired"}
	}
	return nil, q.unreached(err)
}

// unreached is the answer to a request that the store did not serve.
func (q *mctpRequest) unreached(err error) *failure {
	if q.out.left() {
		q.out.abandoned()
		return answered
	}
	q.h.logger.LogAttrs(context.Background(), slog.LevelError, "the store of tasks failed", slog.String("method", q.r.Method), slog.String("error", err.Error()))
	f := internal(reasonStoreUnavailable, "The task cannot be reached now: try again")
	f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
	return f
}

// stand is how the task stands, and puts it into the headers.
func (q *mctpRequest) stand(s *task.Snapshot) mctp.Task {
	t := mctp.Task{ID: s.Head.ID, Status: mctpStatus(s), Created: s.Head.Created}
	h := q.w.Header()
	h.Set(mctp.HeaderStatus, string(t.Status))
	h.Set("Last-Modified", s.Head.Updated.UTC().Format(http.TimeFormat))
	h.Set("Cache-Control", "no-store")
	if s.Head.Status == task.InputRequired {
		h.Set(mctp.HeaderInputRequired, "true")
	}
	if !t.Status.Ended() {
		h.Set("Retry-After", strconv.Itoa(max(1, int(s.Head.Poll/time.Second))))
	}
	return t
}

// mctpStatus is what MCTP calls the status of a task.
func mctpStatus(s *task.Snapshot) mctp.Status {
	switch s.Head.Status {
	case task.Completed:
		if mctp.IsError(s.Outcome) {
			return mctp.Failed
		}
		return mctp.Completed
	case task.Failed, task.Cancelled:
		return mctp.Failed
	case task.Working:
		if s.Head.Claims == 0 {
			return mctp.Pending
		}
	}
	return mctp.InProgress
}

// state answers how a task stands.
func (q *mctpRequest) state() *failure {
	s, f := q.find()
	if f != nil {
		return f
	}
	q.send(http.StatusOK, q.stand(s).AppendJSON(nil))
	return nil
}

// outcome answers with the result of a task that has ended.
func (q *mctpRequest) outcome() *failure {
	s, f := q.find()
	if f != nil {
		return f
	}
	t := q.stand(s)
	var result []byte
	switch {
	case !t.Status.Ended():
		message := "Not finished: the task is " + string(t.Status)
		if s.Head.Status == task.InputRequired {
			message += " and waits for an answer, which is given over MCP"
		}
		return &failure{status: http.StatusConflict, reason: reasonNotFinished, retryAfter: max(time.Second, s.Head.Poll), message: message}
	case s.Head.Status == task.Cancelled:
		result = mctp.Error("cancelled", "The task was cancelled")
	case s.Head.Status == task.Failed:
		result = mctp.ProtocolError(s.Outcome)
	case t.Status == mctp.Failed:
		reason, _ := strictjson.String(memberOf(memberOf(s.Outcome, "_meta"), metaReason))
		result = mctp.ToolError(reason, s.Outcome)
	default:
		result = mctp.Result(s.Outcome)
	}
	q.send(http.StatusOK, t.AppendResult(nil, result))
	return nil
}
