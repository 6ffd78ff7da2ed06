package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/internal/canon"
	"github.com/thaw-mcp/thaw/internal/declared"
	"github.com/thaw-mcp/thaw/mctp"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
)

// Idempotency-Key: the same key with the same parameters is the same task, for as long as that is
// kept. The id of the task is made of the key, so of several requests at a time one makes it.

// idempotencyKey is the request's; "" if it has none.
func (q *mctpRequest) idempotencyKey() (string, *failure) {
	lines := q.r.Header[mctp.HeaderIdempotencyKey]
	if len(lines) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(lines[0])
	plain := !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
	if len(lines) > 1 || key == "" || len(key) > mctp.MaxIdempotencyKey || !plain {
		return "", invalidRequest(mctp.HeaderIdempotencyKey + " has to be one line of 1 to " + strconv.Itoa(mctp.MaxIdempotencyKey) + " ASCII characters without spaces")
	}
	return key, nil
}

// makeOnce makes the task of a key, or finds it.
func (q *mctpRequest) makeOnce(c *running, key string) (*task.Snapshot, *failure) {
	digest, err := canon.Digest(q.args)
	if err != nil {
		return nil, invalidRequest("the parameters cannot be compared: " + err.Error())
	}
	c.callID = keyedCall(taskOwner(q.principal), q.tool.Name, key)
	if s, f := q.keyed(q.r.Context(), c, digest); s != nil || f != nil {
		return s, f
	}
	if f := q.admit(c); f != nil { // no repeat comes here: what it asks for is there
		return nil, f
	}
	release := func() {}
	if q.tool.Tasks == declared.TaskNever {
		// What runs before it is stored is claimed first.
		use, f := q.claimKey(c, digest)
		if f != nil {
			return nil, f
		}
		release = func() { q.releaseKey(c, use) }
		s, f := q.keyed(q.r.Context(), c, digest) // the one that had it may have ended
		if s == nil && f == nil {
			f = q.checkRoom(c)
		}
		if s != nil || f != nil {
			release()
			return s, f
		}
	}
	s, f := q.make(c)
	if f != nil {
		release()
		return nil, f
	}
	if expires := s.Head.Expires; !expires.IsZero() && !expires.After(q.h.now()) {
		return nil, keyExpired()
	}
	// It is there, whatever has become of the request meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.r.Context()), recordTimeout)
	defer cancel()
	if s, f := q.keyed(ctx, c, digest); s != nil || f != nil { // whoever made it
		return s, f
	}
	return s, nil // it has expired just now
}

// keyed is the task of a key if it is there; one of other parameters is refused.
func (q *mctpRequest) keyed(ctx context.Context, c *running, digest [sha256.Size]byte) (*task.Snapshot, *failure) {
	id, owner := c.callID.TaskID(), taskOwner(q.principal)
	text, err := q.h.engine.Call(ctx, id, owner)
	if errors.Is(err, task.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, q.unreached(err)
	}
	stored, err := readTaskCall(text)
	if err != nil {
		return nil, q.unreached(err)
	}
	if before, err := canon.Digest(stored.Arguments); err != nil || before != digest {
		return nil, otherParameters()
	}
	s, err := q.h.engine.Get(ctx, id, owner)
	if err != nil {
		return nil, q.unreached(err)
	}
	return &s, nil
}

// checkRoom finds a task of the key that nobody can read any more and that the store still has.
func (q *mctpRequest) checkRoom(c *running) *failure {
	_, err := q.h.store.Head(q.r.Context(), c.callID.TaskID())
	switch {
	case errors.Is(err, task.ErrNotFound):
		return nil
	case err != nil:
		return q.unreached(err)
	}
	return keyExpired()
}

func keyExpired() *failure {
	return keyReused(http.StatusConflict, "was used for a task that has expired: use another")
}

func otherParameters() *failure {
	return keyReused(http.StatusUnprocessableEntity, "was used with other parameters")
}

func keyReused(status int, how string) *failure {
	return &failure{status: status, reason: reasonKeyReused, message: mctp.HeaderIdempotencyKey + " " + how}
}

// claimKey has this request run the tool for its key, and no other while it does. A claim ends
// with the time of its request; then the next may run the tool, although the one before may have
// done a part.
func (q *mctpRequest) claimKey(c *running, digest [sha256.Size]byte) (task.Use, *failure) {
	now := q.h.now()
	u := task.Use{Call: c.callID.LogID(), Round: 1, Answers: digest, Deadline: now.Add(q.runTime() + recordTimeout)}
	u.Expires = u.Deadline.Add(useKept)
	const tries = 3 // each is another's claim that has run out
	for range tries {
		_, _ = rand.Read(u.Write[:]) // never fails
		first, before, err := q.h.claimUse(q.r.Context(), u)
		switch {
		case err != nil:
			return u, q.unreached(err)
		case first:
			if err := q.r.Context().Err(); err != nil { // and nothing has begun
				q.releaseKey(c, u)
				return u, q.unreached(err)
			}
			return u, nil
		case before.Answers != digest:
			return u, otherParameters()
		case !before.Done && now.Before(before.Deadline):
			return u, keyInProgress()
		}
		u.Round = before.Round + 1
	}
	return u, keyInProgress()
}

func keyInProgress() *failure {
	return &failure{status: http.StatusConflict, reason: reasonInProgress, retryAfter: 2 * time.Second,
		message: "A request with this " + mctp.HeaderIdempotencyKey + " is going on: try again for its task"}
}

// runTime is how long a run within this request takes at most.
func (q *mctpRequest) runTime() time.Duration {
	d := unboundedRun
	for _, limit := range [...]time.Duration{q.tool.Timeout, q.h.limits.request} {
		if limit > 0 {
			d = min(d, limit)
		}
	}
	if deadline, ok := q.r.Context().Deadline(); ok {
		d = min(d, time.Until(deadline))
	}
	return d
}

// releaseKey has the next request with the key run the tool at once.
func (q *mctpRequest) releaseKey(c *running, u task.Use) {
	if err := q.h.releaseUse(q.r.Context(), u); err != nil {
		c.logError(slog.LevelError, "an Idempotency-Key was not given back", err)
	}
}

// keyedCall is the call that an Idempotency-Key of an owner stands for.
func keyedCall(owner [32]byte, tool, key string) (id statecodec.CallID) {
	h := sha256.New()
	for _, part := range []string{"thaw/v1/mctp-key", string(owner[:]), tool, key} {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	copy(id[:], h.Sum(nil))
	return id
}
