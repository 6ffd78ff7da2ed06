package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/thaw-mcp/thaw/internal/canon"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
)

// Single use: a state says yes to one continuation. The retry that brings it claims
// its round in the store before the handler runs. The same retry again, after a lost
// response, gets the response that was recorded; any other is refused.

const (
	// useKept is how long a claim outlives the last moment at which its state could open.
	useKept = 5 * time.Minute
	// recordTimeout bounds recording a response; the client waits for it.
	recordTimeout = 5 * time.Second
	// unboundedRun is how long a run without a deadline is taken to last at most.
	unboundedRun = time.Hour
)

// claim takes the round that this request continues. A replay is the recorded answer of
// the one that took it before.
func (c *running) claim(t *tool) (replay *failure, refusal *failure) {
	if c.h.store == nil || !c.before.resumes() || t.AllowReplay {
		return nil, nil
	}
	// A key that is out of reach must be found out while the state is still good.
	if f := c.keep.Ready(c.ctx); f != nil {
		return nil, f.(*failure)
	}
	s := &c.before.state
	u := task.Use{
		Call:     c.sealedID().LogID(),
		Round:    int(s.Round),
		Answers:  c.answersDigest(),
		Deadline: c.h.now().Add(unboundedRun),
		Expires:  s.Started.Add(statecodec.CallLifetime + useKept),
	}
	_, _ = rand.Read(u.Write[:]) // never fails
	if deadline, ok := c.ctx.Deadline(); ok {
		u.Deadline = deadline
	}
	first, prev, err := c.h.claimUse(c.ctx, u)
	switch {
	case err != nil:
		c.logError(slog.LevelError, "the store cannot say whether the state was used", err)
		f := internal(reasonStoreUnavailable, "The call cannot go on now: try again")
		f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
		return nil, f
	case first:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.claimed = &u
		if c.ended || c.ctx.Err() != nil { // meanwhile, and nothing has begun
			c.release()
			c.claimed = nil
			return nil, internal(reasonTimeout, c.name+" timed out")
		}
		return nil, nil
	case prev.Round == u.Round && prev.Answers == u.Answers && prev.Done && len(prev.Response) > 0:
		replay, err := c.recorded(prev.Response)
		if errors.Is(err, statecodec.ErrKeyUnavailable) {
			return nil, stateFailure(err)
		}
		if err == nil {
			return replay, nil
		}
	case prev.Round == u.Round && prev.Answers == u.Answers && !prev.Done && c.h.now().Before(prev.Deadline):
		f := internal(reasonInProgress, "The call is going on: try again for its answer")
		f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
		return nil, f
	}
	return nil, c.refuseReplay()
}

func (c *running) refuseReplay() *failure {
	c.h.refusals.log(c.h.now(), statecodec.ErrReplayed, func(suppressed int) {
		attrs := []slog.Attr{slog.String("why", statecodec.ErrReplayed.Error()), slog.Int("round", int(c.before.state.Round))}
		if suppressed > 0 {
			attrs = append(attrs, slog.Int("suppressed", suppressed))
		}
		c.log(slog.LevelWarn, "request state refused", attrs...)
	})
	return stateFailure(statecodec.ErrReplayed)
}

// answersDigest is the digest of the answers to the outstanding questions; what else a
// client sends counts for nothing.
func (c *running) answersDigest() [32]byte {
	h := sha256.New()
	id := c.sealedID() // which is not in the store, so that nobody can try answers against it
	h.Write(id[:])
	keys := make([]string, 0, len(c.before.journal.Asked))
	for _, a := range c.before.journal.Asked {
		keys = append(keys, a.Key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		answer, ok := c.before.answers[key]
		if !ok {
			continue
		}
		digest, _ := canon.Digest(answer) // it passed the check of the body
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(key)))
		h.Write(n[:])
		h.Write([]byte(key))
		h.Write(digest[:])
	}
	return [32]byte(h.Sum(nil))
}

// recordPurpose separates recorded responses from everything else sealed with the same key.
const recordPurpose = "thaw/v1/response"

// settleClaim records how a claimed round ended, or gives it back if it ended in what the
// client can mend before it tries again, and had no effect.
func (c *running) settleClaim(o outcome) {
	if c.claimed == nil {
		return
	}
	if o.mendable() && !c.run.Effects() {
		c.release()
		return
	}
	c.record(o)
}

// claimUse claims a round in the store. Whether that was applied has to be known, also where the
// client leaves meanwhile; claiming again with its write id tells.
func (h *Handler) claimUse(ctx context.Context, u task.Use) (first bool, before task.Used, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	first, before, err = h.store.Claim(ctx, u)
	if err != nil {
		first, before, err = h.store.Claim(ctx, u)
	}
	return first, before, err
}

// releaseUse gives a claimed round back to the store, also where the client has left.
func (h *Handler) releaseUse(ctx context.Context, u task.Use) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return h.store.Release(ctx, u)
}

// release gives the claimed round back.
func (c *running) release() {
	if err := c.h.releaseUse(c.ctx, *c.claimed); err != nil {
		c.logError(slog.LevelError, "the round of a once-only call was not given back", err)
	}
}

// mendable reports whether the handler itself refused what the client can mend: it declared
// too little, or has to log in with more scopes. A handler that was cut off may have done
// anything.
func (o outcome) mendable() bool {
	if o.failure == nil {
		return false
	}
	return o.failure.code == mcp.CodeMissingCapability || o.failure.challenge != "" || o.failure.reason == reasonKeyUnavailable
}

// record keeps what the call ends with for a retry whose first answer was lost: the HTTP
// status, and the message from the member after its id on.
func (c *running) record(o outcome) {
	status, message := http.StatusOK, o.message
	if o.failure != nil {
		status, message = o.failure.httpStatus(), o.failure.appendError(nil, c.requestID)
	}
	plain := binary.BigEndian.AppendUint16(nil, uint16(status))
	if len(message) > 0 {
		plain = append(plain, message[len(envelopeStart)+len(c.requestID):]...)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), recordTimeout)
	defer cancel()
	sealed, err := c.h.codec.SealRecord(ctx, recordPurpose, c.recordBinding(), plain)
	if err == nil {
		err = c.h.store.Finish(ctx, *c.claimed, sealed)
	}
	if err != nil {
		c.logError(slog.LevelError, "the answer of a once-only call was not recorded", err)
	}
}

func (c *running) recordBinding() []byte {
	return append(append([]byte(c.sealedID().LogID()), '/'), strconv.Itoa(int(c.before.state.Round))...)
}

// recorded is the recorded answer.
func (c *running) recorded(sealed []byte) (*failure, error) {
	plain, err := c.h.codec.OpenRecord(c.ctx, recordPurpose, c.recordBinding(), sealed)
	if err == nil && len(plain) < 2 {
		err = statecodec.ErrMalformed
	}
	if err != nil {
		c.logError(slog.LevelError, "a recorded answer does not open", err)
		return nil, err
	}
	return &failure{status: int(binary.BigEndian.Uint16(plain)), replay: plain[2:]}, nil
}
