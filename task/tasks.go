package task

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Tasks keeps tasks for an executor that is not the engine: whoever does the work tells what
// became of it. It is the contract IMcpTaskStore of the C# SDK over a Store, operation by operation:
//
//	IMcpTaskStore              Tasks
//	CreateTaskAsync            Create
//	GetTaskAsync               Get; null is ErrNotFound
//	SetCompletedAsync          SetCompleted
//	SetFailedAsync             SetFailed
//	SetCancelledAsync          SetCancelled
//	SetInputRequestsAsync      SetInputRequests
//	ResolveInputRequestsAsync  ResolveInputRequests
//	InputResponseReceived      OnInputResponse, with Watch or Look for what other processes resolved
//
// What has ended stays as it ended: an operation that would change it returns ErrEnded. Nothing
// else is fenced: two executors of one task are not kept apart. A task that never was or has
// expired is ErrNotFound. What a Tasks creates is never due, so no worker of an engine takes it;
// it has no owner, so no client of an engine sees it: whoever hands ids out has to check who asks
// (T-47). Safe for concurrent use.
type Tasks struct {
	e    *Engine // for what both do alike; it claims nothing
	ttl  time.Duration
	poll time.Duration
	look time.Duration

	mu          sync.Mutex
	subscribers map[int]func(InputResponse)
	subscribed  int
	watched     map[string]map[string]bool // keys that were asked here and not answered, by task
}

// TasksOptions may be nil.
type TasksOptions struct {
	// TTL is for how long a task is kept from its creation on; 0: 24 h, below: for ever.
	TTL time.Duration
	// Poll is how often a client is asked to poll; 0: 1 s.
	Poll time.Duration
	// Look is how often Watch asks the store for answers; 0: 1 s.
	Look time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger gets what Watch fails in; nil is slog.Default.
	Logger *slog.Logger
}

// NewTasks makes a Tasks. It does no I/O.
func NewTasks(s Store, o *TasksOptions) *Tasks {
	if o == nil {
		o = &TasksOptions{}
	}
	t := &Tasks{
		e: New(s, &Options{Now: o.Now, Logger: o.Logger}), ttl: o.TTL, poll: o.Poll, look: o.Look,
		subscribers: map[int]func(InputResponse){}, watched: map[string]map[string]bool{},
	}
	for _, d := range []struct {
		of        *time.Duration
		otherwise time.Duration
	}{{&t.ttl, 24 * time.Hour}, {&t.poll, time.Second}, {&t.look, time.Second}} {
		if *d.of == 0 {
			*d.of = d.otherwise
		}
	}
	return t
}

// ErrEnded says that a task has ended, and stays as it did.
var ErrEnded = errors.New("task: has ended already")

// Info is a task as its client may see it.
type Info struct {
	ID               string
	Status           Status
	Created, Updated time.Time
	TTL              time.Duration // from Created; 0: for ever
	Poll             time.Duration
	// InputRequests are those that are outstanding.
	InputRequests map[string]json.RawMessage
	// Result is that of a completed task, Error that of a failed one.
	Result, Error json.RawMessage
}

// Create makes a task that is Working, under an id that cannot be guessed (T-46). When it
// returns, every process that shares the store finds it (T-16).
func (t *Tasks) Create(ctx context.Context) (Info, error) {
	now := t.e.clock()
	h := Head{
		ID: rand.Text(), Version: 1, Status: Working, Phase: Asking, Created: now, Updated: now, Poll: t.poll,
	}
	if t.ttl > 0 {
		h.Expires = now.Add(t.ttl)
	}
	const tries = 3
	var err error
	for range tries { // repeating an applied create is success
		if err = t.e.store.Create(ctx, h); certain(err) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return Info{}, fmt.Errorf("create task: %w", err)
	}
	return infoOf(&Snapshot{Head: h.Kept()}), nil
}

// Get is the task as it is now.
func (t *Tasks) Get(ctx context.Context, id string) (Info, error) {
	h, err := t.head(ctx, id)
	if err != nil {
		return Info{}, err
	}
	s, err := t.e.snapshot(ctx, h)
	if err != nil {
		return Info{}, err
	}
	return infoOf(&s), nil
}

func infoOf(s *Snapshot) Info {
	h := &s.Head
	i := Info{ID: h.ID, Status: h.Status, Created: h.Created, Updated: h.Updated, Poll: h.Poll}
	if !h.Expires.IsZero() {
		i.TTL = h.Expires.Sub(h.Created)
	}
	switch h.Status {
	case InputRequired:
		i.InputRequests = make(map[string]json.RawMessage, len(s.Questions))
		for _, q := range s.Questions {
			i.InputRequests[q.Key] = q.Data
		}
	case Completed:
		i.Result = s.Outcome
	case Failed:
		i.Error = s.Outcome
	}
	return i
}

// head is that of a task which is there.
func (t *Tasks) head(ctx context.Context, id string) (Head, error) {
	h, err := t.e.store.Head(ctx, id)
	if err == nil && expired(&h, t.e.clock()) {
		err = ErrNotFound
	}
	return h, err
}

