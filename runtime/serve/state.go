package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/thaw-mcp/thaw"
	"github.com/thaw-mcp/thaw/internal/canon"
	"github.com/thaw-mcp/thaw/internal/input"
	"github.com/thaw-mcp/thaw/internal/journal"
	"github.com/thaw-mcp/thaw/internal/strictjson"
	"github.com/thaw-mcp/thaw/mcp"
	"github.com/thaw-mcp/thaw/statecodec"
)

// continuation is what a request brings of the rounds before it.
type continuation struct {
	state   statecodec.State // of the round before; Round 0 in a first round
	journal *journal.Journal // nil in a first round
	answers map[string][]byte
}

// resumes reports whether there was a round before.
func (b *continuation) resumes() bool { return b != nil && b.journal != nil }

// checkState verifies requestState before anything reads it, also for what never asks
// . The client learns nothing of why it was refused; the log has it.
func (q *request) checkState() *failure {
	if !q.op.asks {
		return nil
	}
	p := &q.msg.params
	if p.inputResponses == nil && p.requestState == nil {
		return nil
	}
	q.before = &continuation{}
	if p.inputResponses != nil {
		q.before.answers = make(map[string][]byte)
		for key, answer := range strictjson.Members(p.inputResponses) {
			q.before.answers[string(key)] = answer
		}
	}
	if p.requestState == nil {
		return nil
	}
	token, _ := strictjson.String(p.requestState)
	s, j, err := q.open(token)
	if err != nil {
		return q.refuseState(token, err)
	}
	q.before.state, q.before.journal = s, j
	for _, asked := range j.Asked {
		if answer, ok := q.before.answers[asked.Key]; ok {
			if err := input.CheckShape(asked.Method, answer); err != nil {
				return invalidAnswer(asked.Key, err)
			}
		}
	}
	return nil
}

func (q *request) open(token string) (statecodec.State, *journal.Journal, error) {
	if token == "" {
		return statecodec.State{}, nil, statecodec.ErrMalformed
	}
	if q.h.codec == nil {
		return statecodec.State{}, nil, statecodec.ErrUnknownKey
	}
	p := &q.msg.params
	target := p.name
	if q.msg.method == mcp.MethodReadResource {
		target = p.uri
	}
	name, _ := strictjson.String(target)
	binding, err := q.h.binding(q.principal, q.msg.method, name, q.args)
	if err != nil {
		return statecodec.State{}, nil, errors.Join(statecodec.ErrRequest, err)
	}
	least := 0
	if t, ok := q.target.(*tool); ok {
		least = t.MinRevision
	}
	s, err := q.h.codec.Open(q.r.Context(), token, binding, uint32(least))
	if err != nil {
		return statecodec.State{}, nil, err
	}
	j, err := journal.Parse(s.Journal)
	if err != nil { // sealed by a newer binary
		return statecodec.State{}, nil, errors.Join(statecodec.ErrStale, err)
	}
	return s, j, nil
}

// binding is what a state is for: this audience, caller, method, target and arguments
//
func (h *Handler) binding(p *thaw.Principal, method, name string, args []byte) (statecodec.Binding, error) {
	digest, err := canon.Digest(args)
	if err != nil {
		return statecodec.Binding{}, err
	}
	return statecodec.Binding{
		Audience:  h.audience,
		Principal: statecodec.Principal(p.Scheme, p.Issuer, p.Subject, p.Tenant, p.Client),
		Request:   statecodec.Request(method, name, digest),
	}, nil
}

// stateFailure is the refusal for err. Nearly all are the same, so that nobody learns how
// near a forgery came.
func stateFailure(err error) *failure {
	switch {
	case errors.Is(err, statecodec.ErrKeyUnavailable):
		f := internal(reasonKeyUnavailable, "The call cannot go on now: try again")
		f.status, f.retryAfter = http.StatusServiceUnavailable, 2*time.Second
		return f
	case errors.Is(err, statecodec.ErrKeyDenied):
		return internal(reasonKeyDenied, "The call cannot go on")
	}
	return invalidParams(reasonRequestState, "Invalid request state: start the call again")
}

// refuseState logs why a state was refused and never the state.
func (q *request) refuseState(token string, err error) *failure {
	q.h.refusals.log(q.h.now(), stateReason(err), func(suppressed int) {
		attrs := []slog.Attr{slog.String("why", err.Error()), slog.String("method", q.msg.method)}
		if q.h.codec != nil {
			attrs = append(attrs, q.h.codec.Describe(token)...)
		}
		if t, ok := q.target.(*tool); ok {
			attrs = append(attrs, slog.String("tool", t.Name))
		}
		if suppressed > 0 {
			attrs = append(attrs, slog.Int("suppressed", suppressed))
		}
		q.h.logger.LogAttrs(context.Background(), slog.LevelWarn, "request state refused", attrs...)
	})
	return stateFailure(err)
}

// stateReasons are the kinds of refusal that the log tells apart.
var stateReasons = []error{
	statecodec.ErrMalformed, statecodec.ErrTooLarge, statecodec.ErrUnknownKey, statecodec.ErrKeyUnavailable, statecodec.ErrKeyDenied,
	statecodec.ErrForged, statecodec.ErrExpired, statecodec.ErrAudience, statecodec.ErrPrincipal, statecodec.ErrRequest,
	statecodec.ErrStale, statecodec.ErrReplayed,
}

func stateReason(err error) error {
	for _, reason := range stateReasons {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return err
}

func invalidAnswer(key string, err error) *failure {
	return invalidParams(reasonInvalidAnswer, "Invalid params: the answer to "+quoted([]byte(key))+" is none: "+err.Error())
}
