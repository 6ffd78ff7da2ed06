package serve

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/task"
)

// notifications/tasks on subscriptions/listen (T-40 to T-44). What changes is seen in the
// store, so it does not matter which process works on a task.

const (
	// maxWatched bounds the tasks that one stream may name.
	maxWatched = 100
	// soonestLook is how long after a change the store is looked at again; while nothing
	// changes it grows to taskPoll.
	soonestLook = taskPoll / 2
	// shortStream is how long a stream lives on a host whose instances are paid for while
	// they wait, and answer nobody else then.
	shortStream = time.Minute
	// streamReserve is what is left of a platform's time for ending a stream in order.
	streamReserve = time.Second
)

// checkTaskFilter judges the member taskIds of a filter. A server without tasks leaves it
// out like any member that it does not know.
func checkTaskFilter(q *request, value []byte) *failure {
	if !q.cat.servesTasks() {
		return nil
	}
	if !q.msg.meta.knowsTasks() { // T-42
		return lacksTasks()
	}
	n, ok := 0, strictjson.Kind(value) == '['
	if ok {
		for id := range strictjson.Elements(value) {
			n++
			ok = ok && strictjson.Kind(id) == '"'
		}
	}
	if !ok || n > maxWatched || len(value) > maxSubscriptionBytes {
		return invalidParams(reasonInvalidParams, "Invalid params: notifications.taskIds must be an array of at most "+strconv.Itoa(maxWatched)+" strings")
	}
	return nil
}

// taskWatch is the tasks of one stream. The zero value watches none.
type taskWatch struct {
	ids   []string // that may still change
	heads []task.Head
	shown map[string]time.Time // Updated of what was sent last
	every time.Duration
	timer *time.Timer
}

// watchTasks finds the tasks that a filter names and the caller owns. What else it names is
// left out, whatever the reason (T-44).
func (q *request) watchTasks() (*taskWatch, error) {
	w := &taskWatch{shown: map[string]time.Time{}}
	if !q.cat.servesTasks() {
		return w, nil
	}
	for raw := range strictjson.Elements(strictjson.Member(q.msg.params.filter, "taskIds")) {
		if id, _ := strictjson.String(raw); !slices.Contains(w.ids, id) {
			w.ids = append(w.ids, id)
		}
	}
	return w, w.read(q)
}

func (w *taskWatch) read(q *request) (err error) {
	w.heads, err = q.h.engine.Heads(q.r.Context(), w.ids, taskOwner(q.principal))
	return err
}

// agreed is the member taskIds of the acknowledgement (T-41).
func (w *taskWatch) agreed() []byte {
	b := []byte("[")
	for i := range w.heads {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, w.heads[i].ID)
	}
	return append(b, ']')
}

// due is when to look again; nil: never.
func (w *taskWatch) due() <-chan time.Time {
	if w.timer == nil {
		return nil
	}
	return w.timer.C
}

func (w *taskWatch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// look reads the tasks in the store and tells of what has changed. It reports whether the
// stream can take more.
func (w *taskWatch) look(q *request, meta []byte) bool {
	if err := w.read(q); err != nil {
		q.watchFailed(err)
		w.again(false)
		return true
	}
	return w.tell(q, meta)
}

// tell sends the tasks that were read as tasks/get would show them now, unless the client has
// seen them so. One that has ended is not looked at any more, nor one that is gone.
func (w *taskWatch) tell(q *request, meta []byte) bool {
	changed := false
	w.ids = w.ids[:0]
	for i := range w.heads {
		h := &w.heads[i]
		if h.Updated.Equal(w.shown[h.ID]) {
			w.ids = append(w.ids, h.ID)
			continue
		}
		s, err := q.h.engine.Show(q.r.Context(), *h)
		if err != nil {
			q.watchFailed(err)
			w.ids = append(w.ids, h.ID)
			continue
		}
		if !q.notify(mcp.NotificationTask, append(appendTask([]byte("{"), &s), ','), meta) {
			return false
		}
		changed, w.shown[h.ID] = true, h.Updated
		if !h.Status.Terminal() {
			w.ids = append(w.ids, h.ID)
		}
	}
	w.heads = nil
	w.again(changed)
	return true
}

// again has the tasks looked at once more if any can still change.
func (w *taskWatch) again(changed bool) {
	switch {
	case len(w.ids) == 0:
		w.timer = nil
		return
	case changed || w.every == 0:
		w.every = soonestLook
	default:
		w.every = min(w.every*5/4, taskPoll)
	}
	if w.timer == nil {
		w.timer = time.NewTimer(w.every)
		return
	}
	w.timer.Reset(w.every)
}

var errWatch = errors.New("watch")

// watchFailed logs what a client is not told: the next look may be better.
func (q *request) watchFailed(err error) {
	if q.r.Context().Err() != nil {
		return
	}
	q.h.refusals.log(q.h.now(), errWatch, func(int) {
		q.h.logger.LogAttrs(context.Background(), slog.LevelWarn, "tasks cannot be watched", slog.String("error", err.Error()))
	})
}

// streamLife is how long the stream of this request may live; false: as long as its client
// likes. It ends in order before the platform would cut it off (L-12).
func (q *request) streamLife() (time.Duration, bool) {
	deadline, limited := q.r.Context().Deadline()
	life := shortStream
	if limited {
		life = time.Until(deadline) - streamReserve
	}
	if !q.h.host.Resident {
		life, limited = min(life, shortStream), true
	}
	return life, limited
}