// change swaps the head of a task for what next makes of it, again and again while others are
// first. Without an error and without change, next leaves the version as it is.
func (t *Tasks) change(ctx context.Context, id string, next func(h Head) (Head, []Part, error)) error {
	for {
		h, err := t.head(ctx, id)
		if err != nil {
			return err
		}
		h.Epoch = freshEpoch()
		n, parts, err := next(h)
		if err != nil || n.Version == h.Version {
			return err
		}
		err = t.e.commit(ctx, n, parts...)
		if conflict := (*Conflict)(nil); !errors.As(err, &conflict) {
			return err
		}
	}
}

// freshEpoch names the parts of one write: those of a write that loses must not take the place
// of those that are seen.
func freshEpoch() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint32(b[:])
}

// SetCompleted ends a task with a result, as the client of the request would have got it (T-21).
func (t *Tasks) SetCompleted(ctx context.Context, id string, result json.RawMessage) error {
	return t.end(ctx, id, Outcome{Status: Completed, Data: result})
}

// SetFailed ends a task with a JSON-RPC error (T-20). What a tool itself says of its failure is a
// result (T-19).
func (t *Tasks) SetFailed(ctx context.Context, id string, failure json.RawMessage) error {
	return t.end(ctx, id, Outcome{Status: Failed, Data: failure})
}

func (t *Tasks) end(ctx context.Context, id string, o Outcome) error {
	if !json.Valid(o.Data) {
		return fmt.Errorf("task: what a task is %s with has to be JSON", o.Status)
	}
	return t.change(ctx, id, func(h Head) (Head, []Part, error) {
		if h.Status.Terminal() {
			return h, nil, ErrEnded
		}
		next, parts := t.e.ended(h, o)
		return next, parts, nil
	})
}

// SetCancelled cancels a task and reports whether it did: not if there is no such task or it
// has ended.
func (t *Tasks) SetCancelled(ctx context.Context, id string) (bool, error) {
	err := t.change(ctx, id, func(h Head) (Head, []Part, error) {
		if h.Status.Terminal() {
			return h, nil, ErrEnded
		}
		next := t.e.cancelled(h)
		next.Phase, next.Sent, next.Wake = Done, h.Sent, time.Time{} // nobody cleans up
		return next, nil, nil
	})
	if errors.Is(err, ErrEnded) || errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// SetInputRequests adds requests to those that are outstanding, and has the task wait for their
// answers. A key is of one request for the whole life of a task (T-29): asked again while it is
// outstanding the request has to be the same, and one that was answered is not asked anew;
// subscribers get its answer once more. So an executor that was restarted asks again what it had
// asked, and goes on.
func (t *Tasks) SetInputRequests(ctx context.Context, id string, requests map[string]json.RawMessage) error {
	keys := slices.Sorted(maps.Keys(requests))
	for _, key := range keys {
		if err := (&Part{Kind: PartQuestion, Name: key}).check(); err != nil {
			return fmt.Errorf("task: the key of an input request: %w", err)
		}
		if !json.Valid(requests[key]) {
			return fmt.Errorf("task: the input request %q has to be JSON", key)
		}
	}
	err := t.change(ctx, id, func(h Head) (Head, []Part, error) {
		if h.Status.Terminal() {
			return h, nil, ErrEnded
		}
		answers, err := t.e.store.Parts(ctx, id, PartAnswer, "", 0, 0)
		if err != nil {
			return h, nil, err
		}
		return t.asking(h, answers, keys, requests)
	})
	if err == nil {
		t.watch(id, keys)
	}
	return err
}

// asking is h with the requests that it does not have yet, and for which there is no answer.
func (t *Tasks) asking(h Head, answers []Part, keys []string, requests map[string]json.RawMessage) (Head, []Part, error) {
	next := h
	next.Asked = slices.Clone(h.Asked)
	room := maxInline
	for _, a := range h.Asked {
		room -= len(a.Inline)
	}
	var parts []Part
	for _, key := range keys {
		digest := sha256.Sum256(requests[key])
		a := Asked{Key: key, Epoch: h.Epoch, Digest: [16]byte(digest[:16])}
		if i := slices.IndexFunc(h.Asked, func(a Asked) bool { return a.Key == key }); i >= 0 {
			if h.Asked[i].Digest != a.Digest {
				return h, nil, fmt.Errorf("task: another input request %q is outstanding; a key is of one request for the life of its task", key)
			}
			continue
		}
		if slices.ContainsFunc(answers, func(p Part) bool { return p.Name == key }) {
			continue
		}
		if n := len(requests[key]); n <= room {
			room -= n
			a.Inline = requests[key]
		} else {
			parts = append(parts, Part{Kind: PartQuestion, Name: key, Epoch: h.Epoch, Data: requests[key]})
		}
		next.Asked = append(next.Asked, a)
	}
	if len(next.Asked) == len(h.Asked) {
		return h, nil, nil
	}
	next.Version++
	next.Status = InputRequired
	touch(&next, t.e.clock())
	return next, parts, nil
}
